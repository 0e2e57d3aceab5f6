"""What other networks say of a change: both pictures given to them as files."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

import hookviz
from hookviz.drawing.pictures import encode_png
from hookviz.errors import WeightsError
from hookviz.explaining import other_networks
from hookviz.explaining.other_networks import other_answer, other_names
from hookviz.explaining.smallest_change import smallest_change
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.images.samples import samples
from hookviz.models.bundled import BUNDLED


def test_another_network_gets_both_pictures_as_files_and_has_a_change_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = hookviz.load_model("shapesvit")
    star = next(sample.path for sample in samples() if sample.path.stem == "star")
    model_input = hookviz.prepare(model, star)
    change = smallest_change(model, model_input, model.categories.index("heart"), steps=10)
    shares: list[float] = []
    answer: Any = other_answer(
        "shapesnet",
        change,
        lambda *given, **rest: smallest_change(*given, steps=5, most=2, **rest),
        ProgressReporter(shares.append, 2),
    )
    other = hookviz.load_model("shapesnet")
    assert answer.model.digest == other.digest
    for scores, given in ((answer.before, change.original), (answer.after, change.picture)):
        with Image.open(io.BytesIO(encode_png(given))) as file:
            said = hookviz.capture(other, file).logits
        assert said is not None
        np.testing.assert_allclose(scores, said, atol=1e-4)
    assert answer.own.original.shape == (128, 128, 3)
    assert answer.own.target != int(answer.before.argmax())
    assert 0 < max(shares) <= 0.5  # a half of two is this network's

    def no_room(_name: str) -> None:
        raise WeightsError("no room")

    monkeypatch.setattr(other_networks, "load_model", no_room)
    assert other_answer("shapesnet", change, smallest_change, ProgressReporter(None)) is None


def test_the_others_are_all_in_the_box_but_the_network_itself() -> None:
    assert set(other_names(hookviz.load_model("shapesnet"))) == set(BUNDLED) - {"shapesnet"}
