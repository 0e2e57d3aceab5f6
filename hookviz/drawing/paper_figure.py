"""Draw chosen channels of captures as a figure for a paper, in centimetres.

1. Draw a grid of each capture and layer, all on one scale.
2. Break layer names until each fits above its columns, measured in the figure's own font.
3. Add up the heights.
4. Place everything, in points from the top left corner.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from hookviz.drawing.colormaps import INF_LEVEL, INF_WORD, NAN_LEVEL, NAN_WORD
from hookviz.drawing.figures import check_dpi, new_figure, readable, width_in_points
from hookviz.drawing.grid import Grid, make_grid
from hookviz.drawing.grid_page import mappable
from hookviz.drawing.scales import ticks
from hookviz.errors import HookVizError, SettingError
from hookviz.hooking.selection import names_matching, several
from hookviz.language.saying import joined, say
from hookviz.types import Capture, Pixels

Channels = Iterable[int] | Mapping[str, Iterable[int]]

_TEXT_PT, _LINE_PT = 7.0, 8.6
_MARGIN_PT, _GAP_PT, _GROUP_GAP_PT = 2.0, 2.5, 6.0
_BAR_PT, _SHORTEST_BAR_PT, _LONGEST_BAR_PT = 5.0, 90.0, 200.0
_LEAST_PX = 256  # of a map's longer side: so small a picture is blurred by some readers of PDF
_TALLEST, _STRIP = 3.0, 0.25  # height / width of a tile at most, and of a strip of sound


def figure(
    captures: Capture | Sequence[Capture],
    layers: str | re.Pattern[str] | Iterable[str | re.Pattern[str]],
    channels: Channels,
    *,
    width_cm: float = 8.5,
    limits: tuple[float, float] | None = None,
    colormap: str | None = None,
    dpi: int = 300,
    depth: int | None = None,
) -> Figure:
    """Draw channels of one or several captures as a figure for a paper, `width_cm` wide.

    Each row is a capture: its input picture, then the channels of each layer. Layer names and
    channel numbers stand above; the one colour bar below has the scale of every tile. Text has 7
    points. As PDF and SVG the figure has every cell, as PNG where it has as many dots. Inputs
    without a picture, such as tensors, are left out.

    Args:
        captures: what `capture` gives, of one image or of several.
        layers: written addresses of activations, ``(C, H, W)``, that each capture has; or patterns
            such as ``"layer3.*.conv?"`` and compiled expressions, as `capture` takes them, which
            choose among the layers of the first capture.
        channels: their numbers, in order, for every layer; or a dict of those of each layer.
        width_cm: of the figure, 8.5 for a column and 17 for a page; its height follows.
        limits: values of the end colours; without, the lowest and the highest value drawn, and for
            a diverging colormap such as ``"RdBu_r"`` as far below zero as above.
        colormap: one of `COLORMAPS`; without, ``"viridis"``.
        dpi: dots per inch of a PNG.
        depth: which slice of volumes, from 0.

    Raises:
        HookVizError: there is no capture or layer, or an activation is no ``(C, H, W)``.
        UnknownLayerError: a capture lacks that layer.
        SettingError: an option means nothing, or the figure is too narrow for its channel numbers.

    >>> model = hookviz.load_model("shapesnet")
    >>> cap = hookviz.capture(model, "assets/samples/star.jpg")
    >>> paper = hookviz.figure(cap, "stem.first.conv", [3, 17], limits=(-5, 5))
    >>> [text.get_text() for text in paper.texts][:4]  # paper.savefig("figure.pdf")
    ['stem.first.conv', 'input', 'channel 3', 'channel 17']
    """
    check_dpi(dpi)
    width = width_in_points(width_cm)
    rows = [captures] if isinstance(captures, Capture) else list(captures)
    selectors = several(layers)
    if not rows or not selectors or not all(isinstance(each, Capture) for each in rows):
        raise HookVizError(
            say("A figure needs one capture or more, which `capture` makes, and a layer or more.")
        )
    names = _addresses(rows[0], selectors)
    chosen = _by_layer(channels, names)

    def grids_on(limits: tuple[float, float] | None) -> list[list[Grid]]:
        options: Any = {"limits": limits, "colormap": colormap, "depth": depth}
        return [
            [make_grid(row[name], channels=chosen[name], **options) for name in names]
            for row in rows
        ]

    grids = grids_on(_shared_limits(grids_on(None)) if limits is None else limits)
    return _Sheet([row.model_input.picture for row in rows], names, grids, width, dpi).draw()


def _addresses(capture: Capture, selectors: Iterable[Any]) -> list[str]:
    """Return the written addresses that the selectors choose, once each.

    Raises:
        UnknownLayerError: one of them chooses none.
    """
    by_layer: dict[str, list[str]] = {}
    for address, activation in capture.items():
        by_layer.setdefault(activation.address.layer, []).append(address)
    addresses = []
    for selector in selectors:
        name = selector.pattern if isinstance(selector, re.Pattern) else str(selector)
        pattern = selector if isinstance(selector, re.Pattern) else name
        chosen = [] if name in capture else names_matching(by_layer, pattern)
        if not chosen:
            capture[name]
        addresses += [each for layer in chosen for each in by_layer[layer]] or [name]
    return list(dict.fromkeys(addresses))


def _by_layer(channels: Channels, names: Sequence[str]) -> Mapping[str, Iterable[int]]:
    """Return the channels of each layer; `make_grid` refuses what are none.

    Raises:
        SettingError: a layer has none.
    """
    if not isinstance(channels, Mapping):
        listed = tuple(channels) if isinstance(channels, Iterable) else channels
        return dict.fromkeys(names, listed)
    for name in names:
        if name not in channels:
            raise SettingError(
                say(
                    "channels= lists none for {layer}; it lists some for {layers}.",
                    layer=name,
                    layers=joined(map(str, channels)),
                )
            )
    return channels


def _shared_limits(grids: Sequence[Sequence[Grid]]) -> tuple[float, float]:
    """Return the lowest and highest finite value shown; of diverging colours ± the larger size."""
    shown = [(grid.stats, grid.order) for row in grids for grid in row]
    lowest = np.concatenate([stats.minimum[order] for stats, order in shown])
    highest = np.concatenate([stats.maximum[order] for stats, order in shown])
    low, high = map(float, np.nan_to_num([np.fmin.reduce(lowest), np.fmax.reduce(highest)]))
    if grids[0][0].colormap.diverging:
        high = max(abs(low), abs(high))
        low = -high
    around = 0.0 if low < high else abs(low) / 2 or 0.5
    return low - around, high + around


def _map_picture(grid: Grid, channel: int) -> Pixels:
    """Colour a map, RGB uint8, every cell as many pixels as make `_LEAST_PX`; sound as a strip."""
    pixels = grid.channel_pixels(channel)
    rows, columns = pixels.shape[:2]
    fold = ceil(_LEAST_PX / max(rows, columns))
    down = max(1, round(columns * fold * _STRIP)) if rows == 1 < columns else fold
    picture: Pixels = pixels.repeat(down, 0).repeat(fold, 1)
    return picture


def _ratio(picture: Pixels | None) -> float:
    return 0.0 if picture is None else min(picture.shape[0] / picture.shape[1], _TALLEST)


class _Sheet:
    """Figure while it is drawn; lengths are in points, y runs down from the top.

    Args:
        inputs: RGB picture of each row's input, or None.
        names: of the layers.
        grids: of each row, a grid for each layer; all on one scale.
        width: of the figure.
        dpi: dots per inch.

    Raises:
        SettingError: the labels have no room.
    """

    def __init__(
        self,
        inputs: Sequence[Pixels | None],
        names: Sequence[str],
        grids: Sequence[Sequence[Grid]],
        width: float,
        dpi: int,
    ) -> None:
        self.names, self.grids, self.width, self.height = names, grids, width, 72.0
        has_inputs = any(picture is not None for picture in inputs)
        self.inputs = [[picture] if has_inputs else [] for picture in inputs]
        self.figure: Figure = new_figure(figsize=(width / 72, 1), dpi=dpi, facecolor="white")
        self.renderer = FigureCanvasAgg(self.figure).get_renderer()  # type: ignore[no-untyped-call]
        self.lefts, self.tile = self._columns()
        self.labels = self._labels()

    def _columns(self) -> tuple[list[list[float]], float]:
        """Return the left edges of each group's columns, the inputs first, and a column's width."""
        counts = [len(self.inputs[0]), *(len(grid.order) for grid in self.grids[0])]
        groups = sum(map(bool, counts))
        gaps = _GAP_PT * (sum(counts) - groups) + _GROUP_GAP_PT * (groups - 1)
        tile = (self.width - 2 * _MARGIN_PT - gaps) / sum(counts)
        lefts, x = [], _MARGIN_PT
        for count in counts:
            lefts.append([x + index * (tile + _GAP_PT) for index in range(count)])
            x += count * (tile + _GAP_PT) + (_GROUP_GAP_PT - _GAP_PT if count else 0)
        return lefts, tile

    def _labels(self) -> list[list[str]]:
        """Return the label of every column: all words that have room, or the numbers alone.

        Raises:
            SettingError: not even the numbers have room.
        """
        count = len(self.inputs[0])
        inputs, bare_inputs = [say("input")] * count, [""] * count
        numbers = [grid.order.tolist() for grid in self.grids[0]]
        in_words = [[say("channel {number}", number=each) for each in group] for group in numbers]
        bare = [[str(each) for each in group] for group in numbers]
        needed = 0.0
        for labels in ([inputs, *in_words], [inputs, *bare], [bare_inputs, *bare]):
            needed = max(self._measure(label) for group in labels for label in group)
            if needed <= self.tile:
                return labels
        raise SettingError(
            say(
                "{count} pictures beside each other in {width} cm have {room} mm each, and the "
                "channel numbers need {needed} mm. Choose fewer channels or a larger width_cm.",
                count=sum(map(len, self.lefts)),
                width=round(self.width / 72 * 2.54, 1),
                room=round(max(self.tile, 0.0) / 72 * 25.4, 1),
                needed=round(needed / 72 * 25.4, 1),
            )
        )

    def _measure(self, line: str) -> float:
        text = self._text(0, 0, line)
        readable(self.figure)
        width = float(text.get_window_extent(self.renderer).width) / self.figure.dpi * 72
        text.remove()
        return width

    def _lines(self, name: str, room: float) -> list[str]:
        """Break a layer's name into lines that have room: behind . and _, or else anywhere."""
        lines, line = [], ""
        for part in re.split(r"(?<=[._])", name):
            pieces = [part] if self._measure(part) <= room else [*part]
            for piece in pieces:
                if line and self._measure(line + piece) > room:
                    lines.append(line)
                    line = ""
                line += piece
        return [*lines, line]

    def draw(self) -> Figure:
        """Place everything, from the top to the bottom."""
        spans = [(lefts[0], lefts[-1] + self.tile) for lefts in self.lefts[1:]]
        names = [
            self._lines(name, right - left)
            for name, (left, right) in zip(self.names, spans, strict=True)
        ]
        rows = [
            [*inputs, *(_map_picture(grid, each) for grid in grids for each in grid.order)]
            for inputs, grids in zip(self.inputs, self.grids, strict=True)
        ]
        heights = [self.tile * max(map(_ratio, row)) for row in rows]
        rule = _MARGIN_PT + _LINE_PT * max(map(len, names)) + 1
        top = rule + _LINE_PT + 2
        bar_top = top + sum(heights) + _GAP_PT * (len(rows) - 1) + 5
        self.height = bar_top + _BAR_PT + 2 + 2 * _LINE_PT + _MARGIN_PT
        self.figure.set_size_inches(self.width / 72, self.height / 72)
        self._header(names, spans, rule)
        for row, height in zip(rows, heights, strict=True):
            self._row(row, top)
            top += height + _GAP_PT
        self._bar(spans[0][0], spans[-1][1], bar_top)
        return readable(self.figure)

    def _header(
        self, names: Sequence[list[str]], spans: Sequence[tuple[float, float]], rule: float
    ) -> None:
        for lines, (left, right) in zip(names, spans, strict=True):
            for below, line in zip(range(len(lines))[::-1], lines, strict=True):
                y = rule - 1 - _LINE_PT * below
                self._text((left + right) / 2, y, line, ha="center", va="bottom")
            self._axes(left, rule, right - left, 0.4).patch.set_facecolor("#888888")
        for lefts, labels in zip(self.lefts, self.labels, strict=True):
            for left, label in zip(lefts, labels, strict=True):
                y = rule + _LINE_PT + 1
                self._text(left + self.tile / 2, y, label, ha="center", va="bottom")

    def _row(self, row: Sequence[Pixels | None], top: float) -> None:
        lefts = [left for group in self.lefts for left in group]
        for index, (left, picture) in enumerate(zip(lefts, row, strict=True)):
            if picture is None:
                continue
            ratio = picture.shape[0] / picture.shape[1]
            width = self.tile * min(1.0, _TALLEST / ratio)
            axes = self._axes(left + (self.tile - width) / 2, top, width, width * ratio)
            is_map = index >= len(self.lefts[0])
            # a PDF has the cells themselves, and no choice of them made at some resolution
            axes.imshow(picture, interpolation="none" if is_map else None, aspect="auto")
            axes.set_axis_off()

    def _bar(self, left: float, right: float, top: float) -> None:
        if right - left < _SHORTEST_BAR_PT:
            left, right = _MARGIN_PT, self.width - _MARGIN_PT
        length = min(right - left, _LONGEST_BAR_PT)
        scale = mappable(self.grids[0][0])
        axes = self._axes(left, top, length, _BAR_PT)
        bar = self.figure.colorbar(scale, cax=axes, orientation="horizontal")
        bar.outline.set_linewidth(0.4)
        low, high = axes.get_xlim()
        marks = self._marks(low, high)
        bar.set_ticks([low + share * (high - low) for share, _ in marks], labels=[""] * len(marks))
        bar.minorticks_off()
        axes.tick_params(length=1.5, width=0.4)
        taken: list[tuple[float, float]] = []
        for share, label in sorted(marks, key=lambda mark: 0 < mark[0] < 1):  # the ends first
            width = self._measure(label)
            start = left + share * length - width * (share if share in {0, 1} else 0.5)
            if all(start > end + 3 or start + width < begin - 3 for begin, end in taken):
                taken.append((start, start + width))
                self._text(start, top + _BAR_PT + 2, label, va="top")
        note = self._note()
        left = max(_MARGIN_PT, min(left, self.width - _MARGIN_PT - self._measure(note)))
        self._text(left, top + _BAR_PT + 2 + _LINE_PT, note, va="top")

    def _marks(self, low: float, high: float) -> list[tuple[float, str]]:
        """Return marks for the bar, with ≤ and ≥ at an end that stands for values beyond too."""
        marks = dict(ticks(low, high))
        shown = [(grid.stats, grid.order) for row in self.grids for grid in row]
        if any((stats.minimum[order] < low).any() for stats, order in shown):
            marks[0.0] = f"≤ {marks[0.0]}"
        if any((stats.maximum[order] > high).any() for stats, order in shown):
            marks[1.0] = f"≥ {marks[1.0]}"
        return [*marks.items()]

    def _note(self) -> str:
        """Say below the bar what it is of, and the colours that it lacks."""
        notes = [say("activation")]
        levels = [grid.levels for row in self.grids for grid in row]
        if any((each == NAN_LEVEL).any() for each in levels):
            notes.append(say("{colour}: NaN", colour=say(NAN_WORD)))
        if any((each == INF_LEVEL).any() for each in levels):
            notes.append(say("{colour}: infinite", colour=say(INF_WORD)))
        return "  ·  ".join(notes)

    def _text(self, x: float, y: float, line: str, **options: Any) -> Any:
        return self.figure.text(
            x / self.width,
            1 - y / self.height,
            line,
            fontsize=_TEXT_PT,
            parse_math=False,  # a "$" in a name is a dollar sign
            color="#222222",
            **options,
        )

    def _axes(self, x: float, y: float, width: float, height: float) -> Any:
        """Return axes without a frame at a place of the page."""
        box = (x / self.width, 1 - (y + height) / self.height)
        axes = self.figure.add_axes((*box, width / self.width, height / self.height))
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_visible(False)
        return axes
