"""List the layers of a model for people, and write in words how what a layer puts out lies."""

from collections.abc import Sequence
from dataclasses import replace

from torch import nn

from hookviz.capturing.inputs import own_shape
from hookviz.capturing.layer_trace import layer_trace
from hookviz.errors import one_of
from hookviz.language.saying import say
from hookviz.models.wrapping import as_model
from hookviz.types import LAST, TOKENS, WINDOWS, LayerInfo, Model
from hookviz.wording import times

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


def layout_text(layer: LayerInfo) -> str:
    """Write a layer's layout in a few words; empty of what has one axis, or none.

    >>> from hookviz.capturing.list_layers import layout_text
    >>> from hookviz.types import LayerInfo
    >>> shapes = {"input_shape": (3, 224, 224), "output_shape": (384, 14, 14)}
    >>> token = {"layout": "tokens", "prefix_tokens": 1}
    >>> layout_text(LayerInfo("norm", "LayerNorm", 0, "norm", 1, **shapes, parameters=0, **token))
    '14×14 patches and a class token; 384 channels'
    """
    if layer.layout == "unknown":
        return say("unknown: no map")
    if layer.layout not in {LAST, TOKENS, WINDOWS}:
        return say("channels first") if layer.layout else ""
    channels, *sides = layer.output_shape
    size = times(sides)
    if layer.layout == LAST:
        return say("channels last: {size}; {channels:,} channels", size=size, channels=channels)
    if layer.layout == WINDOWS:
        return say("windows of {size}; {channels:,} channels", size=size, channels=channels)
    cells = tokens_text(size, layer.prefix_tokens)
    return say("{cells}; {channels:,} channels", cells=cells, channels=channels)


def tokens_text(size: str, others: int) -> str:
    """Write which tokens there are: so many patches, and those that stand for none.

    >>> from hookviz.capturing.list_layers import tokens_text
    >>> tokens_text("14×14", 1)
    '14×14 patches and a class token'
    """
    if others == 0:
        return say("{size} patches", size=size)
    if others == 1:
        return say("{size} patches and a class token", size=size)
    return say("{size} patches and {count} other tokens", size=size, count=others)
