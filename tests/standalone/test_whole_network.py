"""The map in a page is the library's, in each language and theme, and says what it has not."""

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import hookviz
from hookviz.explorer.answering import answer
from hookviz.explorer.question import Question
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.language.speaking import speaking
from tests.explorer.subjects import subject_of
from tests.standalone.pages import LANGUAGES, THEMES, Asked, Recorded, recorded

KEPT, BESIDE = "stem.first.conv", "stem.first.norm"


@pytest.fixture(scope="module")
def subject() -> Subject:
    return subject_of(hookviz.load_model("shapesnet"), "star")


@pytest.fixture(scope="module")
def page(subject: Subject, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(subject, [KEPT], tmp_path_factory.mktemp("page"), has_map=True)


def parts(network: Any) -> Iterator[Any]:
    yield network
    for each in network.get("parts", ()):
        yield from parts(each)


@pytest.mark.parametrize(("language", "theme"), [(0, 0), (1, 1)])
def test_it_is_the_library_s_map(
    subject: Subject, page: Recorded, language: int, theme: int
) -> None:
    ((facts, data),) = page.answers([Asked("whole", {}, None, language, theme)])
    with speaking(LANGUAGES[language]):
        expected = answer(replace(subject, colours=THEMES[theme]), View(), Question("whole"))
    for part in parts(facts["network"]):
        part.pop("isKept", None)
        part.pop("sees", None)
    assert facts == json.loads(json.dumps(expected.facts))
    with Image.open(io.BytesIO(data)) as ours, Image.open(io.BytesIO(expected.data)) as theirs:
        pictures = [np.asarray(each.convert("RGBA")) for each in (ours, theirs)]
    np.testing.assert_array_equal(pictures[0], pictures[1])


def test_what_is_not_kept_says_so_and_what_its_middle_sees(
    subject: Subject, page: Recorded
) -> None:
    by_name = {each["name"]: each for each in parts(page.facts("whole")["network"])}
    assert "isKept" not in by_name[KEPT]
    assert not by_name[BESIDE]["isKept"]
    network, image = subject.model.network, subject.model_input.tensor.clone().requires_grad_()
    _, rows, columns = by_name[BESIDE]["maps"]
    stem = dict(network.named_modules())
    stem[BESIDE](stem[KEPT](image))[0, 0, rows // 2, columns // 2].backward()
    assert image.grad is not None
    down, across = (image.grad.abs().sum((0, 1, side)).nonzero() for side in (3, 2))
    crop, shown = subject.model_input.crop, subject.image
    assert crop is not None
    expected = []
    for start, end, cells, whole, seen in (
        (crop.top, crop.bottom, crop.height, shown.height, down),
        (crop.left, crop.right, crop.width, shown.width, across),
    ):
        ends = torch.tensor([float(seen.min()), float(seen.max()) + 1])
        expected.append((start + ends * (end - start) / cells) / whole)
    (top, bottom), (left, right) = expected
    assert by_name[BESIDE]["sees"] == pytest.approx(
        [float(edge) for edge in (top, left, bottom, right)], abs=2e-4
    )


def test_a_map_that_is_too_large_is_refused(tmp_path: Path) -> None:
    model = hookviz.load_model("shapesnet")
    seen = hookviz.capture(model, "assets/samples/star.jpg", KEPT)
    with pytest.raises(hookviz.HookVizError, match=r"map of the whole network takes .* alone"):
        hookviz.save_page(seen, tmp_path / "star.html", whole_network=True, most_bytes=9000)
