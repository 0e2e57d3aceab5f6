"""The toaster lens: the class it begins with, its table, its files, and what is told of them."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

import hookviz
from hookviz.drawing.panels import ChartPanel, FilePanel, ImagePanel, Panel, TablePanel, TextPanel
from hookviz.images.samples import samples
from hookviz.lenses.contract.lens import LensResult
from hookviz.types import Model
from tests.codegen.script_cases import RESNET, SHAPESNET, SQUEEZENET, ScriptCase
from tests.pictures import picture

SCRIPTS = (
    # Where a gradient is next to nothing its sign may differ, as channels come last there.
    ScriptCase({"others": False, "steps": 3, "most": 2}, (*SHAPESNET, *RESNET), 0.1, 4),
    ScriptCase({"others": False, "steps": 4, "most": 1, "target": "0"}, SQUEEZENET, 0.1, 2),
)

PATHS = {sample.path.stem: sample.path for sample in samples()}
FEW: dict[str, Any] = {"steps": 10, "others": False}


def panels_of(result: LensResult, kind: type[Panel]) -> list[Any]:
    return [panel for panel in result.panels if type(panel) is kind]


def opened(data: bytes) -> Image.Image:
    with Image.open(io.BytesIO(data)) as file:
        return file.convert("RGB")


def test_a_cup_becomes_a_toaster_which_is_the_class_to_begin_with() -> None:
    model = hookviz.load_model("squeezenet")
    result = hookviz.run_lens("toaster", model, PATHS["coffee"], **FEW)
    assert model.categories[result.chosen["target"]] == "toaster"
    assert result.values["found"]
    assert np.abs(result.values["difference"]).max() <= result.values["bound"] <= 2
    before, after = (result.values[name] for name in ("before", "after"))
    assert model.categories[int(before.argmax())] == "espresso"
    assert model.categories[int(after.argmax())] == "toaster"
    assert before.sum() == pytest.approx(1, abs=1e-5)
    answer, words = panels_of(result, TextPanel)
    bound = result.values["bound"]
    assert answer.text == f"A change of at most {bound} of 255 turns espresso into toaster."
    assert "espresso" in words.text
    assert f"more than {result.values['bound']} of 255" in words.text
    # What the file gives once it is scaled is told.
    *_, changed = panels_of(result, FilePanel)
    data = changed.file("0", model).data
    label, chance = hookviz.capture(model, data).predictions(1)[0]
    assert label in changed.caption
    assert f"{100 * chance:.1f} %" in changed.caption
    assert hookviz.capture(model, data, size=224, whole=True).predictions(1)[0][0] == "toaster"


def test_the_files_are_the_picture_itself_and_a_card_that_shows_the_enlarged_difference() -> None:
    model = hookviz.load_model("shapesvit")
    result = hookviz.run_lens("toaster", model, PATHS["star"], target="heart", **FEW)
    card, changed = (panel.file("0", model) for panel in panels_of(result, FilePanel))
    assert (card.name, changed.name) == ("shapesvit-heart-card.png", "shapesvit-heart.png")
    saved = np.asarray(opened(changed.data))
    assert np.array_equal(saved, result.values["picture"])
    # The file opened anew, as any photograph: this network's crop is all of its input.
    assert hookviz.capture(model, changed.data).predictions(1)[0][0] == "heart"
    sheet = np.asarray(opened(card.data))
    left, top, times = 48 + 384 + 24, 0, 6  # beside the margin, a picture and a gap
    column = sheet[:, left : left + 384 : times]
    rows = [row for row in range(top, len(column) - 384) if np.array_equal(column[row], saved[0])]
    assert any(np.array_equal(column[row : row + 384 : times], saved) for row in rows)
    *_, added = panels_of(result, ImagePanel)
    enlarged = int(added.title.rpartition(" ")[2].rstrip("×"))
    assert enlarged * result.values["bound"] <= 96 < (enlarged + 1) * result.values["bound"]
    expected = (128 + enlarged * result.values["difference"].astype(int)).clip(0, 255)
    column = sheet[:, 48 + 2 * (384 + 24) :: 6][:, :64]
    assert any(
        np.array_equal(column[row : row + 384 : 6], expected) for row in range(len(column) - 384)
    )


def test_network_after_network_says_of_each_whether_it_is_fooled() -> None:
    model = hookviz.load_model("shapesvit")
    so_far: list[LensResult] = []
    result = hookviz.run_lens(
        "toaster", model, PATHS["star"], target="heart", steps=3, most=2, partial=so_far.append
    )
    (table,) = panels_of(result, TablePanel)
    assert [row[0] for row in table.rows] == [
        model.title,
        *(hookviz.load_model(name).title for name in ("squeezenet", "shapesnet")),
    ]
    assert table.rows[0][1].startswith("star")
    for name, row in zip(("squeezenet", "shapesnet"), table.rows[1:], strict=True):
        other = hookviz.load_model(name)
        label, chance = hookviz.capture(
            other, Image.fromarray(result.values["picture"])
        ).predictions(1)[0]
        assert row[2] == f"{label} {100 * chance:.1f} %"
    counts = [len(panels_of(each, TablePanel)[0].rows) for each in so_far]
    assert counts == sorted(counts)
    kinds = [type(panel) for panel in result.panels]
    assert all([type(panel) for panel in each.panels] == kinds for each in so_far)


def test_the_chart_has_the_class_before_and_that_after(tiny: Model) -> None:
    result = hookviz.run_lens("toaster", tiny, picture(), **FEW)
    (chart,) = panels_of(result, ChartPanel)
    before, after = chart.series.values()
    labels = [f"class {int(result.values[name].argmax())}" for name in ("before", "after")]
    assert chart.labels[0] == labels[0]
    assert labels[1] in chart.labels
    assert before[0] == pytest.approx(100 * result.values["before"].max())
    assert after[chart.labels.index(labels[1])] == pytest.approx(100 * result.values["after"].max())


def test_what_is_not_found_is_told_with_the_bound() -> None:
    model = hookviz.load_model("shapesnet")
    result = hookviz.run_lens(
        "toaster", model, PATHS["star"], target="waves", steps=1, most=1, others=False
    )
    assert not result.values["found"]
    assert panels_of(result, TextPanel)[0].text.startswith("Not waves yet")
    card = panels_of(result, FilePanel)[0].file("0", model)
    assert opened(card.data).width > 1000
