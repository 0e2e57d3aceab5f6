"""Find out which axes of what layers put out are rows, columns and channels, by other sizes.

A pass over an input that is taller and one over an input that is wider tell: an axis that grows
with the height alone is rows, one that grows with the width alone columns, and what stays as it is
channels. One axis that grows as rows × columns do, plus a constant, is tokens. In which order they
stand for the cells, and whether a network that takes one size alone has any, is proven by moving
(see `hookviz.capturing.moving`). What stays open is no map.

>>> calls = arranged(model, (3, 224, 224), calls)  # doctest: +SKIP
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from hookviz.capturing.moving import Place, proven
from hookviz.capturing.other_sizes import Role, Sizes, at_other_sizes, roles_of
from hookviz.capturing.returned_call import Path, ReturnedCall, Shape
from hookviz.types import FIRST, LAST, TOKENS, UNKNOWN, VECTORS, Address, Layout, Model

_NEAR = 16  # calls behind known maps among which a guess can be proven: others mix cells
_MOST_PREFIX = 16  # tokens before those of the cells that are looked for where one size tells all


_BODIES = {
    (Role.SAME, Role.ROWS, Role.COLUMNS): FIRST,
    (Role.ROWS, Role.COLUMNS, Role.SAME): LAST,
}


def arranged(model: Model, shape: Shape, calls: Sequence[ReturnedCall]) -> tuple[ReturnedCall, ...]:
    """Return the calls of a pass over an input of `shape` with the layouts of all their outputs.

    Args:
        model: whose pass it was.
        shape: ``(C, H, W)``; of sound and volumes the layers alone tell.
        calls: in order of return, with what the layers themselves tell.
    """
    if len(shape) != 3:
        calls = [_as_the_input(call, len(shape) + 1) for call in calls]
    if len(shape) != 3 or not any(map(_is_open, calls)):
        return tuple(_settled(call, call.layouts, call.taken_layout) for call in calls)
    wanted = 1 + max(number for number, call in enumerate(calls) if _is_open(call))
    others = at_other_sizes(model, shape, calls, wanted)
    reading = _Reading(calls, others)
    return reading.settled(proven(model, shape, reading.known, reading.guesses))


def laid_out(
    calls: Sequence[ReturnedCall], layouts: Mapping[Address, Layout]
) -> tuple[ReturnedCall, ...]:
    """Return the calls of a pass over a certain input, which lie as those of a general one do."""
    settled = []
    counts = Counter[str]()
    for call in calls:
        places = {path: Address(call.layer, counts[call.layer], path) for path in call.layouts}
        counts[call.layer] += 1
        found = {path: layouts.get(places[path], each) for path, each in call.layouts.items()}
        settled.append(_settled(call, found, call.taken_layout))
    return tuple(settled)


def _as_the_input(call: ReturnedCall, dimensions: int) -> ReturnedCall:
    """Return the call of a network of sound or of volumes; `dimensions` has its input.

    Of those what has as many axes as the input is taken to be channels first, as the input is.
    """
    layouts = {
        path: Layout(FIRST)
        if layout == UNKNOWN and len(call.shapes[path]) == dimensions and call.shapes[path][0] == 1
        else layout
        for path, layout in call.layouts.items()
    }
    return replace(call, layouts=layouts)


def _is_open(call: ReturnedCall) -> bool:
    """Return whether the layers leave open how an output of several axes lies."""
    return any(
        len(shape) > 2 and call.layouts[path].order != FIRST for path, shape in call.shapes.items()
    )


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


class _Reading:
    """What the sizes tell of each call, and guesses of what only moving can prove.

    Attributes:
        known: calls that put out maps of one image, with their layout, in order.
        guesses: layouts that shapes allow, of calls that are not far behind such maps.
    """

    def __init__(
        self, calls: Sequence[ReturnedCall], others: Sequence[tuple[Sizes, Sizes]]
    ) -> None:
        self.known: dict[Place, Layout] = {}
        self.guesses: dict[Place, Layout] = {}
        self._last_known = 0  # the number of the newest call of `known`
        self._calls = calls
        self._grids: dict[tuple[tuple[int, int], ...], None] = {}  # the newest last
        self._channels = 0  # of the newest maps
        self._guessed: set[Layout] = set()
        self._read: list[tuple[dict[Path, Layout], Layout]] = []
        counts = Counter[str]()
        for number, call in enumerate(calls):
            place = (call.layer, counts[call.layer])
            counts[call.layer] += 1
            beside = others[number] if number < len(others) else ()
            taken = UNKNOWN
            if call.taken is not None:
                sizes = [call.taken, *(each.taken for each in beside if each.taken is not None)]
                taken = self._layout(sizes, call.taken_layout)
            outputs = {}
            for path, shape in call.shapes.items():
                sizes = [shape, *(each.shapes[path] for each in beside)]
                followed = call.layouts[path]
                outputs[path] = self._layout(sizes, followed, certain=call.by_definition)
                self._note(place, path, sizes, outputs[path])
            self._read.append((outputs, taken))

    def settled(self, found: frozenset[Layout]) -> tuple[ReturnedCall, ...]:
        """Return the calls, with the guessed layouts that were proven and not the others."""

        def sure(layout: Layout) -> Layout:
            is_sure = layout not in self._guessed or layout in found
            return layout if is_sure else Layout(VECTORS, layout.batch)

        settled = []
        for call, (layouts, taken) in zip(self._calls, self._read, strict=True):
            outputs = {path: sure(layout) for path, layout in layouts.items()}
            settled.append(_settled(call, outputs, sure(taken)))
        return tuple(settled)

    def _note(self, place: Place, path: Path, sizes: Sequence[Shape], layout: Layout) -> None:
        """Remember the rows and columns of maps, and where a guess is made first."""
        if layout in self._guessed:
            if not path and len(self._read) - self._last_known <= _NEAR:
                self.guesses[place] = layout
        elif layout.batch and len(sizes[0]) == 4 and layout.order in {FIRST, LAST}:
            if sizes[0][0] != 1:
                return
            maps = (layout.map_shape(shape[1:]) for shape in sizes)
            grid = tuple((rows, columns) for _, rows, columns in maps)
            self._channels = layout.map_shape(sizes[0][1:])[0]
            self._grids.pop(grid, None)
            self._grids[grid] = None
            if not path:
                self.known[place] = layout
                self._last_known = len(self._read)

    def _layout(self, sizes: Sequence[Shape], followed: Layout, *, certain: bool = False) -> Layout:
        """Return how a tensor lies, given its shapes at all sizes and what its layers tell."""
        if not followed.batch or len(sizes[0]) < 3 or sizes[0][0] != 1 or certain:
            return followed
        if len(sizes) > 1:
            found = self._told_by(sizes, followed)
        else:
            is_told = followed.order in {FIRST, LAST}
            found = followed if is_told else self._allowed(sizes[0])
        return found or (Layout(VECTORS) if followed.last else UNKNOWN)

    def _told_by(self, sizes: Sequence[Shape], followed: Layout) -> Layout | None:
        """Return the layout that several sizes tell; None where they tell that it is no map's."""
        batch, *axes = roles_of(sizes)
        body = tuple(axes)
        if batch is not Role.SAME:
            return None
        if body in _BODIES:
            return Layout(_BODIES[body])
        if body == (Role.BOTH, Role.SAME):
            return self._tokens(sizes) or Layout(VECTORS)
        if followed.order in {FIRST, LAST} and _may_be(followed.order, body):
            return followed
        if body == (Role.SAME,) * 3:
            return self._pooled(sizes[0][1:])
        grown = [axis for axis, role in enumerate(body) if role is not Role.SAME]
        return Layout(VECTORS) if grown == [*range(len(body) - 1)] else None

    def _pooled(self, shape: Shape) -> Layout | None:
        """Tell the channels of as many cells for any input: of one cell, or as many as before."""
        alone = [axis for axis, count in enumerate(shape) if count != 1]
        as_before = [axis for axis, count in enumerate(shape) if count == self._channels]
        orders = {0: Layout(FIRST), 2: Layout(LAST)}
        for axes in (alone, as_before):
            if len(axes) == 1:
                return orders.get(axes[0])
        return None

    def _tokens(self, sizes: Sequence[Shape]) -> Layout | None:
        """Guess which of the maps before have as many cells as there are tokens, at all sizes."""
        for grids in reversed(self._grids):
            if len(grids) != len(sizes):
                continue
            prefix = {
                size[1] - rows * columns for size, (rows, columns) in zip(sizes, grids, strict=True)
            }
            if len(prefix) == 1 and min(prefix) >= 0:
                return self._guess(Layout(TOKENS, prefix_tokens=prefix.pop(), grid=grids[0]))
        return None

    def _allowed(self, shape: Shape) -> Layout | None:
        """Guess what one size allows: maps or tokens of as many cells as the newest maps have."""
        newest = next(reversed(self._grids), None)
        if newest is None:
            return None
        rows, columns = grid = newest[0]
        if len(shape) == 3 and 0 <= shape[1] - rows * columns <= _MOST_PREFIX:
            prefix = shape[1] - rows * columns
            return self._guess(Layout(TOKENS, prefix_tokens=prefix, grid=grid))
        if len(shape) != 4 or (shape[1:3] == grid) == (shape[2:] == grid):
            return None
        return Layout(FIRST) if shape[2:] == grid else self._guess(Layout(LAST, grid=grid))

    def _guess(self, layout: Layout) -> Layout:
        self._guessed.add(layout)
        return layout


def _may_be(order: str, body: Sequence[Role | None]) -> bool:
    """Return whether axes that tell less than rows and columns may lie in this order."""
    if len(body) != 3:
        return order == FIRST
    channels, rows, columns = body if order == FIRST else (body[2], *body[:2])
    return (
        channels is Role.SAME
        and rows in (Role.SAME, Role.ROWS)
        and columns in (Role.SAME, Role.COLUMNS)
    )
