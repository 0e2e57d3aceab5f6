"""Map a whole network on an image for print, as SVG or PNG, with the strongest maps of layers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from hookviz.capturing import engine
from hookviz.capturing.inputs import prepare_input
from hookviz.capturing.layer_trace import input_trace
from hookviz.capturing.recorded_pass import activation_of
from hookviz.drawing.dimensions import middle_maps
from hookviz.drawing.figures import check_dpi, figure_file
from hookviz.drawing.grid import make_grid
from hookviz.drawing.map_page import Card, Line, MapDrawing, map_figure, side_of
from hookviz.errors import SettingError
from hookviz.explaining.network_map.followed_pass import follow_pass
from hookviz.explaining.network_map.layout import (
    ENTRY,
    EXIT,
    Part,
    PlacedPart,
    Point,
    lay_out,
    network_map,
)
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import ProgressReporter, forward_pass, private_replica
from hookviz.hooking.hooks import Recorder
from hookviz.language.saying import say
from hookviz.models.wrapping import as_model
from hookviz.types import ActivationKey, Model, ModelInput, Pixels, Progress, ignore

if TYPE_CHECKING:
    from matplotlib.figure import Figure


CHANNELS = 3
"""How many small maps each layer has on a network's map."""

_SIDE = 40  # pixels of a small map's longer side


@dataclass(frozen=True, eq=False, slots=True)
class StrongestMaps:
    """The strongest channels of one call's output.

    Attributes:
        shape: of all its maps, ``(C, H, W)``.
        channels: their numbers, the strongest first.
        small: their maps in a small size, float32 ``(K, rows, columns)``: means of the cells.
    """

    shape: tuple[int, int, int]
    channels: tuple[int, ...]
    small: Tensor


def small_size(model_input: ModelInput) -> tuple[int, int]:
    """Return how many rows and columns a small map has on a network's map: the input, in small."""
    shape = model_input.tensor.shape
    height, width = shape[-2:] if len(shape) > 3 else (1, 1)
    longer = max(height, width)
    return max(1, round(_SIDE * height / longer)), max(1, round(_SIDE * width / longer))


def strongest_maps(
    model: Model,
    model_input: ModelInput,
    *,
    count: int = 3,
    size: tuple[int, int] = (32, 32),
    rank: Callable[[ActivationKey, Tensor], Tensor] | None = None,
    progress: Progress = ignore,
) -> dict[ActivationKey, StrongestMaps]:
    """Return the channels with the highest values of every layer and block that puts out maps.

    They are made small as each layer returns, so that no more than one layer's activations are
    held at once, and one pass does.

    A small map has `size` rows and columns; a map of fewer cells keeps its cells' values. `rank`
    maps a call's address and its maps, ``(C, H, W)``, to the number that ranks each channel,
    ``(C,)``; the highest value by default.

    Raises:
        ModelError: the network can't take this input.
    """
    trace = input_trace(model, model_input)
    wanted = {address for found in trace.map_outputs.values() for address in found}
    reporter = ProgressReporter(progress, sum(layer.calls for layer in trace.maps))
    found = {}

    def see(call: hooks.Call) -> None:
        recorder = Recorder()
        recorder.see(call)
        for record in recorder.records:
            if record.address not in wanted:
                continue
            activation = activation_of(trace, record)
            if activation is None:
                continue
            maps = middle_maps(activation.values)
            if maps.dim() == 3:
                finite = torch.nan_to_num(maps, nan=0.0, posinf=0.0, neginf=0.0)
                by = finite.flatten(1).amax(1) if rank is None else rank(record.address, finite)
                found[record.address] = _strongest(finite, by, count, size)
        reporter.step()

    with private_replica(model) as replica, hooks.observe(replica, trace.map_outputs, see):
        forward_pass(model, replica, model_input.tensor, reporter)
    return found


def _strongest(maps: Tensor, by: Tensor, count: int, size: tuple[int, int]) -> StrongestMaps:
    channels = by.argsort(descending=True, stable=True)[:count]
    chosen = maps[channels]
    rows, columns = (min(have, want) for have, want in zip(chosen.shape[1:], size, strict=True))
    small = torch.nn.functional.adaptive_avg_pool2d(chosen[None], (rows, columns))
    small = torch.nn.functional.interpolate(small, size, mode="nearest-exact")[0]
    depth, height, width = maps.shape
    return StrongestMaps((depth, height, width), tuple(channels.tolist()), small)


