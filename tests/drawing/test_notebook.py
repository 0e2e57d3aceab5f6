"""What a notebook shows of a grid, a capture and what a lens found."""

import base64
import io
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from PIL import Image
from torch import Tensor

import hookviz
from hookviz.drawing.grid import make_grid
from hookviz.drawing.notebook import panels_html
from hookviz.drawing.panels import (
    ChartPanel,
    FilePanel,
    GridPanel,
    ImageMap,
    ImagePanel,
    MapsPanel,
    Panel,
    PicturesPanel,
    TablePanel,
    TextPanel,
    TreePanel,
)
from hookviz.types import Model

BAD = "<script>\"'&</script>"
GRID = make_grid(np.arange(12, dtype=np.float32).reshape(3, 2, 2), title=BAD)
PICTURE = np.zeros((5, 7, 3), np.uint8)
LINES = {BAD: np.array([1.0, np.nan]), "other": np.array([np.inf, 2.0])}
PANELS: dict[str, Panel] = {
    "grid": GridPanel(BAD, GRID, BAD),
    "image": ImagePanel(BAD, PICTURE, BAD, BAD),
    "pictures": PicturesPanel(BAD, (PICTURE[:5, :5], None), (BAD, "b"), ("1", BAD), BAD),
    "table": TablePanel(BAD, (BAD, "number"), ((BAD, 1), ("b", float("nan"))), BAD),
    "tree": TreePanel(BAD, (BAD, "number"), ((BAD, 1), ("b", 2)), BAD, (0, 1)),
    "bars": ChartPanel(BAD, ("a", BAD), LINES, caption=BAD),
    "lines": ChartPanel(BAD, ("a", BAD), LINES, "lines", log=True),
    "maps": MapsPanel(BAD, (ImageMap(BAD, BAD, PICTURE, PICTURE),) * 3, BAD),
    "text": TextPanel(BAD),
    "file": FilePanel(BAD, BAD, lambda model: b"", BAD),
    "good": TextPanel(BAD, "good"),
    "unknown tone": TextPanel(BAD, BAD),
}


def pictures(html: str) -> list[Image.Image]:
    data = re.findall(r'src="data:image/png;base64,([^"]+)"', html)
    return [Image.open(io.BytesIO(base64.b64decode(each))) for each in data]


def well_formed(html: str) -> None:
    ET.fromstring(f"<div>{html}</div>")  # noqa: S314 - we wrote it ourselves


@pytest.mark.parametrize("kind", PANELS)
def test_every_kind_of_panel_is_shown_and_escaped(kind: str) -> None:
    html = panels_html([PANELS[kind]])
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    well_formed(html)


def test_pictures_have_their_sizes() -> None:
    grid, image, chart = pictures(panels_html([PANELS["grid"], PANELS["image"], PANELS["bars"]]))
    assert grid.size == (GRID.geometry.width, GRID.geometry.height)
    assert image.size == (7, 5)
    assert chart.size == (720, 272)
    (row,) = pictures(panels_html([PANELS["pictures"]]))
    assert row.size == (10, 5)
    assert row.getpixel((7, 2)) == (128, 128, 128)  # of the one that is not there


def test_a_long_table_is_folded_away() -> None:
    rows = tuple((str(row),) for row in range(31))
    assert "<details>" in panels_html([TablePanel("long", ("a",), rows)])
    assert "<details" not in panels_html([TablePanel("short", ("a",), rows[:30])])


def test_the_rows_of_a_tree_are_indented() -> None:
    html = panels_html([PANELS["tree"]])
    assert "<td>\N{EM SPACE}b</td>" in html


def test_a_tree_shows_as_many_levels_as_one_takes_in() -> None:
    def shown(*depths: int) -> int:
        return TreePanel("tree", ("name",), (("a",),) * len(depths), depths=depths).shown_depth

    assert shown() == 0
    assert shown(0, 0) == 0
    assert shown(0, 1, 2, 2, 0) == 2
    assert shown(*(0, 1, 2) * 6) == 0
    assert shown(*(0, 1, 2, 2, 2) * 5) == 1  # five rows alone say little
    assert shown(0, *(1,) * 39) == 1
    assert shown(0, *(1,) * 40) == 0


def test_panels_follow_each_other_and_none_are_nothing() -> None:
    html = panels_html([TextPanel("first"), TextPanel("second")])
    assert html.index("first") < html.index("second")
    assert panels_html([]) == ""


def test_a_grid_shows_itself() -> None:
    assert GRID._repr_png_() == GRID.png()


def test_a_capture_shows_its_classes_and_shapes(tiny: Model, noise: Tensor) -> None:
    named = hookviz.wrap(tiny, categories=(BAD, "b", "c", "d", "e"))
    html = hookviz.capture(named, noise)._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "<td>conv1</td><td>4×16×16</td>" in html
    assert html.count("%") == 5
    well_formed(html)
    assert "%" not in hookviz.capture(named, noise, "conv1", logits=False)._repr_html_()


def test_what_a_lens_found_shows_itself(tiny: Model, noise: Tensor) -> None:
    html = hookviz.run_lens("summary", tiny, noise)._repr_html_()
    assert "<th>multiply-adds</th>" in html
    well_formed(html)
