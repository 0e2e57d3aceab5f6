"""What a layer that is no convolution does to its input, in one sentence."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import nn

from hookviz.types import LayerInfo, Model
from hookviz.wording import times


def effect_of(model: Model, layer: LayerInfo) -> str:
    """One sentence on what the layer, or block of layers, makes of its input.

    A class of torch's own is described by what torch documents; any other, such as a person's own,
    by its parts and its shapes, for nothing else is known of it.

    Raises:
        AttributeError: the network has no layer of that name.
    """
    module: Any = model.network.get_submodule(layer.name)
    says = next((says for kind, says in _SAYS.items() if _is_plain(module, kind)), None)
    if says is not None:
        return f"{layer.kind} {says(module)}."
    shapes = f"{times(layer.input_shape)} in, {times(layer.output_shape)} out"
    parts = sum(not any(part.children()) for part in module.modules())
    if not any(module.children()):
        return f"{layer.kind} makes maps of its input by code of its own: {shapes}."
    return f"{layer.kind} is a block of {parts:,} layers, and these maps are its result: {shapes}."


def _is_plain(module: nn.Module, kind: type[nn.Module]) -> bool:
    """Whether the module is of that class and computes as the class does."""
    return isinstance(module, kind) and type(module).forward is kind.forward


def _normalises(module: Any) -> str:
    whose = "learned from the training images" if module.track_running_stats else "of this image"
    then = ", then multiplies by a learned scale and adds a learned shift" if module.affine else ""
    return (
        f"subtracts each channel's mean and divides by its standard deviation, both {whose}{then}"
    )


def _pools(what: str) -> Callable[[Any], str]:
    def says(module: Any) -> str:
        size = _pair(module.kernel_size)
        return f"keeps the {what} of each {times(size)} cells, {_steps(module.stride)}"

    return says


def _steps(stride: Any) -> str:
    down, across = _pair(stride)
    if (down, across) == (1, 1):
        return "cell by cell"
    steps = f"{down}" if down == across else f"{down} down and {across} across"
    return f"in steps of {steps}"


def _pools_to_size(what: str) -> Callable[[Any], str]:
    def says(module: Any) -> str:
        size = _pair(module.output_size)
        if size == (1, 1):
            return f"keeps one number of each channel: the {what} of its map"
        wanted = "×".join("as many" if side is None else str(side) for side in size)
        return f"keeps the {what} of each part of the map, so that {wanted} cells are left"

    return says


def _pair(size: Any) -> tuple[Any, Any]:
    sides = tuple(size) if isinstance(size, Sequence) else (size,)
    return sides[0], sides[-1]


def _always(sentence: str) -> Callable[[Any], str]:
    return lambda _module: sentence


_NOTHING = _always("hands its input on as it is: outside of training it does nothing")
_SAYS: Mapping[type[nn.Module], Callable[[Any], str]] = {
    nn.ReLU: _always("keeps what is above zero, and puts 0 for all that is below"),
    nn.ReLU6: _always(
        "puts 0 for what is below zero and 6 for what is above 6, and keeps the rest"
    ),
    nn.LeakyReLU: lambda module: (
        f"keeps what is above zero, and multiplies what is below by {module.negative_slope:g}"
    ),
    nn.PReLU: _always("keeps what is above zero, and multiplies what is below by a learned slope"),
    nn.ELU: _always("keeps what is above zero, and bends what is below, so that it ends at −α"),
    nn.SiLU: _always("multiplies each value by its own sigmoid: what is far below zero becomes 0"),
    nn.GELU: _always(
        "multiplies each value by the normal distribution's share below it: what is far below zero "
        "becomes 0"
    ),
    nn.Mish: _always("multiplies x by tanh(log(1 + eˣ)): what is far below zero becomes 0"),
    nn.Hardswish: _always("multiplies x by min(max(x + 3, 0), 6) / 6: what is below −3 becomes 0"),
    nn.Hardsigmoid: _always("makes min(max(x + 3, 0), 6) / 6 of x, a number from 0 to 1"),
    nn.Sigmoid: _always("squeezes each value into 0…1, by 1 / (1 + e⁻ˣ)"),
    nn.Tanh: _always("squeezes each value into −1…1"),
    nn.BatchNorm2d: _normalises,
    nn.InstanceNorm2d: _normalises,
    nn.GroupNorm: lambda module: (
        f"subtracts the mean and divides by the standard deviation of each of {module.num_groups} "
        "groups of channels of this image"
    ),
    nn.MaxPool2d: _pools("largest"),
    nn.AvgPool2d: _pools("mean"),
    nn.AdaptiveMaxPool2d: _pools_to_size("largest"),
    nn.AdaptiveAvgPool2d: _pools_to_size("mean"),
    nn.Upsample: _always("brings the maps to another size, and makes up the cells in between"),
    nn.PixelShuffle: lambda module: (
        f"lays {module.upscale_factor**2} channels out as one of {module.upscale_factor} times the "
        "side"
    ),
    nn.ZeroPad2d: _always("puts a margin of zeros around each map"),
    nn.ReflectionPad2d: _always("puts a margin around each map, in which it is mirrored"),
    nn.Dropout: _NOTHING,
    nn.Dropout2d: _NOTHING,
    nn.Identity: _NOTHING,
}
"""What follows the class's name in the sentence, given the module."""
