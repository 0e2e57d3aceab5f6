"""Write a layer's facts as text: for the line under its name and for the tree."""

from collections.abc import Sequence

from hookviz.capturing.list_layers import tokens_text
from hookviz.explaining.receptive_attention import ALL, WINDOWS
from hookviz.explaining.receptive_field import ReceptiveField
from hookviz.language.saying import localised, say
from hookviz.types import LAST, TOKENS, LayerInfo
from hookviz.wording import times


def facts(layer: LayerInfo, field: ReceptiveField | None) -> str:
    """Write kernel, stride, dilation, groups, channels, weights, work and field in one line."""
    channels, *sides = layer.output_shape
    size = times(sides)
    if layer.layout == TOKENS:
        size = tokens_text(size, layer.prefix_tokens)
    taken = (
        localised(f"{layer.input_shape[0]:,}") + " → "
        if len(layer.input_shape) == len(sides) + 1
        else ""
    )
    parts = _convolution(layer) if layer.kernel_size else [layer.kind]
    parts.append(
        say(
            "{inputs}{channels:,} channels of {size}",
            inputs=taken,
            channels=channels,
            size=size,
        )
    )
    if layer.layout == LAST:
        parts.append(say("channels last"))
    if layer.parameters:
        parts.append(say("{parameters:,} weights", parameters=layer.parameters))
    if layer.multiply_adds:
        parts.append(say("{amount} multiply-adds", amount=amount(layer.multiply_adds)))
    parts.append(field_text(field))
    if layer.calls > 1:
        shown = say(", the first is shown") if layer.kernel_size else ""
        parts.append(say("runs {calls} times{note}", calls=layer.calls, note=shown))
    return " · ".join(parts)


def _convolution(layer: LayerInfo) -> list[str]:
    kind = say("transposed convolution") if "Transpose" in layer.kind else say("convolution")
    parts = [f"{times(layer.kernel_size)} {kind}"]
    if set(layer.stride) != {1}:
        parts.append(say("stride {stride}", stride=_once(layer.stride)))
    if set(layer.dilation) != {1}:
        parts.append(say("dilation {dilation}", dilation=_once(layer.dilation)))
    if layer.groups > 1:
        depthwise = layer.groups == layer.input_shape[0]
        parts.append("depthwise" if depthwise else say("{groups} groups", groups=layer.groups))
    return parts


def kernel_text(layer: LayerInfo) -> str:
    """Write kernel, stride and dilation in a few signs, ``"3×3 /2"``; the kind of other layers."""
    if not layer.kernel_size:
        return layer.kind
    stride = f" /{_once(layer.stride)}" if set(layer.stride) != {1} else ""
    dilation = (
        say(" dilated {dilation}", dilation=_once(layer.dilation))
        if set(layer.dilation) != {1}
        else ""
    )
    groups = say(" in {groups} groups", groups=layer.groups) if layer.groups > 1 else ""
    if layer.groups > 1 and layer.groups == layer.input_shape[0]:
        groups = " depthwise"
    return f"{times(layer.kernel_size)}{stride}{dilation}{groups}"


def field_text(field: ReceptiveField | None) -> str:
    """Write a receptive field's size, ``"sees 35×35 px"``, and what attention did to it."""
    if field is None:
        return say("sees an unknown part")
    size = times(field.size or ())
    if field.mixed == WINDOWS:
        if field.size is None:
            return say("sees at most the whole image, by attention in windows")
        return say("sees at most {size} px, by attention in windows", size=size)
    if field.size is None:
        return (
            say("attention mixes all patches: sees all of the image")
            if field.mixed == ALL
            else say("sees the whole image")
        )
    return say("sees {size} px", size=size)


def amount(count: int) -> str:
    """Write a count with a unit: ``"36.9 k"``."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= size:
            return localised(f"{count / size:.3g} {unit}")
    return str(count)


def _once(sizes: Sequence[int]) -> str:
    return str(sizes[0]) if len(set(sizes)) == 1 else times(sizes)
