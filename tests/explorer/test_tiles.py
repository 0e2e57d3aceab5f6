"""The tiles, against the pixels of the library's own grid, read out of the PNG by Pillow."""

import io
import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

import hookviz
from hookviz.atlas.files import atlas_of
from hookviz.errors import HookVizError
from hookviz.explorer.question import Answer
from hookviz.explorer.subject import Subject
from hookviz.explorer.tiles import describe_pair
from hookviz.explorer.view import View
from hookviz.types import Capture, Model
from hookviz.wording import percent
from tests.explorer.asking import ask, asked, pinned, subject_of, words


def values(subject: Subject, step: str = "stem.first.conv") -> NDArray[np.float32]:
    capture = hookviz.capture(subject.model, subject.model_input, step)
    return capture[step].values.numpy()


def tile(found: Answer, position: int, below: int = 0) -> NDArray[np.uint8]:
    """The pixels of one tile, cut out by the answer's geometry; `below` it a whole picture."""
    geometry = found.facts["geometry"]
    row, column = divmod(position, geometry["columns"])
    top, left = (place * step for place, step in zip((row, column), geometry["pitch"], strict=True))
    height, width = geometry["tile"]
    top += below * geometry["height"]
    picture = np.asarray(Image.open(io.BytesIO(found.data)).convert("RGB"))
    return picture[top : top + height, left : left + width]


def assert_signs(pixels: NDArray[np.uint8], numbers: NDArray[np.float32]) -> None:
    """Each pixel is red above zero and blue below."""
    redness = pixels[:, 0].astype(int) - pixels[:, 2]
    assert len(numbers)
    np.testing.assert_array_equal(np.sign(redness), np.sign(numbers))


@pytest.mark.parametrize("view", [View(), View(scale="channel", colours="viridis")])
def test_each_tile_has_its_channels_colours(subject: Subject, view: View) -> None:
    found = ask(subject, "tiles", view)
    grid = hookviz.make_grid(
        values(subject),
        scale="balanced" if view.scale == "automatic" else view.scale,
        colormap="RdBu_r" if view.colours == "automatic" else view.colours,
    )
    assert found.facts["order"] == grid.order.tolist()
    for position, channel in enumerate(found.facts["order"]):
        np.testing.assert_array_equal(tile(found, position), grid.channel_pixels(channel))


def test_the_orders_are_those_of_the_numbers(subject: Subject) -> None:
    maps = values(subject, "stem.relu").astype(float)
    facts = asked(subject, "tiles", View(after="ReLU"))
    keys = {
        "max": maps.max((1, 2)),
        "mean": maps.mean((1, 2)),
        "variance": maps.var((1, 2)),
        "zeros": (maps == 0).mean((1, 2)),
    }
    for sort, key in keys.items():
        order = facts["orders"][sort]
        np.testing.assert_allclose(key[order], np.sort(key)[::-1], rtol=1e-12)
        assert sorted(order) == facts["order"] == list(range(32))
    np.testing.assert_allclose(facts["stats"]["mean"], maps.mean((1, 2)), rtol=1e-6, atol=1e-7)


def test_it_says_in_words_what_is_seen_the_same_in_any_order(subject: Subject) -> None:
    plain = ask(subject, "tiles")
    sorted_ = ask(subject, "tiles", View(sort="max", top=16))
    assert sorted_.data == plain.data
    assert {**sorted_.facts, "cost": ""} == {**plain.facts, "cost": ""}
    assert plain.facts["cost"].startswith("one forward pass ")
    pattern = r"from this session's cache \d+ ms · drawn in \d+ ms · \d+ of 67 MB kept"
    assert re.fullmatch(pattern, sorted_.facts["cost"])
    assert asked(subject, "tiles", View(channel=1))["key"] == plain.facts["key"]
    assert asked(subject, "tiles", View(scale="channel"))["key"] != plain.facts["key"]
    facts = plain.facts
    alt = "all 32 channels of layer stem.first.conv for: a yellow star."
    assert facts["alt"].startswith(alt)
    assert words(facts["legend"]).startswith("Blue is below zero")
    assert facts["shown"] == {"all": "All 32 channels.", "16": "16 of 32 shown."}
    assert (facts["rows"], facts["columns"]) == (64, 64)
    assert facts["compare"] is facts["pair"] is None
    same = replace(subject, pinned=pinned(subject, "stem.first.conv"))
    says = asked(same, "tiles")["compare"]["says"]
    assert says["same"].startswith("A is what you look at: choose another image")
    assert says["parts"][0] == ("A", "", True)
    assert (facts["isPatches"], facts["isDifference"], facts["isOfA"]) == (False, False, False)
    assert facts["notes"] == []


@pytest.mark.parametrize(("shown", "face"), [("A", "a"), ("B", "b"), ("Split", "split")])
def test_a_pair_has_the_tiles_of_both(subject: Subject, shown: str, face: str) -> None:
    subject = replace(subject, pinned=pinned(subject, "stem.first.norm", image="cat"))
    found = ask(subject, "tiles", View(compared=shown))
    facts = found.facts
    assert (facts["pair"]["face"], facts["isDifference"], facts["isOfA"]) == (face, False, False)
    both = values(subject), values(subject, "stem.first.norm")
    size = np.percentile(np.abs(np.stack(both)), 99)  # on one scale
    assert facts["limits"]["high"][5] == pytest.approx(size, rel=1e-3)
    for below, maps in enumerate(both):
        strong = np.abs(maps[5]) > size / 20
        assert_signs(tile(found, 5, below)[strong], maps[5][strong])
    np.testing.assert_allclose(facts["pair"]["stats"]["mean"], both[1].mean((1, 2)), rtol=1e-4)
    assert facts["compare"] == {
        "options": [{"value": v, "says": v} for v in ("A", "B", "Split", "Difference")],
        "chosen": shown,
        "says": {
            "a": "cat · ShapesNet · stem.first.norm",
            "b": "star · stem.first.conv",
            "more": "",
        },
        "alike": True,
        "hint": "Hold F to flip between the two.",
        "seen": [],
        "warning": "",
    }


