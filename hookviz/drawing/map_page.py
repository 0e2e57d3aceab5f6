"""Draw a network's map for print: cards with pictures, the lines between them, classes at the end.

Lengths are units of the map, in which a layer's card is one wide; y runs down.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from hookviz.drawing.colormaps import ACCENT
from hookviz.drawing.figures import new_figure
from hookviz.types import Pixels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Point = tuple[float, float]

_UNIT = 0.4  # inches
_LONGEST = 40.0  # inches that a map is wide or high at most
_MARGIN = 0.5
_NAME, _BLOCK, _LEGEND = 0.15, 0.24, 0.24  # sizes of type
_LETTER = 0.6  # of its size, how wide a letter is
_INK, _GREY, _LINE = "#222222", "#98a2b3", "#475467"
_GROUNDS = ("#ffffff", "#f2f4f7", "#e7ebf1", "#dde3ec")  # of a block, the deeper the darker
_CLASSES, _CLASSES_WIDE = 5, 1.5  # that are as high as the photograph; times as wide
_STACK = 0.94  # of the height that a picture has, what it takes


@dataclass(frozen=True, eq=False, slots=True)
class Card:
    """A layer, a join or a block.

    Attributes:
        id: of its outline in an SVG.
        name: the text above; of a join its sign, in its circle.
        left, top, width, height: where it lies.
        level: in how many blocks it is; 1 for one that is in none.
        pictures: from top to bottom, of one size, RGB uint8 ``(H, W, 3)``.
        words: what it says where it has no pictures.
        is_join, is_block: which of them it is.
    """

    id: str
    name: str
    left: float
    top: float
    width: float
    height: float
    level: int
    pictures: tuple[Pixels, ...] = ()
    words: str = ""
    is_join: bool = False
    is_block: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line between two cards.

    Attributes:
        id: of it in an SVG.
        points: that it leads through.
        level: of the cards that it joins.
        is_faint: one of more than 100 lines, drawn faintly.
    """

    id: str
    points: tuple[Point, ...]
    level: int
    is_faint: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class MapDrawing:
    """All that is on the page.

    Attributes:
        cards: those around before those in them.
        lines: between them.
        size: width and height of them together.
        photograph: what the network was given, at the left; None where that is no picture.
        classes: name, share and how that is written, at the right.
        begins, ends: where the network's own line comes in, and goes out.
        legend: below.
    """

    cards: Sequence[Card]
    lines: Sequence[Line]
    size: Point
    photograph: Pixels | None
    classes: Sequence[tuple[str, float, str]]
    begins: Point
    ends: Point
    legend: str


def side_of(size: Point) -> float:
    """Return how high photograph and classes are beside a map of that size."""
    return min(6.0, max(2.0, size[1] / 4))


def map_figure(drawing: MapDrawing) -> "Figure":
    """Draw the page as a figure of its own: 0.4 inches a unit, or 40 inches at most."""
    width, height = drawing.size
    side = side_of(drawing.size)
    (_, begin), (last, end) = drawing.begins, drawing.ends
    left = -side - 3 * _MARGIN if drawing.photograph is not None else -_MARGIN
    beyond = last + _CLASSES_WIDE * side + _MARGIN if drawing.classes else 0.0
    right = max(width, beyond) + _MARGIN
    top = min(0.0, begin - side / 2, end - side / 2) - _MARGIN
    lowest = max(height, begin + side / 2, end + side / 2) + _MARGIN
    type_size = max(_LEGEND, (right - left) / 200)  # to be read where the whole is a page wide
    legend = wrap(
        drawing.legend, max(20, int((right - left - 2 * _MARGIN) / (type_size * _LETTER)))
    )
    bottom = lowest + 1.5 * type_size * len(legend) + _MARGIN / 2
    unit = min(_UNIT, _LONGEST / (right - left), _LONGEST / (bottom - top))
    figure = new_figure(figsize=((right - left) * unit, (bottom - top) * unit), facecolor="white")
    figure.suppressComposite = True  # each picture stays one of its own in an SVG
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    axes.set_autoscale_on(False)
    pen = _Pen(axes, 72 * unit)
    for line in drawing.lines:
        pen.line(line)
    for card in drawing.cards:
        pen.card(card)
    if drawing.photograph is not None:
        pen.photograph(drawing.photograph, -2 * _MARGIN, begin, side)
    pen.classes(drawing.classes, (last + _MARGIN, end), (_CLASSES_WIDE * side, side))
    for at, words in enumerate(legend):
        pen.text(words, left + _MARGIN, lowest + 1.5 * type_size * at, type_size, va="top")
    return figure


