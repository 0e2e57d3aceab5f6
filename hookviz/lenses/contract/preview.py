"""Show small what a lens answers: the picture of one of its panels, or a few rows of its table."""

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from hookviz.drawing.charts import Chart, chart_thumbnail
from hookviz.drawing.panels import GridPanel, ImagePanel, MapsPanel, Panel, TablePanel
from hookviz.drawing.pictures import encode_jpeg, encode_png, resize
from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.lenses.contract.lens import Lens, Subject
from hookviz.lenses.contract.running import look
from hookviz.settings import ASSETS
from hookviz.types import Pixels
from hookviz.wording import number

WIDTH, HEIGHT = 264, 150
"""Pixels of a small picture."""
FOLDER = ASSETS / "lenses"
"""Where `scripts.make_lens_pictures` puts small pictures of what lenses answer on a sample."""

_ROWS, _COLUMNS = 5, 3  # of a table
_TILES = 4  # from one side of a grid to the other


@dataclass(frozen=True, slots=True)
class SmallAnswer:
    """A lens's answer, small.

    Attributes:
        picture: a PNG or JPEG file; empty where `rows` say it.
        rows: the first rows of a table, its headings first.
        of_sample: what the answer is about where it is not the image that is looked at; else empty.
    """

    picture: bytes = b""
    rows: tuple[tuple[str, ...], ...] = ()
    of_sample: str = ""


def small_answer(lens: Lens, subject: Subject) -> SmallAnswer:
    """Run a lens by its `Preview`, and return its answer.

    Raises:
        HookVizError: the lens can't work on this subject.
    """
    return answer_of(lens, look(lens, subject, dict(lens.preview.settings)).panels)


def answer_of(lens: Lens, panels: Sequence[Panel]) -> SmallAnswer:
    """Return the panel that a lens's `Preview` names, small.

    Raises:
        HookVizError: no panel can be shown small.
    """
    drawn = [picture for picture in map(_picture, panels) if picture is not None]
    if drawn:
        picture = drawn[min(lens.preview.panel, len(drawn) - 1)]
        has_alpha = picture.shape[2] == 4
        return SmallAnswer(encode_png(picture) if has_alpha else encode_jpeg(picture, quality=80))
    table = next((panel for panel in panels if isinstance(panel, TablePanel)), None)
    if table is None:
        raise HookVizError(say("{lens} shows no picture.", lens=say(lens.title)))
    rows = (tuple(map(say, table.columns)), *table.rows)
    return SmallAnswer(rows=tuple(tuple(map(_text, row[:_COLUMNS])) for row in rows[:_ROWS]))


def answer_of_sample(lens: Lens) -> SmallAnswer:
    """Return what the lens answers on a sample, as it was kept; empty where nothing was."""
    file = FOLDER / f"{lens.slug}.jpg"
    return SmallAnswer(file.read_bytes() if file.exists() else b"", of_sample=say("on a sample"))


def _picture(panel: Panel) -> Pixels | None:
    match panel:
        case ImagePanel():
            return _fitted(panel.picture)
        case Chart():
            return chart_thumbnail(panel, WIDTH, HEIGHT)
        case MapsPanel():
            return _fitted(panel.sheet(HEIGHT // 3, columns=3))
        case GridPanel():
            with Image.open(io.BytesIO(panel.grid.png())) as picture:
                return _fitted(_corner(np.asarray(picture.convert("RGB")), panel))
    return None


def _corner(picture: Pixels, panel: GridPanel) -> Pixels:
    """Cut the first tiles out of a grid, so few that they are seen."""
    columns = max(1, panel.grid.geometry.columns)
    tile = -(-picture.shape[1] // columns)
    width = min(picture.shape[1], _TILES * tile)
    return picture[: round(width * HEIGHT / WIDTH), :width]


def _fitted(picture: Pixels) -> Pixels:
    """Resize a picture to the small one's width or height, whichever is reached first."""
    height, width = picture.shape[:2]
    scale = min(WIDTH / width, HEIGHT / height)
    return resize(picture, (max(1, round(height * scale)), max(1, round(width * scale))))


def _text(cell: str | float) -> str:
    return cell if isinstance(cell, str) else number(cell)