def test_the_difference_is_red_where_b_is_higher(subject: Subject) -> None:
    subject = replace(subject, pinned=pinned(subject, "stem.first.norm"))
    found = ask(subject, "tiles", View(compared="Difference"))
    assert found.facts["isDifference"]
    assert found.facts["pair"] is None
    changed = values(subject)[7] - values(subject, "stem.first.norm")[7]
    sizes = np.abs(values(subject) - values(subject, "stem.first.norm"))
    most = np.percentile(sizes, 99, method="higher")  # as of maps
    assert found.facts["limits"]["high"][0] == pytest.approx(most)
    strong = np.abs(changed) > most / 20
    assert_signs(tile(found, 7)[strong], changed[strong])


@pytest.mark.parametrize(("shown", "of_a"), [("A", True), ("B", False), ("Difference", False)])
def test_of_two_shapes_one_is_shown(subject: Subject, shown: str, of_a: bool) -> None:
    subject = replace(subject, pinned=pinned(subject, "stage3"))
    found = ask(subject, "tiles", View(compared=shown, sort="change"))
    facts, compare = found.facts, found.facts["compare"]
    maps = values(subject, "stage3" if of_a else "stem.first.conv")
    assert (facts["isOfA"], facts["pair"], facts["isDifference"]) == (of_a, None, False)
    assert facts["geometry"]["tile"] == [*maps.shape[1:]] == [facts["rows"], facts["columns"]]
    np.testing.assert_allclose(facts["stats"]["highest"], maps.max((1, 2)), rtol=1e-6)
    assert facts["strongest"] == maps.reshape(len(maps), -1).argmax(1).tolist()
    assert [each["value"] for each in compare["options"]] == ["A", "B"]
    assert (compare["chosen"], compare["alike"], compare["hint"]) == (
        "A" if of_a else "B",
        False,
        "",
    )
    assert "A has 128 maps of 8×8 and B 32 of 64×64" in compare["says"]["more"]


def test_nothing_but_json_is_in_it(subject: Subject) -> None:
    def check(value: Any) -> None:
        json.dumps(value, allow_nan=False)

    check(dict(asked(replace(subject, pinned=pinned(subject, "stem")), "tiles")))
    hollow = subject.model_input.tensor.clone()
    hollow[0, :, :40] = np.nan
    found = asked(
        replace(subject, model_input=replace(subject.model_input, tensor=hollow, digest="hollow")),
        "tiles",
    )
    check(dict(found))


def test_patches_take_the_place_of_maps(model: Model) -> None:
    atlas = atlas_of(model)
    assert atlas is not None
    subject = subject_of(model, atlas=atlas)
    found = ask(subject, "tiles", View(patches=True))
    assert found.facts["isPatches"]
    assert found.facts["palette"] == []
    assert words(found.facts["legend"]).startswith("Each tile is what excites its channel most")
    patches = atlas.first_patches("stem.first.conv")
    for position, channel in enumerate(found.facts["order"]):
        patch = patches[channel]
        assert patch is not None
        assert tile(found, position).shape == (32, 32, 3)
        if patch.shape == (32, 32, 3):
            np.testing.assert_array_equal(tile(found, position), patch)
    answering = [
        asked(subject, "tiles", View(patches=True, answers=each)) for each in atlas.classes
    ]
    few = min(answering, key=lambda facts: len(facts["order"]))
    assert few["orders"] is None  # the strongest first, whatever a view says
    assert few["shown"] == {"all": f"{len(few['order'])} of 32 shown."}
    assert not asked(replace(subject, atlas=None), "tiles", View(patches=True))["isPatches"]
    pair = replace(subject, pinned=pinned(subject, "stem"))
    assert not asked(pair, "tiles", View(patches=True))["isPatches"]


LAYER = "stem.first.conv"


def test_either_side_has_its_picture_and_its_classes(subject: Subject) -> None:
    other = subject_of(subject.model, "heart")
    captures = [hookviz.capture(each.model, each.model_input) for each in (other, subject)]
    runs = []

    def run() -> Capture:
        runs.append(1)
        return captures[0]

    of_pair = replace(subject, pinned=replace(pinned(other, LAYER), run=run))
    a, b = describe_pair(of_pair, captures[1])
    assert (a["name"], b["name"]) == ("A", "B")
    for side, capture in zip((a, b), captures, strict=True):
        label, chance = capture.predictions(1)[0]
        assert side["classes"][0] == f"{label} {percent(chance)}"
        assert side["picture"].startswith("data:image/png;base64,")
    assert a["picture"] != b["picture"]
    describe_pair(of_pair, captures[1])
    assert len(runs) == 1  # it is kept
    assert describe_pair(subject, captures[1]) == []  # without A


def test_a_that_can_not_be_had_is_said(subject: Subject) -> None:
    def gone() -> Any:
        raise HookVizError("Its image is gone.")

    lost = replace(subject, pinned=replace(pinned(subject, "stage1"), read=gone))
    found = ask(lost, "tiles", View(compared="A"))
    assert found.facts["compare"]["warning"] == "Its image is gone."
    assert found.data == ask(subject, "tiles").data
    capture = hookviz.capture(subject.model, subject.model_input)
    lost = replace(subject, pinned=replace(pinned(subject, LAYER, link="lost"), run=gone))
    assert describe_pair(lost, capture) == []  # which is left to its maps
