"""List the layers of a network that attend, without the weights of any being computed."""

from torch import nn
from torch.jit import ScriptModule

from hookviz.errors import ModelError
from hookviz.hooking.attention_calls import AttentionCalls
from hookviz.hooking.default_device import with_numbers
from hookviz.hooking.findings import Findings
from hookviz.hooking.shape_pass import pass_without_data
from hookviz.language.saying import say
from hookviz.types import Model

_MOST_SHAPES = 8  # per network that are remembered

_attending = Findings[tuple[str, ...]](_MOST_SHAPES)


@with_numbers
def attending_layers(model: Model, shape: tuple[int, ...]) -> tuple[str, ...]:
    """Return the layers that attend for an input of `shape`, ``(C, H, W)``, in order of execution.

    What counts as attention is in `hookviz.hooking.attention_calls`. The pass is made without data
    where that can be, and remembered per network.

    Raises:
        ModelError: the network can't take an input of that shape.

    >>> from hookviz.explaining.attending import attending_layers
    >>> attending_layers(hookviz.load_model("shapesnet"), (3, 128, 128))
    ()
    """

    def follow(replica: nn.Module, images: object) -> tuple[str, ...]:
        calls = AttentionCalls(replica, frozenset())
        with calls.watching():
            replica(images)
        return tuple(dict.fromkeys(call.layer for call in calls.found))

    known = _attending.of(model.network)
    return known.find(shape, lambda: pass_without_data(model, shape, follow))


def no_attention_error(model: Model) -> ModelError:
    """Return the error that says that nothing in a network attends, and which networks do."""
    return ModelError(
        say(
            "{model} computes no attention: no softmax of queries times keys weighs values in "
            "it.{script} A transformer does, such as torchvision's vit_b_16.",
            model=model.title,
            script=script_in(model.network),
        )
    )


def script_in(network: nn.Module) -> str:
    """Return the sentence that part of a network can't be watched, if that is so."""
    scripted = any(isinstance(module, ScriptModule) for module in network.modules())
    return say(" What runs inside of a TorchScript module is not seen.") if scripted else ""
