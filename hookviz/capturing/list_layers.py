"""List the layers of a model for people: convolutions, those of use, of maps, or all."""

from collections.abc import Sequence
from dataclasses import replace

from torch import nn

from hookviz.capturing.layer_trace import layer_trace
from hookviz.capturing.own_input import own_shape
from hookviz.errors import one_of
from hookviz.language.saying import say
from hookviz.models.wrapping import as_model
from hookviz.types import LayerInfo, Model

KINDS = ("conv", "usual", "maps", "all")
"""What `list_layers` can list."""


def list_layers(
    model: Model | nn.Module, *, kind: str = "conv", input_shape: Sequence[int] | None = None
) -> tuple[LayerInfo, ...]:
    """List the layers that one forward pass runs, in order of execution, with their shapes.

    Args:
        model: from `load_model` or `wrap`.
        kind: ``"conv"`` for convolution layers, ``"usual"`` for what the app lists first, which is
            these, and blocks too where a network has few of them, as a transformer has, ``"all"``
            for every layer without parts, ``"maps"`` for whatever puts out maps, ``(C, H, W)``:
            layers, and blocks of them, such as ``layer1``, which stand before their parts and count
            all their parameters. In both, what a block's code calls as a function, such as
            `torch.relu`, stands where it is called: ``"relu() after conv1"``.
        input_shape: ``(C, H, W)`` of the input; the model's own input shape by default.

    Raises:
        ModelError: the network can't take an input of that shape.
        SettingError: `kind` is none of the four.

    >>> model = hookviz.load_model("shapesnet")
    >>> layer = hookviz.list_layers(model)[0]
    >>> layer.name, layer.input_shape, layer.output_shape  # (C, H, W) each
    ('stem.first.conv', (3, 128, 128), (32, 64, 64))
    >>> len(hookviz.list_layers(model)), len(hookviz.list_layers(model, kind="all"))
    (10, 30)
    >>> [layer.name for layer in hookviz.list_layers(model, kind="maps")][:3]
    ['stem', 'stem.first', 'stem.first.conv']
    """
    one_of(say("kind of layers"), kind, KINDS)
    model = as_model(model)
    trace = layer_trace(model, tuple(input_shape or own_shape(model)))
    listed = {
        "conv": trace.convs,
        "usual": trace.usual,
        "maps": trace.shown,
        "all": trace.listed,
    }[kind]
    return tuple(map(_as_captured, listed))


def _as_captured(layer: LayerInfo) -> LayerInfo:
    """Put the frames in front of the shape, as a capture has them; no batch of 1."""
    if layer.frames == 1:
        return layer
    return replace(layer, output_shape=(layer.frames, *layer.output_shape))
