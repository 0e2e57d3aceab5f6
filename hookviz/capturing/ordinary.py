"""Which layers put out ordinary tensors, that a pass can be changed at or gone back through."""

from hookviz.capturing.layer_trace import LayerTrace
from hookviz.errors import ModelError
from hookviz.language.saying import say
from hookviz.types import Model


def check_ordinary(model: Model, trace: LayerTrace, layer: str) -> None:
    """Nothing, where what a layer puts out is an ordinary tensor.

    Raises:
        ModelError: it is sparse, quantised, nested or under `torch.vmap`; a layer is named whose
            output is not.
    """
    kind = trace.unlike.get(layer)
    if kind is None:
        return
    others = [info.name for info in trace.convs if info.name not in trace.unlike]
    hint = say(" Layer {layer!r} puts out an ordinary one.", layer=others[-1]) if others else ""
    raise ModelError(
        say(
            "Layer {layer!r} of {model} puts out {kind}: its numbers can be captured, and a pass "
            "can't be changed there or gone back through.{hint}",
            layer=layer,
            model=model.title,
            kind=say(kind),
            hint=hint,
        )
    )


def without_values(model: Model, layer: str | None) -> ModelError:
    """The error for a layer that puts out a shape alone."""
    return ModelError(
        say(
            "Layer {name!r} of {model} puts out a tensor on the meta device, which has a shape and "
            "no values to look at.",
            name=layer,
            model=model.title,
        )
    )
