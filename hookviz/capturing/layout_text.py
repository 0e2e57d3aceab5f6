"""Write in words how a layer has what it puts out: its channels, rows and columns, or tokens."""

from hookviz.language.saying import say
from hookviz.types import LAST, TOKENS, WINDOWS, LayerInfo
from hookviz.wording import times


def layout_text(layer: LayerInfo) -> str:
    """Write a layer's layout in a few words; empty of what has one axis, or none.

    >>> from hookviz.capturing.layout_text import layout_text
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

    >>> from hookviz.capturing.layout_text import tokens_text
    >>> tokens_text("14×14", 1)
    '14×14 patches and a class token'
    """
    if others == 0:
        return say("{size} patches", size=size)
    if others == 1:
        return say("{size} patches and a class token", size=size)
    return say("{size} patches and {count} other tokens", size=size, count=others)
