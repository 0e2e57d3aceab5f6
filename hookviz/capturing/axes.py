"""Find out which axes of what layers put out are rows, columns and channels.

1. Take what the layers of the pass tell: `hookviz.capturing.layouts`.
2. Where that leaves an output open, run an input that is taller and wider at once, one way by twice
   as many pixels as the other. At any stride the one axis grows by twice as many cells as the
   other, which tells them apart. An axis that keeps its length is channels; one of all cells, or of
   rows and columns behind each other, is told by the maps that it is made of.
3. Prove what is still open, such as tokens and windows, and what a network puts out that takes one
   size alone: `hookviz.capturing.layout_probe` changes cells of known maps. The rest is no map.

>>> calls = arranged(model, (3, 224, 224), calls)  # doctest: +SKIP
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from math import prod
from typing import Any, NamedTuple

from torch import Tensor, nn

from hookviz.capturing.layout_probe import Found, Place, proven
from hookviz.capturing.returned_call import Path, ReturnedCall, Shape
from hookviz.hooking import hooks
from hookviz.hooking.modules import named_modules
from hookviz.hooking.shape_pass import pass_at_another_size
from hookviz.types import FIRST, LAST, UNKNOWN, VECTORS, ActivationKey, Layout, Model

_MORE_PX = 64  # what most networks' strides divide

_MAX_PREFIX = 16  # tokens before those of the cells

_Lengths = tuple[int, int]
"""Of an axis, for the input itself and for the larger one."""

_Sides = tuple[_Lengths, _Lengths]
"""Rows and columns of a map."""


def arranged(model: Model, shape: Shape, calls: Sequence[ReturnedCall]) -> tuple[ReturnedCall, ...]:
    """Return the calls of a pass with the layouts of all their outputs, by up to two more passes.

    Args:
        model: whose pass it was.
        shape: ``(C, H, W)`` of its input, of sound ``(C, L)``, of video ``(C, T, H, W)``.
        calls: in order of return, with what the layers themselves tell.
    """
    larger, others = at_larger_size(model, shape, calls)
    reading = _Reading(shape, calls, larger, others)
    return reading.settled(reading.proven(model, shape))


def needs_passes(shape: Shape, calls: Sequence[ReturnedCall]) -> bool:
    """Return whether a pass over an input of `shape` leaves open how some output lies."""
    return bool(refolded(shape, calls)) or any(
        call.layouts[path].order != FIRST
        for call in calls
        for path, own in call.shapes.items()
        if (len(own) > 2 if len(shape) == 3 else len(own) == len(shape) + 1)
    )


def refolded(shape: Shape, calls: Sequence[ReturnedCall]) -> frozenset[Shape]:
    """Return the rows and columns of image layers that are given those of a map in another order.

    As the convolutions of MobileViTv2 are, whose rows are the places in a patch, and whose columns
    all patches; those over tokens; and those of coordinate attention, which are given rows and
    columns behind each other.
    """
    grids, strips, found = dict[int, Shape](), set[Shape](), set[Shape]()
    for call in calls if len(shape) == 3 else ():
        given = [call.taken] if call.is_taken_sure and call.taken is not None else []
        for sizes in (*given, *(call.shapes[path] for path in call.sure)):
            grid = sizes[2:]
            if not 0 < len(grid) < 3 or 0 in grid:
                continue
            usual = grids.setdefault(prod(grid), grid)
            if grid in strips or _stretch(shape, grid) > _stretch(shape, usual):
                found.add(grid)
            elif len(grid) == 2 and min(grid) > 1:
                strips |= {(sum(grid), 1), (1, sum(grid))}
    return frozenset(found)


def _stretch(shape: Shape, grid: Shape) -> float:
    """Return by how much longer one side is than it would be in a small copy of the input."""
    rows, columns = (*grid, 1)[:2]
    ratio = rows * shape[-1] / (columns * shape[-2])
    return max(ratio, 1 / ratio)


def laid_out(
    calls: Sequence[ReturnedCall], layouts: Mapping[ActivationKey, Layout]
) -> tuple[ReturnedCall, ...]:
    """Return the calls of a pass over a certain input, which lie as those of a general one do."""
    settled = []
    counts = Counter[str]()
    for call in calls:
        places = {
            path: ActivationKey(call.layer, counts[call.layer], path) for path in call.layouts
        }
        counts[call.layer] += 1
        found = {path: layouts.get(places[path], each) for path, each in call.layouts.items()}
        settled.append(_settled(call, found, call.taken_layout))
    return tuple(settled)


def _settled(
    call: ReturnedCall, layouts: Mapping[Path, Layout], taken_layout: Layout
) -> ReturnedCall:
    """Return the call with these layouts, as far as its shapes allow them."""
    layouts = {path: _fitting(layouts[path], shape) for path, shape in call.shapes.items()}
    if call.taken is None:
        return replace(call, layouts=layouts)
    taken_layout = _fitting(taken_layout, call.taken)
    if call.is_along_last:  # which leaves all but the channels where it was
        taken_layout = _fitting(next(iter(layouts.values()), UNKNOWN), call.taken)
    return replace(call, layouts=layouts, taken_layout=taken_layout)


def _fitting(layout: Layout, shape: Shape) -> Layout:
    if layout.batch and shape[:1] != (1,) and layout.last:
        return Layout(VECTORS, batch=False)  # windows: the first axis counts no images
    return layout.of(shape[1:] if layout.batch else shape)


class _Sizes(NamedTuple):
    """Shapes of one call, the batch included: what it was given, and its outputs by their path."""

    layer: str
    taken: Shape | None
    shapes: Mapping[Path, Shape]


def at_larger_size(
    model: Model, shape: Shape, calls: Sequence[ReturnedCall]
) -> tuple["LargerInput", list[_Sizes]]:
    """Return a larger input, and the shapes of each call for it as far as that pass goes.

    A network of one size alone may refuse it at once, or at its first linear layer.

    Args:
        model: whose pass it is.
        shape: ``(C, H, W)`` of the pass that is there; of sound ``(C, L)``, of video
            ``(C, T, H, W)``.
        calls: of that one.
    """
    larger = LargerInput(shape)
    seen: list[_Sizes] = []

    def see(call: hooks.Call) -> None:
        taken = next((tensor for _, tensor in hooks.plain_tensors_in(call.inputs)), None)
        outputs = hooks.plain_tensors_in(call.output)
        shapes = {path: tuple(tensor.shape) for path, tensor in outputs}
        seen.append(_Sizes(call.layer, None if taken is None else tuple(taken.shape), shapes))

    def follow(network: nn.Module, images: Tensor) -> Any:
        names = [name for name, _ in named_modules(network) if name]
        with hooks.observe(network, names, see):
            return network(images)

    pass_at_another_size(model, larger.shape, follow)
    pairs = zip(calls, seen, strict=False)
    ways_part = (number for number, pair in enumerate(pairs) if not _is_same_call(*pair))
    return larger, seen[: next(ways_part, len(calls))]


def _is_same_call(call: ReturnedCall, other: _Sizes) -> bool:
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
        grown, axes = _grown_axes(before, after), len(self._own) + 1
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

    def allows(self, order: str, before: Shape, after: Shape, known: Iterable[_Sides]) -> bool:
        """Return whether a tensor may have its channels first or last, given maps of the pass."""
        grown, channels = _grown_axes(before, after), 1 if order == FIRST else len(before) - 1
        if grown is None or not {0, channels}.isdisjoint(grown):
            return False
        lengths = [(before[axis], after[axis]) for axis in grown]
        if len(lengths) == 2 and self._fits(*lengths):
            return True
        if len(lengths) == 2 and self._fits(*reversed(lengths)):
            return False
        return not any(_is_of_both(each, known) for each in lengths)

    def _fits(self, rows: _Lengths, columns: _Lengths) -> bool:
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


def _grown_axes(before: Shape, after: Shape) -> list[int] | None:
    """Return which axes are longer at the larger size; None where one is shorter, or gone."""
    if len(before) != len(after) or any(map(int.__lt__, after, before)):
        return None
    return [axis for axis, length in enumerate(before) if length < after[axis]]


def _is_of_both(axis: _Lengths, known: Iterable[_Sides]) -> bool:
    """Return whether an axis has all cells of known maps, or their rows and columns in one row.

    As of tokens, of patches (a part of all cells), and in coordinate attention.
    """
    sides = list(known)
    if axis[0] == axis[1] or any(axis in each for each in sides):
        return False
    return any(_is_product(axis, *each) or _is_sum(axis, *each) for each in sides)


def _is_product(axis: _Lengths, rows: _Lengths, columns: _Lengths) -> bool:
    cells = rows[0] * columns[0]
    more, more_cells = axis[1] - axis[0], rows[1] * columns[1] - cells
    prefix = axis[0] * more_cells - more * cells
    is_part = more_cells % more == 0 or more % more_cells == 0
    return is_part and prefix % more_cells == 0 and 0 <= prefix // more_cells <= _MAX_PREFIX


def _is_sum(axis: _Lengths, rows: _Lengths, columns: _Lengths) -> bool:
    before, after = (axis[size] - rows[size] - columns[size] for size in (0, 1))
    return before == after and 0 <= before <= _MAX_PREFIX


class _Reading:
    """What the larger input tells of each call, for moving to tell the rest."""

    def __init__(
        self, shape: Shape, calls: Sequence[ReturnedCall], larger: LargerInput, others: list[_Sizes]
    ) -> None:
        self._is_image = len(shape) == 3
        self._calls = calls
        self._larger = larger
        self._refolded = refolded(shape, calls)
        self._grid = (0, 0)  # of the newest maps
        self._channels = 0  # of those
        self._sides: dict[_Sides, None] = {}  # of all maps, for both inputs
        self._places: list[Place] = []
        self._read: list[tuple[dict[Path, Layout], Layout]] = []
        self._by_shape = set[Place]()  # what lies as its shape alone tells
        counts = Counter[str]()
        for call, other in zip_longest(calls, others):
            place = Place(call.layer, counts[call.layer], next(iter(call.shapes), ()))
            self._places.append(place)
            counts[call.layer] += 1
            taken = UNKNOWN
            if call.taken is not None:
                after = None if other is None else other.taken
                taken = self._layout(call.taken, after, call.taken_layout, call.is_taken_sure)
            outputs = {}
            for path, own in call.shapes.items():
                after = None if other is None else other.shapes[path]
                layout = self._layout(own, after, call.layouts[path], path in call.sure)
                if after is None and layout == UNKNOWN and self._is_as_the_newest(own):
                    layout = Layout(FIRST)
                    self._by_shape.add(place._replace(path=path))
                outputs[path] = layout
                self._note(own, after, layout)
            self._read.append((outputs, taken))

    def proven(self, model: Model, shape: Shape) -> Found:
        """Have moving prove how those lie of which the sizes tell nothing."""
        shapes, known = dict[Place, Shape](), dict[Place, Layout]()
        wanted, first, keeping = set[Place](), set[Place](), set[Place]()
        for place, call, (outputs, _) in zip(self._places, self._calls, self._read, strict=True):
            if not call.shapes:
                continue
            layout, shapes[place] = outputs[place.path], call.shapes[place.path]
            is_told = layout.order in {FIRST, LAST} and place not in self._by_shape
            if is_told and layout.batch and len(shapes[place]) == 4 and shapes[place][0] == 1:
                known[place] = layout
            elif not is_told and len(shapes[place]) > 2 and self._is_image:
                wanted.add(place)
            if call.by_definition and layout.order == FIRST:
                first.add(place)
            elif call.is_along_last:
                keeping.add(place)
        return proven(
            model,
            shape,
            shapes,
            known,
            wanted=frozenset(wanted),
            first=frozenset(first),
            keeping=frozenset(keeping),
        )

    def settled(self, found: Found) -> tuple[ReturnedCall, ...]:
        """Return the calls, with the layouts that were proven."""
        settled = []
        for place, call, (layouts, taken) in zip(
            self._places, self._calls, self._read, strict=True
        ):
            own = found.outputs.get(place)
            outputs = layouts if own is None else {**layouts, place.path: own}
            settled.append(_settled(call, outputs, found.taken.get(place, taken)))
        return tuple(settled)

    def _is_as_the_newest(self, shape: Shape) -> bool:
        """Return whether a shape of four axes has the newest maps' rows and columns last."""
        if len(shape) != 4 or shape[0] != 1:
            return False
        return shape[2:] == self._grid != shape[1:3]

    def _note(self, shape: Shape, after: Shape | None, layout: Layout) -> None:
        """Remember the rows, columns and channels of maps."""
        if layout.batch and len(shape) == 4 and layout.order in {FIRST, LAST} and shape[0] == 1:
            self._channels, rows, columns = layout.map_shape(shape[1:])
            self._grid = rows, columns
            if after is not None:
                _, more_rows, more_columns = layout.map_shape(after[1:])
                self._sides[(rows, more_rows), (columns, more_columns)] = None

    def _layout(self, shape: Shape, after: Shape | None, followed: Layout, is_sure: bool) -> Layout:
        """Return how a tensor lies, by its shapes for both inputs and what its layers tell."""
        if not followed.batch or len(shape) < 3 or shape[0] != 1:
            return followed
        if is_sure and not self._refolded:
            return followed
        found = followed if followed.order in {FIRST, LAST} else None
        if after is not None:
            found = self._told_by(shape, after, followed)
        elif shape[2:] in self._refolded:
            found = None
        return found or (Layout(VECTORS) if followed.last else UNKNOWN)

    def _told_by(self, shape: Shape, after: Shape, followed: Layout) -> Layout | None:
        """Return the layout that both sizes tell; None where they tell that it is no map's."""
        layout = self._larger.layout(shape, after)
        if layout is not None:
            return layout
        is_told = followed.order in {FIRST, LAST}
        if is_told and self._larger.allows(followed.order, shape, after, self._sides):
            return followed
        grown = _grown_axes(shape, after)
        if not grown and len(shape) == 4:
            return self._pooled(shape[1:])
        return Layout(VECTORS) if grown == [*range(1, len(shape) - 1)] else None

    def _pooled(self, shape: Shape) -> Layout | None:
        """Tell the channels of as many cells for any input: of one cell, or as many as before."""
        alone = [axis for axis, count in enumerate(shape) if count != 1]
        as_before = [axis for axis, count in enumerate(shape) if count == self._channels]
        orders = {0: Layout(FIRST), 2: Layout(LAST)}
        for axes in (alone, as_before):
            if len(axes) == 1:
                return orders.get(axes[0])
        return None
