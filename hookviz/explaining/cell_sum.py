"""One cell of a feature map as the sum it is: kernel × patch per input channel, plus the bias.

Pure arithmetic on the record of a layer's call, which
`hookviz.explaining.layer_recorder` makes in a pass.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz.errors import SettingError

_FLOAT32_ROUNDING = 1e-5
_TF32_EPSILON = 2.0**-10  # what a GPU may compute float32 convolutions with


@dataclass(frozen=True, slots=True)
class Normalisation:
    """What a normalisation does to a cell: ``(x - mean) / √(variance + epsilon) · scale + shift``.

    Scale and shift are 1 and 0 where the layer learned none. Mean and variance are the learned
    ones, or this very map's where a layer normalises each image by itself.
    """

    mean: float
    variance: float
    scale: float
    shift: float
    epsilon: float

    def of(self, value: float) -> float:
        """The formula for one value."""
        deviation = math.sqrt(self.variance + self.epsilon)
        return (value - self.mean) / deviation * self.scale + self.shift


@dataclass(frozen=True, slots=True)
class Step:
    """What happened to a cell after its convolution.

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
class Following:
    """A normalisation or activation that a layer's output went through next.

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
        """What it did to one cell."""
        norm = None
        if self.norm is not None:
            mean, variance, scale, shift = self.norm[:, channel].tolist()
            norm = Normalisation(mean, variance, scale, shift, self.epsilon)
        return Step(self.layer, self.kind, float(self.values[channel, row, column]), norm)


@dataclass(frozen=True, eq=False, slots=True)
class LayerCall:
    """One call of one conv layer with all that made its output, to explain any cell of it at once.

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
        steps: what the output went through next.
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
    steps: tuple[Following, ...]
    rounding: float

    @property
    def input(self) -> Tensor:
        """The layer's input without padding, ``(C, H, W)``; a view."""
        (top, left), (height, width) = self.corner, self.size
        return self.padded[:, top : top + height, left : left + width]

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it takes."""
        tensors = [self.kernel, self.bias, self.padded, self.output]
        for step in self.steps:
            tensors += [step.values, step.norm]
        return sum(tensor.nbytes for tensor in tensors if tensor is not None)

    def inputs_of(self, channel: int) -> range:
        """Numbers of the input channels that an output channel sees: those of its group.

        Raises:
            SettingError: the layer has no such channel.
        """
        check_range(self.layer, "channel", channel, self.kernel.shape[0])
        count = self.kernel.shape[1]
        group = channel // (self.kernel.shape[0] // self.groups)
        return range(group * count, (group + 1) * count)


@dataclass(frozen=True, eq=False, slots=True)
class CellSum:
    """One cell of one channel as a sum of products.

    Attributes:
        layer: the conv layer's written address.
        channel, row, column: the cell of the layer's output.
        kernel: the weights that made it, float32, ``(C/groups, kernel height, kernel width)``.
        patch: the layer's input under the kernel, same shape, padding filled in as the layer does.
        inside: ``(kernel height, kernel width)``, False where a tap lies in the padding.
        origin: (row, column) of the first tap in the layer's input; negative in the padding.
        dilation: (vertical, horizontal) distance of the taps in cells of the input.
        inputs: numbers of the input channels that this channel's group sees, ``C/groups`` of them.
        terms: sum of kernel × patch per input channel, float64, ``(C/groups,)``.
        order: positions in `inputs` and `terms`, the term of the largest size first.
        bias: added last; None where the layer has none.
        value: what the network computed.
        total: the sum of `terms` and `bias` in double precision.
        tolerance: how far `value` may be from `total`, see `agrees`.
        steps: batch norm and activation as they followed in the pass; empty where neither did.
    """

    layer: str
    channel: int
    row: int
    column: int
    kernel: NDArray[np.float32] = field(repr=False)
    patch: NDArray[np.float32] = field(repr=False)
    inside: NDArray[np.bool_] = field(repr=False)
    origin: tuple[int, int]
    dilation: tuple[int, int]
    inputs: tuple[int, ...] = field(repr=False)
    terms: NDArray[np.float64] = field(repr=False)
    order: tuple[int, ...] = field(repr=False)
    bias: float | None
    value: float
    total: float
    tolerance: float
    steps: tuple[Step, ...]

    @property
    def agrees(self) -> bool:
        """Whether the sum is the network's value up to the rounding of the network's arithmetic.

        ``|total - value| ≤ rounding · (Σ|kernel × patch| + |bias|)``, the form of the usual bound
        on a sum's rounding error (Higham, "Accuracy and stability of numerical algorithms", 3.1).
        The rounding is 1e-5 in single precision. It is twice the machine epsilon in float16, in
        bfloat16 and off the CPU, where float32 may be multiplied as TF32.
        """
        if math.isfinite(self.total):
            return abs(self.total - self.value) <= self.tolerance
        return self.total == self.value or (math.isnan(self.total) and math.isnan(self.value))


def explain(call: LayerCall, channel: int, row: int, column: int) -> CellSum:
    """One cell of a recorded layer's output as the sum that made it.

    Raises:
        SettingError: the layer has no such channel, row or column.
    """
    place = {"channel": channel, "row": row, "column": column}
    for (what, given), count in zip(place.items(), call.output.shape, strict=True):
        check_range(call.layer, what, given, count)
    first = (row * call.stride[0], column * call.stride[1])
    tall, wide = (
        start + step * np.arange(count)
        for start, step, count in zip(first, call.dilation, call.kernel.shape[2:], strict=True)
    )
    inputs = call.inputs_of(channel)
    kernel = call.kernel[channel].numpy().copy()
    patch = call.padded.numpy()[inputs.start : inputs.stop, tall[:, None], wide]
    bias = None if call.bias is None else float(call.bias[channel])
    with np.errstate(invalid="ignore", over="ignore"):  # a network may hold infinite values
        products = kernel.astype(np.float64) * patch
        terms: NDArray[np.float64] = products.sum((1, 2))
        total = float(terms.sum()) + (bias or 0.0)
        size = float(np.abs(products).sum()) + abs(bias or 0.0)
    rows, columns = tall - call.corner[0], wide - call.corner[1]
    inside = ((rows >= 0) & (rows < call.size[0]))[:, None] & (
        (columns >= 0) & (columns < call.size[1])
    )
    return CellSum(
        layer=call.layer,
        channel=channel,
        row=row,
        column=column,
        kernel=kernel,
        patch=patch,
        inside=inside,
        origin=(int(rows[0]), int(columns[0])),
        dilation=call.dilation,
        inputs=tuple(inputs),
        terms=terms,
        order=tuple(np.argsort(-np.abs(terms), kind="stable").tolist()),
        bias=bias,
        value=float(call.output[channel, row, column]),
        total=total,
        tolerance=call.rounding * size + float(np.finfo(np.float32).tiny),
        steps=tuple(step.at(channel, row, column) for step in call.steps),
    )


def walk(call: LayerCall, channel: int, rows: int = 2) -> Iterator[CellSum]:
    """The cells of a channel's first `rows` rows one after the other, as the kernel walks.

    Raises:
        SettingError: the layer has no such channel.
    """
    channels, height, width = call.output.shape
    check_range(call.layer, "channel", channel, channels)
    return (
        explain(call, channel, row, column)
        for row in range(min(rows, height))
        for column in range(width)
    )


def call_from(conv: nn.Conv2d, given: Tensor, output: Tensor, layer: str = "conv") -> LayerCall:
    """The record of a layer's call from its input ``(C, H, W)`` and output ``(channels, H, W)``.

    Right for the layers whose forward is `nn.Conv2d`'s own; nothing is known of what followed.
    """
    with torch.no_grad():
        pads = tuple(conv._reversed_padding_repeated_twice)  # "same" worked out in numbers
        mode = "constant" if conv.padding_mode == "zeros" else conv.padding_mode
        made = {
            "input": F.pad(given[None], pads, mode=mode),
            "weight": conv.weight,
            "bias": conv.bias,
            "stride": conv.stride,
            "padding": 0,
            "dilation": conv.dilation,
            "groups": conv.groups,
        }
        return layer_call(layer, made, pads, given, output)


def explain_from(
    conv: nn.Conv2d, given: Tensor, output: Tensor, *, channel: int, row: int, column: int
) -> CellSum:
    """One cell from a layer, its input ``(C, H, W)`` and its output ``(channels, H, W)``.

    For many cells of one layer make the record once, with `call_from`.

    Raises:
        SettingError: the layer has no such channel, row or column.
    """
    return explain(call_from(conv, given, output), channel, row, column)


def layer_call(
    layer: str, made: Mapping[str, Any], pads: tuple[int, ...], given: Tensor, output: Tensor
) -> LayerCall:
    """The record of a convolution from the arguments of torch's conv2d.

    Args:
        layer: written address.
        made: conv2d's arguments by name, all of them.
        pads: what was put around the layer's input before: left, right, top, bottom, or the first
            two, as in `F.pad`.
        given: the layer's input, ``(C, H, W)`` or ``(1, C, H, W)``.
        output: the layer's output, likewise.
    """
    kernel, dilation = own(made["weight"]), _pair(made["dilation"])
    left, right, top, bottom = _zeros_around(made["padding"], kernel, dilation)
    return LayerCall(
        layer=layer,
        kernel=kernel,
        bias=None if made["bias"] is None else own(made["bias"]),
        padded=F.pad(own(_map_of(made["input"])), (left, right, top, bottom)),
        corner=((*pads, 0, 0)[2] + top, (*pads, 0)[0] + left),
        size=(given.shape[-2], given.shape[-1]),
        stride=_pair(made["stride"]),
        dilation=dilation,
        groups=made["groups"],
        output=own(_map_of(output)),
        steps=(),
        rounding=_rounding(output),
    )


def own(tensor: Tensor) -> Tensor:
    """A float32 copy on the CPU, whatever happens to the original."""
    return tensor.detach().to("cpu", torch.float32, copy=True).contiguous()


def check_range(layer: str, what: str, given: int, count: int) -> None:
    """Refuse a number that is not one of `count`, counted from 0.

    Raises:
        SettingError: naming the range.
    """
    if not 0 <= given < count:
        raise SettingError(f"{layer} has no {what} {given}: its {what}s are 0 to {count - 1}.")


def _map_of(tensor: Tensor) -> Tensor:
    return tensor[0] if tensor.ndim == 4 else tensor


def _pair(given: int | tuple[int, ...] | list[int]) -> tuple[int, int]:
    """(vertical, horizontal) of an argument that may be one number for both."""
    return (given, given) if isinstance(given, int) else (given[0], given[-1])


def _zeros_around(
    padding: Any, kernel: Tensor, dilation: tuple[int, int]
) -> tuple[int, int, int, int]:
    """Columns and rows of zeros that conv2d adds by itself: left, right, top, bottom."""
    if padding == "same":  # an odd one goes to the bottom and to the right
        tall, wide = (
            step * (count - 1) for step, count in zip(dilation, kernel.shape[2:], strict=True)
        )
        return wide // 2, wide - wide // 2, tall // 2, tall - tall // 2
    vertical, horizontal = (0, 0) if padding == "valid" else _pair(padding)
    return horizontal, horizontal, vertical, vertical


def _rounding(output: Tensor) -> float:
    epsilon = torch.finfo(output.dtype).eps
    if output.device.type != "cpu":
        epsilon = max(epsilon, _TF32_EPSILON)
    return max(_FLOAT32_ROUNDING, 2 * epsilon)
