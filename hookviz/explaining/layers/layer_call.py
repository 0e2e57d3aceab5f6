"""Record of one call of a layer that sums products, and each of its cells as that sum.

That is a convolution, or a linear layer on maps or tokens, which is a convolution of 1×1 there. A
cell is kernel × patch per input channel, plus the bias, then the steps that follow. The record
comes from a pass (`hookviz.explaining.layers.layer_recorder`); here is its arithmetic, in double
precision where it bounds the network's rounding errors.
"""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz.errors import SettingError
from hookviz.hooking.torch_functions import function_name
from hookviz.language.saying import mark, say
from hookviz.types import FIRST, Layout


def pair(argument: int | Sequence[int]) -> tuple[int, int]:
    """Expand an argument that may be one number for both axes to (vertical, horizontal)."""
    if isinstance(argument, int):
        return argument, argument
    return int(argument[0]), int(argument[-1])


def padding_around(
    padding: Any, kernel: Sequence[int], dilation: tuple[int, int]
) -> tuple[int, int, int, int]:
    """Return the columns and rows of zeros that ``conv2d`` pads: left, right, top, bottom.

    With ``"same"`` they are dilation · (kernel − 1) in all; an odd one goes to the bottom and to
    the right.

    `padding` is as ``conv2d`` takes it: a number, a pair, ``"valid"`` or ``"same"``. `kernel` is
    (height, width) in taps, `dilation` the (vertical, horizontal) distance of the taps.
    """
    if padding == "same":
        rows, columns = (step * (count - 1) for step, count in zip(dilation, kernel, strict=True))
        return columns // 2, columns - columns // 2, rows // 2, rows - rows // 2
    vertical, horizontal = (0, 0) if padding == "valid" else pair(padding)
    return horizontal, horizontal, vertical, vertical


_FLOAT32_ROUNDING = 1e-5
_TF32_EPSILON = 2.0**-10  # what a GPU may compute float32 convolutions with
_MAX_DOUBLES = 1 << 20  # weights at a time


def output_in_float64(module: nn.Module, image: Tensor) -> Tensor | None:
    """Recompute a Conv2d or Linear on `image`, float64; None for one that computes otherwise."""
    if "forward" in vars(module):  # somebody replaced the method
        return None
    forward = getattr(type(module), "forward", None)  # which the class of a script has not
    if isinstance(module, nn.Linear) and forward is nn.Linear.forward:
        rows = image.double()
        exact = torch.cat([rows @ part.T for part in iter_double_rows(module.weight)], -1)
        return exact if module.bias is None else exact + module.bias.double()
    if not isinstance(module, nn.Conv2d) or forward is not nn.Conv2d.forward:
        return None
    if type(module)._conv_forward is not nn.Conv2d._conv_forward:
        return None
    padded, padding = image.double(), module.padding
    if module.padding_mode != "zeros":
        pads = module._reversed_padding_repeated_twice
        padded, padding = F.pad(padded, pads, mode=module.padding_mode), (0, 0)
    return F.conv2d(
        padded,
        module.weight.double(),
        None if module.bias is None else module.bias.double(),
        module.stride,
        padding,
        module.dilation,
        module.groups,
    )


def iter_double_rows(weight: Tensor) -> Iterator[Tensor]:
    """Yield a layer's weights in double precision by rows: there can be 100 million."""
    for part in torch.split(weight, max(1, _MAX_DOUBLES // weight[0].numel())):
        yield part.double()


def relative_tolerance(tensor: Tensor) -> float:
    """Return by which share of a sum of magnitudes a network's arithmetic may be off; 0 for ints.

    1e-5 in single precision; twice the machine epsilon in float16, in bfloat16 and off the CPU,
    where float32 may be multiplied as TF32.
    """
    if not tensor.is_floating_point():
        return _FLOAT32_ROUNDING if tensor.is_complex() else 0.0
    epsilon = torch.finfo(tensor.dtype).eps
    if tensor.device.type != "cpu":
        epsilon = max(epsilon, _TF32_EPSILON)
    return max(_FLOAT32_ROUNDING, 2 * epsilon)


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
            SettingError: the layer lacks that channel.
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

    `pads` is the padding that the network added to the input before: left, right, top, bottom, or
    the first two, as in `F.pad`. `layer_input` is the input before that padding; it and the output
    are ``(C, H, W)`` or ``(1, C, H, W)``.
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

    `layout` is that of its input and its output.
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


def check_cell(layer: str, output: Tensor, channel: int, row: int, column: int) -> None:
    """Refuse a cell that is not in a layer's output, ``(C, H, W)``.

    Raises:
        SettingError: it names the range.
    """
    cell = {"channel": channel, "row": row, "column": column}
    for (axis, index), count in zip(cell.items(), output.shape, strict=True):
        check_range(layer, axis, index, count)


def is_near(total: float, value: float, tolerance: float) -> bool:
    """Return whether two numbers differ by the tolerance at most; NaN is near NaN."""
    if math.isfinite(total):
        return abs(total - value) <= tolerance
    return total == value or (math.isnan(total) and math.isnan(value))


def map_of(tensor: Tensor, layout: Layout = CONVOLUTIONS) -> Tensor:
    """View the maps of one image, ``(C, H, W)``, with or without a batch before."""
    maps = layout.maps(tensor)
    return maps[0] if maps.ndim == 4 else maps


@dataclass(frozen=True, eq=False, slots=True)
class CellSum:
    """One output cell of a convolution as a sum of products.

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
        return is_near(self.total, self.value, self.tolerance)


def explain_cell(call: LayerCall, channel: int, row: int, column: int) -> CellSum:
    """Write one cell of a recorded layer's output as the sum that made it.

    ``y[k, i, j] = b_k + Σ_{c, u, v} w[k, c, u, v] · x[c, s·i + d·u, s·j + d·v]``, x padded, with
    stride s and dilation d: the cross-correlation that torch's ``Conv2d`` documents.

    Raises:
        SettingError: the layer lacks that channel, row or column.
    """
    check_cell(call.layer, call.output, channel, row, column)
    first = (row * call.stride[0], column * call.stride[1])
    rows_read, columns_read = (
        start + step * np.arange(count)
        for start, step, count in zip(first, call.dilation, call.kernel.shape[2:], strict=True)
    )
    inputs = call.inputs_of(channel)
    kernel = call.kernel[channel].numpy().copy()
    patch = call.padded.numpy()[inputs.start : inputs.stop, rows_read[:, None], columns_read]
    bias = None if call.bias is None else float(call.bias[channel])
    with np.errstate(invalid="ignore", over="ignore"):  # a network may hold infinite values
        products = kernel.astype(np.float64) * patch
        terms: NDArray[np.float64] = products.sum((1, 2))
        total = float(terms.sum()) + (bias or 0.0)
        size = float(np.abs(products).sum()) + abs(bias or 0.0)
    rows, columns = rows_read - call.corner[0], columns_read - call.corner[1]
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
