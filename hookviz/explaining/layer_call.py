"""Hold the record of one call of a layer that sums products: what made its output, what came next.

That is a convolution, or a linear layer on maps or tokens, which is a convolution of 1×1 there.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from hookviz.errors import SettingError
from hookviz.explaining.conv_arguments import padding_around, pair
from hookviz.explaining.rounding import relative_tolerance
from hookviz.hooking.torch_functions import function_name
from hookviz.language.saying import mark, say
from hookviz.types import FIRST, Layout

CONVOLUTIONS = Layout(FIRST)
"""How what convolutions take and give lies."""


@dataclass(frozen=True, slots=True)
class Normalisation:
    """Normalisation of one cell: ``(x - mean) / √(variance + epsilon) · scale + shift``.

    Scale and shift are 1 and 0 where the layer learned none. Mean and variance are the learned
    ones, or this very map's where a layer normalises each image by itself.
    """

    mean: float
    variance: float
    scale: float
    shift: float
    epsilon: float

    def apply(self, value: float) -> float:
        """Apply the formula to one value."""
        deviation = math.sqrt(self.variance + self.epsilon)
        return (value - self.mean) / deviation * self.scale + self.shift


@dataclass(frozen=True, slots=True)
class Step:
    """Operation that a cell's value went through after its convolution.

    Attributes:
        layer: the module's name; empty where the network calls the function itself.
        kind: the module's class such as ``"BatchNorm2d"``, or the function such as ``"relu"``.
        value: the cell's value after it, as recorded.
        norm: the numbers of a batch or instance norm; None for everything else.
    """

    layer: str
    kind: str
    value: float
    norm: Normalisation | None


@dataclass(frozen=True, eq=False, slots=True)
class FollowingOp:
    """Normalisation or activation that a layer's output went through next.

    Attributes:
        layer, kind: as in `Step`.
        values: all it put out, float32 on the CPU, ``(C, H, W)``.
        norm: mean, variance, scale and shift of each channel, ``(4, C)``; None where it is no
            batch or instance norm.
        epsilon: added to the variance.
    """

    layer: str
    kind: str
    values: Tensor = field(repr=False)
    norm: Tensor | None = field(default=None, repr=False)
    epsilon: float = 0.0

    def at(self, channel: int, row: int, column: int) -> Step:
        """Return what it did to one cell."""
        norm = None
        if self.norm is not None:
            mean, variance, scale, shift = self.norm[:, channel].tolist()
            norm = Normalisation(mean, variance, scale, shift, self.epsilon)
        return Step(self.layer, self.kind, float(self.values[channel, row, column]), norm)


@dataclass(frozen=True, eq=False, slots=True)
class LayerCall:
    """Record of one layer call with all that made its output: any cell of it can be explained.

    Of a linear layer everything is as of a convolution of 1×1: prefix tokens are left out.

    All tensors are float32 on the CPU and belong to this record alone.

    Attributes:
        layer: written address of the call, ``"conv1"`` or ``"conv1#1"`` for its second one.
        kernel: the weights as used, ``(output channels, C/groups, kernel height, width)``.
        bias: ``(output channels,)``, or None.
        padded: the layer's input with its padding around it, ``(C, height, width)``.
        corner: (rows, columns) of padding above and left of the input.
        size: (height, width) of the input without padding.
        stride, dilation: (vertical, horizontal) in cells of the input.
        groups: into how many groups the channels are split.
        output: what the layer put out, ``(output channels, H, W)``.
        steps: normalisation and activation that followed.
        rounding: relative rounding of the network's arithmetic, see `CellSum.agrees`.
    """

    layer: str
    kernel: Tensor = field(repr=False)
    bias: Tensor | None = field(repr=False)
    padded: Tensor = field(repr=False)
    corner: tuple[int, int]
    size: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    groups: int
    output: Tensor = field(repr=False)
    steps: tuple[FollowingOp, ...]
    rounding: float

    @property
    def input(self) -> Tensor:
        """The layer's input without padding, ``(C, H, W)``; a view."""
        (top, left), (height, width) = self.corner, self.size
        return self.padded[:, top : top + height, left : left + width]

    @property
    def nbytes(self) -> int:
        """Memory that its tensors take, in bytes."""
        tensors = [self.kernel, self.bias, self.padded, self.output]
        for step in self.steps:
            tensors += [step.values, step.norm]
        return sum(tensor.nbytes for tensor in tensors if tensor is not None)

    def inputs_of(self, channel: int) -> range:
        """Return the input channels that an output channel sees, those of its group.

        Raises:
            SettingError: the layer has no such channel.
        """
        check_range(self.layer, "channel", channel, self.kernel.shape[0])
        count = self.kernel.shape[1]
        group = channel // (self.kernel.shape[0] // self.groups)
        return range(group * count, (group + 1) * count)


