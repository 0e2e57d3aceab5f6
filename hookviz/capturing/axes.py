"""Find out which axes of what layers put out are rows, columns and channels, by other sizes.

A pass over an input that is taller and one over an input that is wider tell: an axis that grows
with the height alone is rows, one that grows with the width alone columns, and what stays as it is
channels. Which cells tokens stand for and windows have, and what a network puts out that takes one
size alone, is proven by moving (see `hookviz.capturing.moving`). What stays open is no map.

>>> calls = arranged(model, (3, 224, 224), calls)  # doctest: +SKIP
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from hookviz.capturing.moving import Found, Place, proven
from hookviz.capturing.other_sizes import Role, Sizes, at_other_sizes, roles_of
from hookviz.capturing.returned_call import Path, ReturnedCall, Shape
from hookviz.capturing.volume_axes import volumes_arranged
from hookviz.types import FIRST, LAST, UNKNOWN, VECTORS, Address, Layout, Model

_BODIES = {
    (Role.SAME, Role.ROWS, Role.COLUMNS): FIRST,
    (Role.ROWS, Role.COLUMNS, Role.SAME): LAST,
}


def arranged(model: Model, shape: Shape, calls: Sequence[ReturnedCall]) -> tuple[ReturnedCall, ...]:
    """Return the calls of a pass over an input of `shape` with the layouts of all their outputs.

    Args:
        model: whose pass it was.
        shape: ``(C, H, W)``; what is found of other networks `volumes_arranged` tells.
        calls: in order of return, with what the layers themselves tell.
    """
    if len(shape) != 3:
        calls = volumes_arranged(model, shape, calls)
    is_refolded = len(shape) == 3 and _is_refolded(calls)
    if len(shape) != 3 or not (is_refolded or any(map(_is_open, calls))):
        return tuple(_settled(call, call.layouts, call.taken_layout) for call in calls)
    wanted = len(calls)
    if not is_refolded:
        wanted = 1 + max(number for number, call in enumerate(calls) if _is_open(call))
    others = at_other_sizes(model, shape, calls, wanted)
    reading = _Reading(calls, others)
    return reading.settled(reading.proven(model, shape))


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


def _is_open(call: ReturnedCall) -> bool:
    """Return whether the layers leave open how an output of several axes lies."""
    return any(
        len(shape) > 2 and call.layouts[path].order != FIRST for path, shape in call.shapes.items()
    )


def _is_refolded(calls: Sequence[ReturnedCall]) -> bool:
    """Return whether a layer of maps is given what has the cells of one in other rows and columns.

    As the convolutions of MobileViTv2 are, whose rows are the places in a patch, and whose columns
    all patches.
    """
    grids: dict[int, set[Shape]] = {}
    for call in calls:
        if call.by_definition and call.taken is not None and len(call.taken) == 4:
            grid = call.taken[2:]
            of_as_many = grids.setdefault(prod(grid), set())
            if of_as_many and grid not in of_as_many:
                return True
        for shape in call.shapes.values():
            if call.by_definition and len(shape) == 4:
                grids.setdefault(prod(shape[2:]), set()).add(shape[2:])
    return False


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
    """What the sizes tell of each call, for moving to tell the rest."""

    def __init__(
        self, calls: Sequence[ReturnedCall], others: Sequence[tuple[Sizes, Sizes]]
    ) -> None:
        self._calls = calls
        self._grid = (0, 0)  # of the newest maps
        self._channels = 0  # of those
        self._places: list[Place] = []
        self._read: list[tuple[dict[Path, Layout], Layout]] = []
        self._by_shape = set[Place]()  # what lies as its shape alone tells
        counts = Counter[str]()
        for number, call in enumerate(calls):
            path = next(iter(call.shapes), ())
            self._places.append(Place(call.layer, counts[call.layer], path))
            counts[call.layer] += 1
            beside = others[number] if number < len(others) else ()
            taken = UNKNOWN
            if call.taken is not None:
                sizes = [call.taken, *(each.taken for each in beside if each.taken is not None)]
                taken = self._layout(sizes, call.taken_layout)
            outputs = {}
            for path, shape in call.shapes.items():
                sizes = [shape, *(each.shapes[path] for each in beside)]
                layout = self._layout(sizes, call.layouts[path], certain=call.by_definition)
                if len(sizes) == 1 and layout == UNKNOWN and self._is_as_the_newest(shape):
                    layout = Layout(FIRST)
                    self._by_shape.add(self._places[-1]._replace(path=path))
                outputs[path] = layout
                self._note(shape, layout)
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
            elif not is_told and len(shapes[place]) > 2:
                wanted.add(place)
            if call.by_definition and layout.order == FIRST:
                first.add(place)
            elif call.is_along_last:
                keeping.add(place)
        return proven(
            *(model, shape, shapes, known),
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

    def _note(self, shape: Shape, layout: Layout) -> None:
        """Remember the rows, columns and channels of maps."""
        if layout.batch and len(shape) == 4 and layout.order in {FIRST, LAST} and shape[0] == 1:
            self._channels, rows, columns = layout.map_shape(shape[1:])
            self._grid = rows, columns

    def _layout(self, sizes: Sequence[Shape], followed: Layout, *, certain: bool = False) -> Layout:
        """Return how a tensor lies, given its shapes at all sizes and what its layers tell."""
        if not followed.batch or len(sizes[0]) < 3 or sizes[0][0] != 1:
            return followed
        if certain:
            return UNKNOWN if len(sizes) > 1 and Role.BOTH in roles_of(sizes) else followed
        found = followed if followed.order in {FIRST, LAST} else None
        if len(sizes) > 1:
            found = self._told_by(sizes, followed)
        return found or (Layout(VECTORS) if followed.last else UNKNOWN)

    def _told_by(self, sizes: Sequence[Shape], followed: Layout) -> Layout | None:
        """Return the layout that several sizes tell; None where they tell that it is no map's."""
        batch, *axes = roles_of(sizes)
        body = tuple(axes)
        if batch is not Role.SAME:
            return None
        if body in _BODIES:
            return Layout(_BODIES[body])
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