class _Pen:
    """Draws parts of a map on axes whose units are the map's; `points` is how many one takes."""

    def __init__(self, axes: "Axes", points: float) -> None:
        self.axes, self.points = axes, points

    def text(self, words: str, x: float, y: float, size: float, **options: Any) -> None:
        placed: dict[str, Any] = {"ha": "left", "va": "bottom", "color": _INK} | options
        # a "$" in a name is a dollar sign
        self.axes.text(
            x, y, words, fontsize=size * self.points, parse_math=False, zorder=1000, **placed
        )

    def line(self, line: Line) -> None:
        from matplotlib.patches import PathPatch  # noqa: PLC0415 - see `figures.new_figure`
        from matplotlib.path import Path  # noqa: PLC0415

        (x, y), *others = line.points
        ends, codes = [(x, y)], [Path.MOVETO]
        for across, down in others:
            middle = (x + across) / 2
            ends += [(middle, y), (middle, down), (across, down)]
            codes += [Path.CURVE4] * 3
            x, y = across, down
        self.axes.add_patch(
            PathPatch(
                Path(ends, codes),
                fill=False,
                edgecolor=_LINE,
                alpha=0.3 if line.is_faint else 0.8,
                linewidth=0.025 * self.points,
                gid=line.id,
                zorder=2 * line.level - 1,
            )
        )

    def card(self, card: Card) -> None:
        from matplotlib.patches import Circle, Rectangle  # noqa: PLC0415

        zorder = 2 * card.level
        outline: dict[str, Any] = {
            "edgecolor": _LINE if card.is_join else _GREY,
            "linewidth": 0.02 * self.points,
            "gid": card.id,
            "zorder": zorder,
        }
        middle = card.left + card.width / 2, card.top + card.height / 2
        if card.is_join:
            self.axes.add_patch(Circle(middle, card.width / 2, facecolor="white", **outline))
            size = card.width * (0.8 if len(card.name) == 1 else 0.3)
            self.text(card.name, *middle, size, ha="center", va="center_baseline")
            return
        ground = _GROUNDS[min(card.level, len(_GROUNDS) - 1)] if card.is_block else "white"
        box = (card.left, card.top), card.width, card.height
        self.axes.add_patch(Rectangle(*box, facecolor=ground, **outline))
        size = _BLOCK if card.is_block else _NAME
        room = card.width + (0 if card.is_block else 0.4)
        self.text(fitting(card.name, room, size), card.left, card.top - 0.04, size)
        self._pictures(card, zorder)
        if not card.pictures and card.words:
            words = fitting(card.words, card.height - 0.1, _NAME)
            self.text(words, *middle, _NAME, rotation=90, ha="center", va="center")

    def _pictures(self, card: Card, zorder: int) -> None:
        """Stack as many of a card's pictures as there is room for."""
        if not card.pictures:
            return
        rows, columns, _ = card.pictures[0].shape
        across, down = 0.92 * card.width, card.height - 0.08 * card.width
        high = min(down, across * rows / columns)
        count = max(1, min(len(card.pictures), int(down / high + 0.01)))
        size = min(down / count, high) * _STACK
        wide = size * columns / rows
        left = card.left + (card.width - wide) / 2
        top = card.top + (card.height - down) / 2
        for at, picture in enumerate(card.pictures[:count]):
            upper = top + down * (at + 0.5) / count - size / 2
            self.picture(picture, (left, upper), (wide, size), zorder + 0.5)

    def picture(self, picture: Pixels, corner: Point, size: Point, zorder: float) -> None:
        (left, top), (wide, high) = corner, size
        self.axes.imshow(
            picture,
            extent=(left, left + wide, top + high, top),
            aspect="auto",
            interpolation="none",  # an SVG keeps its pixels as they are
            zorder=zorder,
        )

    def photograph(self, picture: Pixels, right: float, middle: float, side: float) -> None:
        rows, columns, _ = picture.shape
        wide = side * min(1, columns / rows)
        high = wide * rows / columns
        self.picture(picture, (right - wide, middle - high / 2), (wide, high), 1)
        self.line(Line("line-photograph", ((right, middle), (0.0, middle)), 1))

    def classes(
        self,
        classes: Sequence[tuple[str, float, str]],
        start: Point,
        size: Point,
    ) -> None:
        from matplotlib.patches import Rectangle  # noqa: PLC0415

        (left, middle), (wide, high) = start, size
        step = high / _CLASSES
        letters = step * 0.45
        for at, (name, share, says) in enumerate(classes):
            top = middle + (at - len(classes) / 2) * step
            room = wide - letters * _LETTER * (len(says) + 1)
            self.text(f"{fitting(name, room, letters)} {says}", left, top + step * 0.62, letters)
            bar = (left, top + step * 0.66), max(0.02, wide * share), step * 0.16
            self.axes.add_patch(Rectangle(*bar, facecolor=ACCENT, edgecolor="none"))


def fitting(words: str, room: float, size: float) -> str:
    """Return as many of the words' letters as there is room for, in type of that size.

    >>> fitting("downsample", 0.8, 0.15)
    'downsam…'
    """
    most = max(1, int(room / (size * _LETTER)))
    return words if len(words) <= most else f"{words[: most - 1]}…"