def layer_call(
    layer: str,
    arguments: Mapping[str, Any],
    pads: tuple[int, ...],
    layer_input: Tensor,
    output: Tensor,
) -> LayerCall:
    """Build the record of a convolution from the arguments of torch's conv2d.

    Args:
        layer: written address.
        arguments: conv2d's by name, all of them.
        pads: what was padded to the layer's input before: left, right, top, bottom, or the first
            two, as in `F.pad`.
        layer_input: ``(C, H, W)`` or ``(1, C, H, W)``, before that padding.
        output: the layer's output, likewise.
    """
    kernel, dilation = float_copy(arguments["weight"]), pair(arguments["dilation"])
    left, right, top, bottom = padding_around(arguments["padding"], kernel.shape[2:], dilation)
    return LayerCall(
        layer=layer,
        kernel=kernel,
        bias=None if arguments["bias"] is None else float_copy(arguments["bias"]),
        padded=F.pad(float_copy(map_of(arguments["input"])), (left, right, top, bottom)),
        corner=((*pads, 0, 0)[2] + top, (*pads, 0)[0] + left),
        size=(layer_input.shape[-2], layer_input.shape[-1]),
        stride=pair(arguments["stride"]),
        dilation=dilation,
        groups=arguments["groups"],
        output=float_copy(map_of(output)),
        steps=(),
        rounding=relative_tolerance(output),
    )


def linear_call(
    layer: str, arguments: Mapping[str, Any], layout: Layout, output: Tensor
) -> LayerCall:
    """Build the record of a linear layer on maps or tokens from the arguments of torch's linear.

    Args:
        layer: written address.
        arguments: linear's by name, all of them.
        layout: how its input and its output lie.
        output: the layer's output.
    """
    given = float_copy(map_of(arguments["input"], layout))
    return LayerCall(
        layer=layer,
        kernel=float_copy(arguments["weight"])[:, :, None, None],
        bias=None if arguments["bias"] is None else float_copy(arguments["bias"]),
        padded=given,
        corner=(0, 0),
        size=(given.shape[1], given.shape[2]),
        stride=(1, 1),
        dilation=(1, 1),
        groups=1,
        output=float_copy(map_of(output, layout)),
        steps=(),
        rounding=relative_tolerance(output),
    )


def following_op(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    output: Tensor,
    layout: Layout,
) -> FollowingOp:
    """Make a step from the function's arguments and its result."""
    step = FollowingOp("", function_name(func), float_copy(map_of(output, layout)))
    if output.ndim != 4 or func not in (F.batch_norm, F.instance_norm):
        return step
    bound = inspect.signature(func).bind(*args, **kwargs)
    bound.apply_defaults()
    arguments = bound.arguments
    mean, variance = arguments["running_mean"], arguments["running_var"]
    if mean is None or arguments.get("training") or arguments.get("use_input_stats"):
        variance, mean = torch.var_mean(arguments["input"], (0, 2, 3), correction=0)
    scale = torch.ones_like(mean) if arguments["weight"] is None else arguments["weight"]
    shift = torch.zeros_like(mean) if arguments["bias"] is None else arguments["bias"]
    norm = torch.stack([float_copy(part) for part in (mean, variance, scale, shift)])
    return replace(step, norm=norm, epsilon=arguments["eps"])


def float_copy(tensor: Tensor) -> Tensor:
    """Copy a tensor to the CPU as float32, so that later writes to the original don't show."""
    return tensor.detach().to("cpu", torch.float32, copy=True).contiguous()


_OUT_OF_RANGE = {
    "channel": mark("{layer} has no channel {index}: its channels are 0 to {last}."),
    "row": mark("{layer} has no row {index}: its rows are 0 to {last}."),
    "column": mark("{layer} has no column {index}: its columns are 0 to {last}."),
    "call": mark("{layer} has no call {index}: its calls are 1 to {last}."),
}


def check_range(layer: str, axis: str, index: int, count: int) -> None:
    """Refuse an index that is not below `count`.

    Raises:
        SettingError: it names the range.
    """
    if not 0 <= index < count:
        shift = int(axis == "call")  # which people count from 1
        said = say(_OUT_OF_RANGE[axis], layer=layer, index=index + shift, last=count - 1 + shift)
        raise SettingError(said)


def map_of(tensor: Tensor, layout: Layout = CONVOLUTIONS) -> Tensor:
    """View the maps of one image, ``(C, H, W)``, with or without a batch before."""
    maps = layout.maps(tensor)
    return maps[0] if maps.ndim == 4 else maps