def on_one_scale(small: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Return maps ``(K, H, W)`` with the greatest distance from zero of all of them as 1."""
    greatest = float(small.abs().max())
    return (small / greatest if greatest > 0 else small).numpy()


_CLASSES = 5
_MANY = 100  # lines of one drawing, from which each is faint
_SIGNS = {"add": "+", "iadd": "+", "cat": "⧺", "mul": "×", "imul": "×"}


@dataclass(frozen=True, eq=False, slots=True)
class NetworkMap:
    """Map of a network on one image, for print.

    Attributes:
        model: the network's title.
        layers: names of the layers and joins on it, in the order in which they ran; of blocks that
            are closed theirs. A second call is ``"relu#1"``.
        classes: the likeliest five with their values (`Capture.likeliest`); none without classes.
    """

    model: str
    layers: tuple[str, ...]
    classes: tuple[tuple[str, float], ...]
    _drawing: MapDrawing = field(repr=False)

    def figure(self) -> "Figure":
        """Draw the map for print, on white: as many inches as its layers take, 40 at most.

        A layer is 0.4 inches wide, and less where the whole would be larger.
        """
        return map_figure(self._drawing)

    def figure_bytes(self, format: str = "png", dpi: int = 200) -> bytes:  # noqa: A002 - as savefig
        """Write the `figure` as a file: ``"png"``, ``"pdf"`` or ``"svg"``, whose text is text.

        Of one map each is the same bytes every time. Threads draw one after the other.

        Raises:
            SettingError: `format` is not one of these, or `dpi` is no whole number from 50 to 600.
        """
        check_dpi(dpi)
        return figure_file(self.figure, format, dpi=dpi, keeps_text=True)

    def svg(self) -> str:
        """Return the map as SVG, in which text is text.

        Elements have ids: ``layer-NAME``, ``block-NAME``, ``join-NAME``, and ``line-BLOCK-FROM-TO``
        with the numbers of a block's parts, where ``-1`` is its entry and ``-2`` its exit.
        """
        return self.figure_bytes("svg").decode()

    def png(self, dpi: int = 200) -> bytes:
        """Return the map as PNG, with `dpi` dots per inch.

        Raises:
            SettingError: `dpi` is no whole number from 50 to 600.
        """
        return self.figure_bytes("png", dpi)

    def _repr_png_(self) -> bytes:
        """Return the map, for a notebook."""
        return self.png(100)


def draw_network(
    model: Model | nn.Module,
    image: Any,
    *,
    depth: int | None = None,
    size: int | None = None,
    whole: bool = False,
    progress: Progress = ignore,
) -> NetworkMap:
    r"""Map a whole network for a paper: every layer with its strongest channels on an image.

    From left to right, with the lines along which data flows, blocks around their layers, and the
    likeliest classes at the end. Each layer shows up to three channels, those with the highest
    values, in colours of its own scale: white is zero, blue below, red above.

    Args:
        model: from `load_model` or `wrap`, or a module of one's own.
        image: anything that `prepare_input` takes.
        depth: in how many blocks a shown layer lies at most: with 1 each outer block is one card,
            with its own strongest channels. None opens all of them.
        size: side of the input in pixels, in place of the model's own.
        whole: take in the whole image instead of its centre crop.
        progress: called with the share done; what it raises ends the run.

    Raises:
        ImageError: the image can't be read.
        ModelError: the network can't take this input.
        SettingError: `depth` is no whole number above 0.
        HookVizError: it runs no layer.

    >>> model = hookviz.load_model("shapesnet")
    >>> drawn = hookviz.draw_network(model, "assets/samples/star.jpg", depth=1)
    >>> drawn.layers[:3]
    ('stem', 'stage1', 'stage2')
    >>> drawn.svg()[:5], drawn.png()[:4]
    ('<?xml', b'\x89PNG')
    """
    if depth is not None and (not isinstance(depth, int) or isinstance(depth, bool) or depth < 1):
        raise SettingError(say("depth={depth!r} is not a whole number above 0.", depth=depth))
    model = as_model(model)
    model_input = prepare_input(model, image, size=size, whole=whole)
    reporter = ProgressReporter(progress, 2)
    trace = follow_pass(model, model_input, ProgressReporter(reporter.within), joins=True)
    reporter.step()
    size_of_each = small_size(model_input)
    found = strongest_maps(
        model, model_input, count=CHANNELS, size=size_of_each, progress=reporter.within
    )
    strongest = {ActivationKey(at.layer, at.call): each for at, each in reversed(found.items())}
    part = _closed(network_map(trace, type(model.network).__name__), depth)
    at_step = {each.step: each.address for each in part.leaves() if not each.is_join}
    sides = {step: strongest[at].shape[1] for step, at in at_step.items() if at in strongest}
    placed = lay_out(part, sides, is_even=True)
    pictures = {
        at: _coloured(strongest[at].small.numpy()) for at in at_step.values() if at in strongest
    }
    seen = engine.capture(model, model_input, ())
    top = seen.top(_CLASSES)
    values = dict(seen.likeliest(_CLASSES) if top else ())
    classes = tuple((each.name, values[each.number]) for each in top)
    begins = [points[0] for begin, _, points in placed.lines if begin == ENTRY]
    ends = _ends(placed)
    drawing = MapDrawing(
        cards=tuple(_cards(placed, pictures)),
        lines=tuple(_lines(placed, ends)),
        size=placed.size,
        photograph=model_input.picture,
        classes=tuple(each[1:] for each in top),
        begins=begins[0] if begins else (0.0, placed.size[1] / 2),
        ends=ends,
        legend=say(
            "{model}: each layer's channels with the highest values, at most three, each layer on "
            "its own scale; white is zero, blue below zero, red above.",
            model=model.title,
        ),
    )
    return NetworkMap(
        model.title, tuple(str(each.address) for each in part.leaves()), classes, drawing
    )


def _closed(part: Part, depth: int | None) -> Part:
    """Close the blocks of a part from that depth on: each stands for its last layer."""
    if depth is None or not part.parts:
        return part
    if depth == 0:
        return replace(part, step=max(each.step for each in part.leaves()), parts=(), lines=())
    return replace(part, parts=tuple(_closed(each, depth - 1) for each in part.parts))


def _coloured(small: np.ndarray[Any, np.dtype[np.float32]]) -> tuple[Pixels, ...]:
    grid = make_grid(small, scale="symmetric")
    return tuple(grid.channel_pixels(channel) for channel in range(len(small)))


def _ends(placed: PlacedPart) -> Point:
    """Return where the network's line ends: behind its last layer if there is room for classes."""
    ways = [points for _, end, points in placed.lines if end == EXIT]
    if not ways:
        return placed.size[0], placed.size[1] / 2
    (last, _), (right, down) = ways[0][-2:]
    beyond = [
        each.top + each.height for each in placed.inside if each.left + each.width > last + 1e-9
    ]
    is_free = down - max(beyond, default=0.0) > 0.6 * side_of(placed.size)
    return (last + 0.5 if is_free and len(ways) == 1 else right, down)


def _corner(placed: PlacedPart, left: float, top: float) -> Point:
    """Return where the drawing in a card begins that lies there: in its middle."""
    width, height = placed.size
    return left + (placed.width - width) / 2, top + (placed.height - height) / 2


def _cards(
    placed: PlacedPart,
    pictures: Mapping[ActivationKey, tuple[Pixels, ...]],
    corner: Point = (0.0, 0.0),
    level: int = 1,
) -> Iterator[Card]:
    """Yield the cards in a drawing, each with those in it."""
    for each in placed.inside:
        part, left, top = each.part, corner[0] + each.left, corner[1] + each.top
        name = str(part.address)
        kind = "block" if part.parts else "layer"
        if part.is_join:
            kind = "join"
        function = part.address.layer
        yield Card(
            id=f"{kind}-{name}",
            name=_SIGNS.get(function, function[:4]) if part.is_join else _within(name, placed),
            left=left,
            top=top,
            width=each.width,
            height=each.height,
            level=level,
            pictures=() if part.parts or part.is_join else pictures.get(part.address, ()),
            words="" if part.parts else part.shape,
            is_join=part.is_join,
            is_block=bool(part.parts),
        )
        yield from _cards(each, pictures, _corner(each, left, top), level + 1)


def _within(name: str, around: PlacedPart) -> str:
    """Return a part's name without that of the block around it."""
    return name.removeprefix(f"{around.part.address}.") if around.part.address.layer else name


def _lines(
    placed: PlacedPart,
    ends: Point,
    begins: Point | None = None,
    corner: Point = (0.0, 0.0),
    level: int = 1,
) -> Iterator[Line]:
    """Yield the lines of a drawing, and of those in it.

    The line around the drawing comes in at `begins` and goes on at `ends`, at the border of its
    card; None is the drawing's own border. The drawing begins at `corner`.
    """
    for begin, end, points in placed.lines:
        through = [(corner[0] + x, corner[1] + y) for x, y in points]
        if begin == ENTRY and begins is not None:
            through[0] = begins
        if end == EXIT:
            through[-1] = ends
        yield Line(
            f"line-{placed.part.address}-{begin}-{end}",
            tuple(through),
            level,
            is_faint=len(placed.lines) > _MANY,
        )
    for each in placed.inside:
        left, top = corner[0] + each.left, corner[1] + each.top
        middle = top + each.height / 2
        way = (left + each.width, middle), (left, middle)
        yield from _lines(each, *way, _corner(each, left, top), level + 1)
