"""Files that older versions wrote are read by this one: docs/versioning.md promises it."""

import json
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pytest

import hookviz
from hookviz.explorer.view import View
from hookviz.lessons.lesson import read_lesson
from hookviz.ui.lessons.catalog import parts
from hookviz.ui.presenting.presenter import read_slides

OLD = sorted((Path(__file__).parent / "data").iterdir())
of_each_version = pytest.mark.parametrize("folder", OLD, ids=lambda folder: folder.name)


@of_each_version
def test_files_of_each_version_are_read(folder: Path) -> None:
    atlas = hookviz.load_atlas(folder / "kept.atlas")
    (layer,) = atlas.layers
    strongest = atlas.top_activations(layer, 0)
    assert [each.value for each in strongest] == sorted(
        (each.value for each in strongest), reverse=True
    )
    assert all(each.patch is not None and np.ptp(each.patch) > 0 for each in strongest)
    features = hookviz.FeatureIndex.load(folder / "index.parquet").features
    expected = json.loads((folder / "index.json").read_text("utf-8"))
    assert list(features.names) == list(expected)
    for name, vector in zip(features.names, features.vectors, strict=True):
        assert np.array_equal(vector, np.array(expected[name], np.float32))
    link = (folder / "link.txt").read_text("utf-8")
    (slide,) = read_slides((folder / "slides.json").read_text("utf-8"))
    assert (slide.title, slide.query) == ("One", link)
    view = View.of_link(dict(parse_qsl(link)))
    assert (view.network, view.sample, view.layer) == ("ShapesNet", "star", "stem.first.conv")
    assert (view.sort, view.top, view.scale) == ("max", 16, "symmetric")
    lesson = read_lesson(folder / "lesson.md", parts())
    assert (lesson.title, len(lesson.steps), len(lesson.steps[0].blocks)) == ("Kept", 1, 3)
