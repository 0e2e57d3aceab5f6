"""Write one cell of a feature map as a sum: kernel × patch per input channel, plus the bias.

Pure arithmetic on a `LayerCall`, which `hookviz.explaining.layer_recorder` records in a pass.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hookviz.explaining.layer_call import LayerCall, Step, check_range


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
        if math.isfinite(self.total):
            return abs(self.total - self.value) <= self.tolerance
        return self.total == self.value or (math.isnan(self.total) and math.isnan(self.value))


def explain_cell(call: LayerCall, channel: int, row: int, column: int) -> CellSum:
    """Write one cell of a recorded layer's output as the sum that made it.

    ``y[k, i, j] = b_k + Σ_{c, u, v} w[k, c, u, v] · x[c, s·i + d·u, s·j + d·v]``, x padded, with
    stride s and dilation d: the cross-correlation that torch's ``Conv2d`` documents.

    Raises:
        SettingError: the layer has no such channel, row or column.
    """
    cell = {"channel": channel, "row": row, "column": column}
    for (axis, index), count in zip(cell.items(), call.output.shape, strict=True):
        check_range(call.layer, axis, index, count)
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
