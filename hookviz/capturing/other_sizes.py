"""Run a network at a larger input, and tell rows, columns and channels by how their axes grow.

1. Make the input taller and wider at once, one way by twice as many pixels as the other.
2. At any stride the one axis grows by twice as many cells as the other, which tells them apart.
3. An axis that keeps its length is channels; one of all cells, or of rows and columns behind each
   other, is told by the maps that it is made of.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor, nn

from hookviz.capturing.returned_call import Path, ReturnedCall, Shape
from hookviz.hooking import hooks
from hookviz.hooking.modules import named_modules
from hookviz.hooking.shape_pass import pass_at_another_size
from hookviz.types import FIRST, LAST, Layout, Model

_MORE_PX = 64  # what most networks' strides divide
_MAX_PREFIX = 16  # tokens before those of the cells

Lengths = tuple[int, int]
"""Of an axis, for the input itself and for the larger one."""

Sides = tuple[Lengths, Lengths]
"""Rows and columns of a map."""


class Sizes(NamedTuple):
    """Shapes of one call, the batch included: what it was given, and its outputs by their path."""

    layer: str
    taken: Shape | None
    shapes: Mapping[Path, Shape]


def at_larger_size(
    model: Model, shape: Shape, calls: Sequence[ReturnedCall]
) -> tuple["LargerInput", list[Sizes]]:
    """Return a larger input, and the shapes of each call for it as far as that pass goes.

    A network of one size alone may refuse it at once, or at its first linear layer.

    Args:
        model: whose pass it is.
        shape: ``(C, H, W)`` of the pass that is there; of sound ``(C, L)``, of video
            ``(C, T, H, W)``.
        calls: of that one.
    """
    larger = LargerInput(shape)
    seen: list[Sizes] = []

    def see(call: hooks.Call) -> None:
        taken = next((tensor for _, tensor in hooks.plain_tensors_in(call.inputs)), None)
        outputs = hooks.plain_tensors_in(call.output)
        shapes = {path: tuple(tensor.shape) for path, tensor in outputs}
        seen.append(Sizes(call.layer, None if taken is None else tuple(taken.shape), shapes))

    def follow(network: nn.Module, images: Tensor) -> Any:
        names = [name for name, _ in named_modules(network) if name]
        with hooks.observe(network, names, see):
            return network(images)

    pass_at_another_size(model, larger.shape, follow)
    pairs = zip(calls, seen, strict=False)
    ways_part = (number for number, pair in enumerate(pairs) if not _is_same_call(*pair))
    return larger, seen[: next(ways_part, len(calls))]


def _is_same_call(call: ReturnedCall, other: Sizes) -> bool:
    if other.layer != call.layer or other.shapes.keys() != call.shapes.keys():
        return False
    return (other.taken is None) == (call.taken is None)


class LargerInput:
    """An input that is taller and wider, and what it tells of a tensor's axes.

    Attributes:
        shape: of it, as of the input ``(C, H, W)``, ``(C, L)`` or ``(C, T, H, W)``.
    """

    def __init__(self, shape: Shape) -> None:
        """Make it for an input of `shape`."""
        self._own = shape
        *front, rows, columns = (1, *shape) if len(shape) == 1 else shape
        if len(shape) <= 2:  # of sound
            self.shape: Shape = (*shape[:-1], columns + _MORE_PX)
        elif rows < columns:  # so that both are made longer by shares that differ most
            self.shape = (*front, rows + 2 * _MORE_PX, columns + _MORE_PX)
        else:
            self.shape = (*front, rows + _MORE_PX, columns + 2 * _MORE_PX)

    def layout(self, before: Shape, after: Shape) -> Layout | None:
        """Return how a tensor of the input's number of axes lies, by its shapes; None: no map."""
        grown, axes = grown_axes(before, after), len(self._own) + 1
        if grown is None or len(before) != axes or axes < 3:
            return None
        if axes == 3:
            return Layout(FIRST) if grown == [2] else None
        if grown not in ([axes - 2, axes - 1], [axes - 3, axes - 2]):
            return None
        rows, columns = ((before[axis], after[axis]) for axis in grown)
        if not self._fits(rows, columns) or self._fits(columns, rows):
            return None
        return Layout(FIRST) if axes - 1 in grown else Layout(LAST, frames=before[1] * (axes == 5))

    def allows(self, order: str, before: Shape, after: Shape, known: Iterable[Sides]) -> bool:
        """Return whether a tensor may have its channels first or last, given maps of the pass."""
        grown, channels = grown_axes(before, after), 1 if order == FIRST else len(before) - 1
        if grown is None or not {0, channels}.isdisjoint(grown):
            return False
        lengths = [(before[axis], after[axis]) for axis in grown]
        if len(lengths) == 2 and self._fits(*lengths):
            return True
        if len(lengths) == 2 and self._fits(*reversed(lengths)):
            return False
        return not any(is_of_both(each, known) for each in lengths)

    def _fits(self, rows: Lengths, columns: Lengths) -> bool:
        """Return whether at some stride these are the input's rows and columns.

        Both are rounded to whole cells, and lose as many at the borders.
        """
        (high, wide), (more_high, more_wide) = self._own[-2:], self._more
        more_rows, more_columns = rows[1] - rows[0], columns[1] - columns[0]
        if abs(more_rows * more_wide - more_columns * more_high) >= more_high + more_wide:
            return False
        rounded = high / more_high, wide / more_wide
        lost = rows[0] - more_rows * rounded[0], columns[0] - more_columns * rounded[1]
        return abs(lost[0] - lost[1]) <= 2 + sum(rounded)

    @property
    def _more(self) -> tuple[int, int]:
        high, wide = self._own[-2:]
        return self.shape[-2] - high, self.shape[-1] - wide


def grown_axes(before: Shape, after: Shape) -> list[int] | None:
    """Return which axes are longer at the larger size; None where one is shorter, or gone."""
    if len(before) != len(after) or any(map(int.__lt__, after, before)):
        return None
    return [axis for axis, length in enumerate(before) if length < after[axis]]


def is_of_both(axis: Lengths, known: Iterable[Sides]) -> bool:
    """Return whether an axis has all cells of known maps, or their rows and columns in one row.

    As of tokens, of patches (a part of all cells), and in coordinate attention.
    """
    sides = list(known)
    if axis[0] == axis[1] or any(axis in each for each in sides):
        return False
    return any(_is_product(axis, *each) or _is_sum(axis, *each) for each in sides)


def _is_product(axis: Lengths, rows: Lengths, columns: Lengths) -> bool:
    cells = rows[0] * columns[0]
    more, more_cells = axis[1] - axis[0], rows[1] * columns[1] - cells
    prefix = axis[0] * more_cells - more * cells
    is_part = more_cells % more == 0 or more % more_cells == 0
    return is_part and prefix % more_cells == 0 and 0 <= prefix // more_cells <= _MAX_PREFIX


def _is_sum(axis: Lengths, rows: Lengths, columns: Lengths) -> bool:
    before, after = (axis[size] - rows[size] - columns[size] for size in (0, 1))
    return before == after and 0 <= before <= _MAX_PREFIX
