"""Infer the layout of outputs by experiment: change cells of known maps, see which cells move.

1. Run a few equal images. At the last maps whose rows and columns are known, change some cells of
   the first images. `possible_layouts` lists the layouts that a later output's shape allows.
2. An output has the layout in which exactly the changed cells have moved: a norm or a linear layer
   moves no others.
3. A layer that mixes cells, such as attention, moves more. Its layout is read at the residual sum
   behind it. The first images are made equal again and continue with the shortcut's values, which
   gives the layout of the sum. In the others some cells of the layer's output are changed, which
   gives its own.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import product
from math import prod
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from hookviz.capturing.returned_call import Path, Shape
from hookviz.errors import ModelError
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import forward_pass, private_replica
from hookviz.types import FIRST, LAST, TOKENS, WINDOWS, Layout, Model

_MOST_PREFIX = 16  # tokens before those of the cells that are looked for

Grid = tuple[int, int]
"""Rows and columns."""

SHARE = 0.2
"""Of the cells that are marked."""

_MOVED = 1e-4  # of the largest value: more than rounding differs within a batch
_CHANNELS = 32  # that are looked at, which tell of all
_NEW = 0.3  # of what was changed, that has to be told apart from what had moved before


def possible_layouts(shape: Shape, grids: Iterable[Grid]) -> Iterator[Layout]:
    """Yield the layouts, of windows without a shift, that a tensor may have.

    Args:
        shape: of what a layer put out for one image, its batch included.
        grids: rows and columns of the maps that it may be.
    """
    for grid in grids:
        rows, columns = grid
        if len(shape) == 3 and shape[0] == 1 and 0 <= shape[1] - rows * columns <= _MOST_PREFIX:
            yield Layout(TOKENS, prefix_tokens=shape[1] - rows * columns, grid=grid)
        if len(shape) == 4 and shape[0] == 1:
            if shape[2:] == grid:
                yield Layout(FIRST)
            if shape[1:3] == grid:
                yield Layout(LAST)
        if shape[0] > 1:
            yield from _windows(shape, grid)


def _windows(shape: Shape, grid: Grid) -> Iterator[Layout]:
    rows, columns = grid
    if len(shape) == 4:
        sides = [(shape[1], shape[2])]
    elif len(shape) == 3:
        high = range(1, shape[1] + 1)
        sides = [(side, shape[1] // side) for side in high if shape[1] % side == 0]
        sides.sort(key=lambda side: abs(side[0] - side[1]))
    else:
        return
    for window in sides:
        layout = Layout(WINDOWS, batch=False, grid=grid, window=window)
        if layout.of(shape) != layout or window[0] > rows or window[1] > columns:
            continue
        yield layout
        if rows % window[0] == columns % window[1] == 0:
            yield Layout(WINDOWS, batch=False, grid=grid, window=window, strided=True)


def allows(shape: Shape, layout: Layout) -> bool:
    """Return whether what has a shape, its batch included, may lie so."""
    own = shape[1:] if layout.batch else shape
    return layout.of(own) == layout and (layout.order != FIRST or len(shape) == 4)


def grid_of(shape: Shape, layout: Layout) -> Grid:
    """Return the rows and columns of maps, given their shape with the batch."""
    _, rows, columns = layout.map_shape(shape[1:] if layout.batch else shape)
    return rows, columns


@lru_cache(maxsize=64)
def marks(grid: Grid, images: int) -> Tensor:
    """Return which cells of maps are changed for each image, bool, ``(images, H, W)``.

    Always the same, so that ways that come together agree. No mark is the same when it is mirrored
    or turned, as far as there are cells enough.

    >>> from hookviz.capturing.layout_probe import marks
    >>> marks((14, 14), 1).sum()
    tensor(39)
    """
    draws = torch.Generator().manual_seed(0)
    cells = grid[0] * grid[1]
    found = torch.zeros(images, cells, dtype=torch.bool)
    for mark in found:
        for _ in range(20):
            mark[:] = False
            mark[torch.randperm(cells, generator=draws)[: max(1, round(SHARE * cells))]] = True
            if not _is_symmetric(mark.view(grid)):
                break
    return found.view(images, *grid)


def _is_symmetric(mark: Tensor) -> bool:
    turned = [mark, mark.T] if mark.shape[0] == mark.shape[1] else [mark]
    _, *others = (each.flip(axes) for each in turned for axes in ((), (0,), (1,), (0, 1)))
    return any(torch.equal(mark, other) for other in others)


def coarser(cells: Tensor) -> Tensor:
    """Return which cells of half as many rows and columns stand for any that is marked."""
    pooled: Tensor = F.max_pool2d(cells.float(), 2, ceil_mode=True)
    return pooled.bool()


class PlacesMoved:
    """Places of a tensor with its channels last that have moved, in each of some images."""

    def __init__(self, shape: Shape, places: Tensor) -> None:
        """Take the shape for one image, its batch included, and bool ``(images, *shape[:-1])``."""
        self.shape = shape
        self._places = places

    def places_of(self, images: slice) -> Tensor:
        """Return the places that have moved, bool, ``(images, *shape[:-1])``."""
        return self._places[images]

    def any(self, images: slice) -> bool:
        """Return whether any has."""
        return bool(self._places[images].any())

    def cells(self, layout: Layout, images: slice) -> Tensor | None:
        """Return the cells that have moved, ``(images, H, W)``; None where it has not this layout.

        Of tokens and places that stand for no cell it does not tell.
        """
        values = self._places[images][..., None]
        own = values[0, 0] if layout.batch else values[0]
        if layout.order == FIRST or layout.of(tuple(own.shape)) != layout:
            return None
        return torch.stack([layout.maps(each[0] if layout.batch else each)[0] for each in values])

    def fitting(
        self, layout: Layout, images: slice, wanted: Tensor, rest: Tensor | None = None
    ) -> Iterator[Layout]:
        """Yield the layout, or with the shifts of its windows, by which the wanted cells moved.

        Args:
            layout: of windows without a shift.
            images: which of them to look at.
            wanted: cells that have moved, bool, ``(images, H, W)``.
            rest: those of them that may have moved anyway.
        """
        cells = self.cells(layout, images)
        if cells is None or cells.shape != wanted.shape:
            return
        for shift in _shifts(layout):
            turned = cells.roll(shift, (1, 2)) if any(shift) else cells
            if torch.equal(turned, wanted) or _fits_beside(turned, wanted, rest):
                yield replace(layout, shift=shift)


def _fits_beside(cells: Tensor, wanted: Tensor, rest: Tensor | None) -> bool:
    """Return whether the cells and the rest are all that are wanted, and enough are no rest."""
    if rest is None or not torch.equal(cells | rest, wanted):
        return False
    return int((cells & ~rest).sum()) > _NEW * int(cells.sum())


class Moved(PlacesMoved):
    """Which places of a tensor differ between images, the first of which is as it was."""

    def __init__(self, tensor: Tensor, shape: Shape) -> None:
        """Compare the images of a tensor, ``(images · shape[0], …)``, with the first."""
        parts = tensor.reshape(-1, *shape)
        super().__init__(shape, _differs(parts, -1))
        self._by_first = _differs(parts, 2) if len(shape) == 4 else None

    def cells(self, layout: Layout, images: slice) -> Tensor | None:
        """Return the cells that have moved, as of channels first, too, ``(images, H, W)``."""
        if layout.order == FIRST:
            return None if self._by_first is None else self._by_first[images, 0]
        return super().cells(layout, images)


def _differs(parts: Tensor, axis: int) -> Tensor:
    """Return where any channel of an image differs from the first's, behind that."""
    channels = torch.arange(0, parts.shape[axis], -(-parts.shape[axis] // _CHANNELS))
    some = parts.index_select(axis, channels.to(parts.device)).float()
    away = (some[1:] - some[:1]).abs()
    return ~(away <= _MOVED * some[0].abs().max()).all(axis).cpu()  # NaN has moved, too


def _shifts(layout: Layout) -> Sequence[Grid]:
    """Return the shifts that windows may have, the likeliest first."""
    if layout.order != WINDOWS or layout.strided:
        return [(0, 0)]
    high, wide = layout.window
    return sorted(
        product(range(high), range(wide)),
        key=lambda shift: (shift != (0, 0), shift != (high // 2, wide // 2)),
    )


def agreed(layouts: Sequence[Layout], shape: Shape) -> Layout | None:
    """Return the first layout, unless another one puts any cell somewhere else.

    Args:
        layouts: that fit what has moved.
        shape: of the tensor for one image, its batch included.
    """
    if not layouts:
        return None
    numbers = torch.arange(float(torch.Size(shape).numel())).view(shape)
    first, *others = (each.maps(numbers[0] if each.batch else numbers) for each in layouts)
    return layouts[0] if all(torch.equal(first, other) for other in others) else None


_MOST_GRIDS = 6  # of the newest maps, which what is behind may lie as
_FEW = 96 * 96  # pixels up to which two marks are drawn, which tell the cells of the smallest maps

_FAR = 1e4  # times the largest value: what is scaled down behind, as by a LayerScale, is seen


class Place(NamedTuple):
    """A layer, which of its calls, and where in what it puts out."""

    layer: str
    call: int
    path: Path = ()


class Found(NamedTuple):
    """Layouts that moving has proven: of what calls put out, and of what they are given first."""

    outputs: dict[Place, Layout]
    taken: dict[Place, Layout]


def proven(
    model: Model,
    shape: tuple[int, ...],
    shapes: Mapping[Place, Shape],
    known: Mapping[Place, Layout],
    *,
    wanted: frozenset[Place],
    first: frozenset[Place] = frozenset(),
    keeping: frozenset[Place] = frozenset(),
) -> Found:
    """Return the layouts that one pass with data proves.

    Args:
        model: whose network runs.
        shape: ``(C, H, W)`` of its input.
        shapes: of what each call puts out first, the batch included, in order of return.
        known: maps of one image among those, channels first or last, with their layouts.
        wanted: those whose layouts are looked for.
        first: calls that are given their channels first by definition.
        keeping: calls that put out all but the channels, which are last, as it was given.
    """
    if not wanted or not known:
        return Found({}, {})
    count = 1 if prod(shape[1:]) > _FEW else 2
    trial = _Trial(shapes, known, wanted, count)
    trial.given |= dict.fromkeys(first, Layout(FIRST))
    trial.given |= {place: known.get(place) for place in keeping}
    draws = torch.Generator().manual_seed(0)
    images = torch.randn(1, *shape, generator=draws).expand(trial.images, *shape)
    with (
        suppress(ModelError),
        private_replica(model) as replica,
        hooks.edit(replica, dict.fromkeys(place.layer for place in shapes), trial.change),
    ):
        forward_pass(model, replica, images)
    return trial.ended()


class _Added(NamedTuple):
    """Output that lies as what was changed in the second images does, and which places moved."""

    place: Place
    shape: Shape
    places: Tensor


class _Trial:
    """Pass in which cells are changed: in the first images of maps, in others of what mixes them.

    Attributes:
        found: what it has proven.
        images: how many it takes: one as it is, and some of either kind.
        given: layouts of what calls are given that are sure; None where it lies as the output does.
    """

    def __init__(
        self,
        shapes: Mapping[Place, Shape],
        known: Mapping[Place, Layout],
        wanted: frozenset[Place],
        count: int,
    ) -> None:
        self.found = Found({}, {})
        self.images = 1 + 2 * count
        self.given: dict[Place, Layout | None] = {}
        self._shapes, self._known = shapes, known
        self._left = set(wanted)
        self._first, self._others = slice(0, count), slice(count, 2 * count)  # behind the one
        self._count = count
        self._grids: dict[Grid, None] = {}  # the newest last
        self._added: list[_Added] = []  # that wait for a sum that tells how they lie
        self._rest: tuple[Grid, Tensor] | None = None  # cells of others that shortcuts bring along
        self._draws = torch.Generator().manual_seed(2)
        self._newest: tuple[Tensor, Place] | None = None
        self._links: list[tuple[dict[Place, Layout], Place, Place]] = []  # lies as what another has

    def change(self, call: hooks.Call) -> Any:
        """Look at what has moved, and change what the layer puts out where that tells no more."""
        if not self._left:  # the pass goes on: a later layer may count its calls
            return None
        path, output = _first_tensor(call.output)
        place = Place(call.layer, call.index, path)
        changed = None
        if output is not None and self._is_as_known(output, place):
            self._note_given(call, place)
            newest, by = self._newest or (None, place)
            if output is newest:  # of a block, or of what does nothing
                self._links.append((self.found.outputs, place, by))
            else:
                changed = self._changed(output, place)
                self._newest = (output if changed is None else changed, place)
        self._left.discard(place)
        if changed is None or not path:
            return changed
        return (changed, *call.output[1:])

    def ended(self) -> Found:
        """Return what was proven, with what lies as something that was handed on."""
        outputs, taken = self.found
        for of, place, by in self._links:
            layout = outputs.get(by, self._known.get(by))
            if by == place and place not in outputs:
                layout = taken.get(place)
            if layout is not None:
                of.setdefault(place, layout)
        return self.found

    def _is_as_known(self, output: Tensor, place: Place) -> bool:
        own = self._shapes.get(place)
        if not own or not output.is_floating_point() or output.is_meta:
            return False
        return tuple(output.shape) == (self.images * own[0], *own[1:])

    def _note_given(self, call: hooks.Call, place: Place) -> None:
        """Remember how the first tensor lies that the call was given."""
        given = next((tensor for _, tensor in hooks.plain_tensors_in(call.inputs)), None)
        if given is None or given.ndim < 3 or not given.is_floating_point():
            return
        newest, by = self._newest or (None, place)
        if given is newest:
            self._links.append((self.found.taken, place, by))
        elif not len(given) % self.images:
            shape = (len(given) // self.images, *given.shape[1:])
            moved = Moved(given, shape)
            layout = self._layout(moved, possible_layouts(shape, self._grids))
            if layout is not None:
                self.found.taken[place] = layout
            sure = self.given.get(place) or layout
            if place in self.given and sure is not None and allows(shape, sure):
                self._tell(moved, sure)
        if place in self.given and self.given[place] is None:
            self._links.append((self.found.outputs, place, place))

    def _changed(self, output: Tensor, place: Place) -> Tensor | None:
        shape, known = self._shapes[place], self._known.get(place)
        if len(shape) < 3 or (known is not None and prod(grid_of(shape, known)) == 1):
            return _alike(output, self.images)  # a gate, which is the same for all cells
        moved = Moved(output, shape)
        tried = possible_layouts(shape, self._grids) if known is None else [known]
        layout = self._layout(moved, tried)
        if layout is None and known is None:
            layout = self._coarser(moved, shape)
            if layout is None:
                return self._mixed(moved, output, place)
            known = layout
            self.found.outputs[place] = layout
        elif layout is not None:
            if known is None:
                self.found.outputs[place] = layout
            self._note_grid(grid_of(shape, layout))
            has_told = self._tell(moved, layout)
            return _alike(output, self.images, self._others) if has_told else None
        assert known is not None
        self._note_grid(grid_of(shape, known))
        self._tell(moved, known)
        return self._marked(output, shape, known)

    def _layout(self, moved: Moved, layouts: Iterable[Layout]) -> Layout | None:
        """Return by which layout just the marked cells have moved in the first images."""
        if not moved.any(self._first):
            return None
        found: list[Layout] = []
        for layout in layouts:
            grid = grid_of(moved.shape, layout)
            wanted = marks(grid, self._count)
            found += moved.fitting(layout, self._first, wanted)
        return agreed(found, moved.shape)

    def _coarser(self, moved: Moved, shape: Shape) -> Layout | None:
        """Return the layout of half as many rows and columns that are put together of marked ones.

        As the layer does that puts patches of 2 × 2 together.
        """
        newest = next(reversed(self._grids), None)
        if newest is None or not moved.any(self._first):
            return None
        wanted = coarser(marks(newest, self._count))
        grid = (wanted.shape[1], wanted.shape[2])
        if bool(wanted.flatten(1).all(1).any()):
            return None  # as everything is that mixes cells
        found: list[Layout] = []
        for layout in possible_layouts(shape, [grid]):
            if layout.order != WINDOWS:
                found += moved.fitting(layout, self._first, wanted)
        return agreed(found, shape)

    def _tell(self, moved: Moved, layout: Layout) -> bool:
        """Find how what was added lies; return whether the other images are of no more use."""
        cells = moved.cells(layout, self._others) if moved.any(self._others) else None
        if cells is None:
            return False
        grid = (cells.shape[1], cells.shape[2])
        rest = None
        if self._rest is not None and self._rest[0] == grid:
            rest = self._rest[1]
        has_told = not self._added
        for added in self._added:
            places = PlacesMoved(added.shape, added.places)
            found = [
                each
                for possible in possible_layouts(added.shape, [grid])
                for each in places.fitting(possible, slice(None), cells, rest)
            ]
            told = agreed(found, added.shape)
            if told is not None:
                self.found.outputs[added.place] = told
                has_told = True
        if has_told:
            self._added = []
            self._rest = grid, cells
        return has_told

    def _mixed(self, moved: Moved, output: Tensor, place: Place) -> Tensor | None:
        """Go on behind a layer that mixes cells, or puts out something that is no map."""
        is_first, is_other = moved.any(self._first), moved.any(self._others)
        if self._added and is_other and self._lies_as_added(moved):
            self._added.append(_Added(place, moved.shape, moved.places_of(self._others)))
            return _alike(output, self.images, self._first) if is_first else None
        if not is_first and not is_other:
            return None
        changed = _alike(output, self.images)
        count = prod(moved.shape[:-1])
        chosen = torch.zeros(self._count, count, dtype=torch.bool)
        for places in chosen:
            some = torch.randperm(count, generator=self._draws)[: max(1, round(SHARE * count))]
            places[some] = True
        _change_places(changed, self.images, 1 + self._count, chosen, self._draws)
        self._added = [_Added(place, moved.shape, chosen.view(-1, *moved.shape[:-1]))]
        return changed

    def _lies_as_added(self, moved: Moved) -> bool:
        """Return whether about as many places have moved as were changed."""
        changed = self._added[0].places.flatten(1).sum(1)
        places = moved.places_of(self._others).flatten(1)
        count = places.sum(1)
        are_few = (count <= changed) & (count * 4 >= changed) & (count <= 0.4 * places.shape[1])
        return bool(are_few.all())

    def _marked(self, output: Tensor, shape: Shape, layout: Layout) -> Tensor:
        """Return the output, alike for all images but for the marked cells of the first."""
        self._added, self._rest = [], None
        changed = _alike(output, self.images)
        cells = marks(grid_of(shape, layout), self._count)
        _change_cells(changed, shape, layout, cells, self._draws)
        return changed

    def _note_grid(self, grid: Grid) -> None:
        self._grids.pop(grid, None)
        self._grids[grid] = None
        while len(self._grids) > _MOST_GRIDS:
            self._grids.pop(next(iter(self._grids)))


def _first_tensor(output: object) -> tuple[Path, Tensor | None]:
    """Return where the first tensor of an output is, as far as another can take its place."""
    if isinstance(output, Tensor):
        return (), output
    if type(output) is tuple and output and isinstance(output[0], Tensor):
        return ("0",), output[0]
    return (), None


def _alike(output: Tensor, images: int, some: slice = slice(None)) -> Tensor:
    """Return a copy in which some images, counted without the first, are as that one."""
    copy = output.clone(memory_format=torch.contiguous_format)
    parts = copy.view(images, -1)
    parts[1:][some] = parts[:1]
    return copy


def _change_cells(
    output: Tensor, shape: Shape, layout: Layout, marks: Iterable[Tensor], draws: torch.Generator
) -> None:
    """Change marked cells in place, of the second image and those that follow.

    Args:
        output: of all images.
        shape: of one, its batch of one included.
        layout: of channels first or last, or tokens.
        marks: of each image that is changed, bool, ``(H, W)``.
        draws: where the numbers come from.
    """
    parts = output.view(-1, *shape)
    far = _how_far(parts[0])
    for part, mark in zip(parts[1:], marks, strict=False):
        maps = layout.maps(part[0])
        maps += far * _noise(maps, maps.shape, draws) * mark.to(maps)


def _change_places(
    output: Tensor, images: int, begin: int, places: Tensor, draws: torch.Generator
) -> None:
    """Change places in place, whatever they stand for, of the images from `begin` on.

    Args:
        output: of all images, its channels last.
        images: how many they are.
        begin: the first that is changed.
        places: of each image that is changed, bool, ``(images, places)``.
        draws: where the numbers come from.
    """
    parts = output.view(images, -1, output.shape[-1])
    far = _how_far(parts[0])
    for part, chosen in zip(parts[begin:], places, strict=True):
        some = chosen.nonzero().flatten().to(part.device)
        part[some] += far * _noise(part, (len(some), part.shape[-1]), draws)


def _how_far(values: Tensor) -> Tensor:
    far = _FAR if torch.finfo(values.dtype).max > _FAR**2 else 1.0
    return far * (1 + values.abs().max())


def _noise(like: Tensor, shape: tuple[int, ...], draws: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=draws).to(like)
