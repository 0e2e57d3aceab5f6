"""Refuse layers whose outputs are no ordinary tensors, no maps, or have no values."""

from hookviz.capturing.layer_trace import LayerTrace
from hookviz.errors import ModelError
from hookviz.language.saying import say
from hookviz.types import Model


def check_can_intervene(model: Model, trace: LayerTrace, layer: str) -> None:
    """Refuse a layer that does not put out an ordinary tensor, which a pass can be changed at.

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


def no_cells_error(model: Model, layer: str) -> ModelError:
    """Return the error for a layer whose values are those of no cells that anybody knows."""
    return ModelError(
        say(
            "Layer {layer!r} of {model} puts out no maps, or nobody knows which of its axes "
            "are rows and columns, so its values are no cells.",
            layer=layer,
            model=model.title,
        )
    )


def meta_output_error(model: Model, layer: str | None) -> ModelError:
    """Return the error for a layer that puts out a shape alone."""
    return ModelError(
        say(
            "Layer {name!r} of {model} puts out a tensor on the meta device, which has a shape and "
            "no values to look at.",
            name=layer,
            model=model.title,
        )
    )
