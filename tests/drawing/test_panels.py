"""What a notebook and a shell show of panels, of a grid and of a capture."""

import base64
import io
import re
from collections.abc import Iterator
from inspect import isabstract
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from PIL import Image
from torch import Tensor

import hookviz
from hookviz.drawing.attention_panel import AttentionPanel
from hookviz.drawing.grid import make_grid
from hookviz.drawing.panels import (
    ChartPanel,
    FilePanel,
    GridPanel,
    ImageMap,
    ImagePanel,
    MapsPanel,
    OverlayPanel,
    Panel,
    PanelFile,
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


def kinds(of: type[Any]) -> Iterator[str]:
    """The names of all classes of panels that can be made."""
    for kind in of.__subclasses__():
        if not isabstract(kind):
            yield kind.__name__  # and not the class: a dataclass with slots is made twice
        yield from kinds(kind)


PANELS: dict[str, Panel] = {
    "grid": GridPanel(BAD, GRID, BAD),
    "image": ImagePanel(BAD, PICTURE, BAD, BAD),
    "overlay": OverlayPanel(BAD, PICTURE, BAD, BAD, lower=PICTURE, upper=PICTURE, opacity=0.5),
    "attention": AttentionPanel(
        *(BAD, PICTURE, BAD, BAD),
        photograph=PICTURE,
        grid=(1, 2),
        weights=np.ones((1, 1, 2, 2), np.float32),
        queries=np.array([[0, 1]]),
        keys=np.array([[0, 1]]),
        class_token=None,
        fixed=(),
        query=0,
        head=None,
    ),
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


def test_every_kind_of_panel_is_among_them_and_pictures_have_their_sizes() -> None:
    assert {type(panel).__name__ for panel in PANELS.values()} == set(kinds(Panel))
    grid, image, chart = (pictures(PANELS[kind].html())[0] for kind in ("grid", "image", "bars"))
    assert grid.size == (GRID.geometry.width, GRID.geometry.height)
    assert image.size == (7, 5)
    assert chart.size == (720, 272)
    (row,) = pictures(PANELS["pictures"].html())
    assert row.size == (10, 5)
    assert row.getpixel((7, 2)) == (128, 128, 128)  # of the one that is not there


@pytest.mark.parametrize("kind", PANELS)
def test_every_kind_of_panel_is_shown_and_escaped(kind: str) -> None:
    html = PANELS[kind].html()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    well_formed(html)


def test_a_long_table_is_folded_away_and_the_rows_of_a_tree_are_indented() -> None:
    rows = tuple((str(row),) for row in range(31))
    assert "<details>" in TablePanel("long", ("a",), rows).html()
    assert "<details" not in TablePanel("short", ("a",), rows[:30]).html()
    assert "<td>\N{EM SPACE}b</td>" in PANELS["tree"].html()


def test_a_shell_prints_what_is_text_and_a_panel_is_a_file_of_its_kind(tiny: Model) -> None:
    printed = {kind: panel.printed() for kind, panel in PANELS.items()}
    assert printed["grid"] == printed["image"] == printed["bars"] == printed["maps"] == f"[{BAD}]"
    assert printed["pictures"] == f"{BAD}: {BAD} (1), b ({BAD})"
    assert printed["text"] == BAD
    assert printed["file"] == f"[{BAD}: -o writes {BAD}]"
    title, _, first, second, caption = printed["tree"].strip().splitlines()
    assert (title, caption) == (BAD, BAD)
    assert (first.split(), second.split()) == ([BAD, "1"], ["b", "2"])
    assert second.startswith("  b")
    assert "nan" in printed["table"]
    assert GridPanel("layer", GRID, state="before").printed() == "[layer before]"
    files = {kind: panel.file("3-lens", tiny) for kind, panel in PANELS.items()}
    names = {kind: file.name for kind, file in files.items() if file}
    assert files["text"] is None
    assert files["file"] == PanelFile(BAD, b"")
    assert {names[kind] for kind in ("table", "tree")} == {"3-lens.csv"}
    drawn = ("grid", "image", "pictures", "bars", "lines", "maps")
    assert {names[kind] for kind in drawn} == {"3-lens.png"}
    for kind in drawn:
        file = files[kind]
        assert file
        Image.open(io.BytesIO(file.data)).verify()


def test_a_grid_and_what_a_lens_finds_show_themselves(tiny: Model, noise: Tensor) -> None:
    assert GRID._repr_png_() == GRID.png()
    html = hookviz.run_lens("summary", tiny, noise)._repr_html_()
    assert "<th>multiply-adds</th>" in html
    well_formed(html)


def test_a_capture_shows_its_classes_and_shapes(tiny: Model, noise: Tensor) -> None:
    named = hookviz.wrap(tiny, categories=(BAD, "b", "c", "d", "e"))
    html = hookviz.capture(named, noise)._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "<td>conv1</td><td>4×16×16</td>" in html
    assert html.count("%") == 5
    well_formed(html)
    assert "%" not in hookviz.capture(named, noise, "conv1", logits=False)._repr_html_()


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
