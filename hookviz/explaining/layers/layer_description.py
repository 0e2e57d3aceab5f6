"""Describe a layer in words: one sentence on its operation, and a line of facts.

The sentence is for layers other than convolutions. The facts, such as kernel, stride and receptive
field, stand under a layer's name and in the tree of layers.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import nn

from hookviz.capturing.list_layers import tokens_text
from hookviz.explaining.receptive_fields.extent import ALL, WINDOWS
from hookviz.explaining.receptive_fields.receptive_field import ReceptiveField
from hookviz.language.saying import localised, mark, say
from hookviz.types import LAST, TOKENS, LayerInfo, Model
from hookviz.wording import times


def describe_layer(model: Model, layer: LayerInfo) -> str:
    """Describe in one sentence what the layer, or block of layers, makes of its input.

    A class of torch's own is described by what torch documents; any other by its parts and shapes,
    for nothing else is known of it.

    Raises:
        AttributeError: the network has no layer of that name.
    """
    if layer.is_function:
        return say(
            "{function}, a function in the code of the network, does what a {kind} layer does: "
            "{input_shape} in, {output_shape} out.",
            function=layer.name.rpartition(".")[2].partition(" ")[0],
            kind=layer.kind,
            input_shape=times(layer.input_shape),
            output_shape=times(layer.output_shape),
        )
    module: Any = model.network.get_submodule(layer.name)
    own = (kind for kind in _PHRASES if isinstance(module, kind))
    describe = next(  # of a class that computes as torch's own does
        (_PHRASES[kind] for kind in own if type(module).forward is kind.forward), None
    )
    if describe is not None:
        return f"{layer.kind} {describe(module)}."
    shapes = say(
        "{input_shape} in, {output_shape} out",
        input_shape=times(layer.input_shape),
        output_shape=times(layer.output_shape),
    )
    parts = sum(not any(part.children()) for part in module.modules())
    if not any(module.children()):
        return say(
            "{kind} makes maps of its input by code of its own: {shapes}.",
            kind=layer.kind,
            shapes=shapes,
        )
    return say(
        "{kind} is a block of {parts:,} layers, and these maps are its result: {shapes}.",
        kind=layer.kind,
        parts=parts,
        shapes=shapes,
    )


def _normalisation(module: Any) -> str:
    whose = (
        say("learned from the training images")
        if module.track_running_stats
        else say("of this image")
    )
    then = (
        say(", then multiplies by a learned scale and adds a learned shift")
        if module.affine
        else ""
    )
    return say(
        "subtracts each channel's mean and divides by its standard deviation, both {scope}{affine}",
        scope=whose,
        affine=then,
    )


def _pooling(what: str) -> Callable[[Any], str]:
    def describe(module: Any) -> str:
        size = _pair(module.kernel_size)
        return say(
            "keeps the {statistic} of each {size} cells, {steps}",
            statistic=say(what),
            size=times(size),
            steps=_steps(module.stride),
        )

    return describe


def _steps(stride: Any) -> str:
    down, across = _pair(stride)
    if (down, across) == (1, 1):
        return say("cell by cell")
    steps = (
        f"{down}"
        if down == across
        else say("{rows} down and {columns} across", rows=down, columns=across)
    )
    return say("in steps of {steps}", steps=steps)


def _adaptive_pooling(what: str) -> Callable[[Any], str]:
    def describe(module: Any) -> str:
        size = _pair(module.output_size)
        if size == (1, 1):
            return say(
                "keeps one number of each channel: the {statistic} of its map", statistic=say(what)
            )
        wanted = "×".join(say("as many") if side is None else str(side) for side in size)
        return say(
            "keeps the {statistic} of each part of the map, so that {size} cells are left",
            statistic=say(what),
            size=wanted,
        )

    return describe


def _pair(size: Any) -> tuple[Any, Any]:
    sides = tuple(size) if isinstance(size, Sequence) else (size,)
    return sides[0], sides[-1]


def _fixed(sentence: str) -> Callable[[Any], str]:
    return lambda _module: say(sentence)


_IDENTITY = _fixed(mark("hands its input on as it is: outside of training it does nothing"))
_PHRASES: Mapping[type[nn.Module], Callable[[Any], str]] = {
    nn.ReLU: _fixed(mark("keeps what is above zero, and puts 0 for all that is below")),
    nn.ReLU6: _fixed(
        mark("puts 0 for what is below zero and 6 for what is above 6, and keeps the rest")
    ),
    nn.LeakyReLU: lambda module: say(
        "keeps what is above zero, and multiplies what is below by {factor:g}",
        factor=module.negative_slope,
    ),
    nn.PReLU: _fixed(
        mark("keeps what is above zero, and multiplies what is below by a learned slope")
    ),
    nn.ELU: _fixed(
        mark("keeps what is above zero, and bends what is below, so that it ends at −α")
    ),
    nn.SiLU: _fixed(
        mark("multiplies each value by its own sigmoid: what is far below zero becomes 0")
    ),
    nn.GELU: _fixed(
        mark(
            "multiplies each value by the normal distribution's share below it: what is "
            "far below zero becomes 0"
        )
    ),
    nn.Mish: _fixed(mark("multiplies x by tanh(log(1 + eˣ)): what is far below zero becomes 0")),
    nn.Hardswish: _fixed(
        mark("multiplies x by min(max(x + 3, 0), 6) / 6: what is below −3 becomes 0")
    ),
    nn.Hardsigmoid: _fixed(mark("makes min(max(x + 3, 0), 6) / 6 of x, a number from 0 to 1")),
    nn.Sigmoid: _fixed(mark("squeezes each value into 0…1, by 1 / (1 + e⁻ˣ)")),
    nn.Tanh: _fixed(mark("squeezes each value into −1…1")),
    nn.BatchNorm2d: _normalisation,
    nn.InstanceNorm2d: _normalisation,
    nn.GroupNorm: lambda module: say(
        "subtracts the mean and divides by the standard deviation of each of "
        "{count} groups of channels of this image",
        count=module.num_groups,
    ),
    nn.MaxPool2d: _pooling("largest"),
    nn.AvgPool2d: _pooling("mean"),
    nn.AdaptiveMaxPool2d: _adaptive_pooling("largest"),
    nn.AdaptiveAvgPool2d: _adaptive_pooling("mean"),
    nn.Upsample: _fixed(mark("brings the maps to another size, and makes up the cells in between")),
    nn.PixelShuffle: lambda module: say(
        "lays {count} channels out as one of {factor} times the side",
        count=module.upscale_factor**2,
        factor=module.upscale_factor,
    ),
    nn.ZeroPad2d: _fixed(mark("puts a margin of zeros around each map")),
    nn.ReflectionPad2d: _fixed(mark("puts a margin around each map, in which it is mirrored")),
    nn.Dropout: _IDENTITY,
    nn.Dropout2d: _IDENTITY,
    nn.Identity: _IDENTITY,
}
"""Makes the phrase that follows the class's name in the sentence, given the module."""


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
        parts.append(say("{parameters:,} parameters", parameters=layer.parameters))
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
