"""What excites each channel in place of its map, against the atlas itself."""

from dataclasses import replace

import numpy as np
import pytest

import hookviz
from hookviz.atlas.atlas import Atlas
from hookviz.atlas.reading import atlas_of
from hookviz.explorer.drawn import drawn
from hookviz.explorer.patches import PatchTiles, answer_choices, atlas_of_step, patch_tiles
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.language.speaking import speaking
from tests.explorer.subjects import asked, subject_of

LAYER = "stage3.second.conv"


@pytest.fixture(scope="module")
def atlas() -> Atlas:
    found = atlas_of(hookviz.load_model("shapesnet"))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def subject(atlas: Atlas) -> Subject:
    return subject_of(hookviz.load_model("shapesnet"), atlas=atlas)


def tiles(subject: Subject, answers: str, view: View | None = None) -> PatchTiles:
    shown = drawn(subject, view or View(layer=LAYER))
    assert subject.atlas is not None
    return patch_tiles(subject, subject.atlas, shown.own, shown.maps.numpy(), answers)


def test_every_channel_has_its_own_in_the_grids_order(subject: Subject) -> None:
    shown = drawn(subject, View(layer=LAYER, sort="max"))
    for answers in ("every channel", "<no class>"):
        found = tiles(subject, answers, View(layer=LAYER, sort="max"))
        assert found.grid is shown.own
        assert (found.note, found.sheet.geometry.count) == ("", 128)
    assert found.sheet is tiles(subject, "every channel", View(layer=LAYER, sort="max")).sheet
    assert found.sheet is not tiles(subject, "every channel").sheet


def test_of_a_class_those_are_left_that_answer_to_it(subject: Subject, atlas: Atlas) -> None:
    for name in [*atlas.classes][:4]:
        found = tiles(subject, name)
        of_class = {image.name for image in atlas.images if image.category == name}
        expected = {
            channel
            for channel in range(128)
            if any(top.image.name in of_class for top in atlas.top_activations(LAYER, channel))
        }
        if expected:
            assert set(found.grid.order.tolist()) == expected
            assert found.sheet.geometry.count == len(expected)
            assert found.note == ""
        else:
            assert len(found.grid.order) == 128
            assert name in found.note


def test_an_atlas_without_this_image_does_not_offer_it(subject: Subject, atlas: Atlas) -> None:
    known = any(each.digest == subject.image.digest for each in atlas.images)
    assert ("those for this image" in dict(answer_choices(subject, atlas))) == known
    other = replace(subject, image=replace(subject.image, digest="another"))
    assert "those for this image" not in dict(answer_choices(other, atlas))
    assert "this image" in tiles(other, "those for this image").note


def test_of_an_image_in_it_those_are_left_that_have_it(subject: Subject, atlas: Atlas) -> None:
    top = atlas.top_activations(LAYER, 5)[0]
    other = replace(subject, image=replace(subject.image, digest=top.image.digest))
    order = tiles(other, "those for this image").grid.order
    expected = [
        channel
        for channel in range(128)
        if any(e.image.digest == top.image.digest for e in atlas.top_activations(LAYER, channel))
    ]
    np.testing.assert_array_equal(np.sort(order), expected)


def test_a_class_that_none_answers_to_is_said(subject: Subject) -> None:
    class Nobody(Atlas):
        def channels_of_class(self, name: str, count: int = 20) -> tuple[()]:
            return ()

    atlas = subject.atlas
    assert atlas is not None
    nobody = Nobody(**{name: getattr(atlas, name) for name in Atlas.__dataclass_fields__})
    view = View(layer=LAYER, patches=True, answers="circle")
    facts = asked(replace(subject, atlas=nobody), "tiles", view)
    assert len(facts["order"]) == 128
    assert facts["notes"] == [
        "No channel of this layer has 'circle' among its strongest: these are all."
    ]
    with speaking("zh_CN"):
        assert "圆形" in asked(replace(subject, atlas=nobody), "tiles", view)["notes"][0]


def test_a_step_that_the_atlas_lacks_has_maps(subject: Subject) -> None:
    assert atlas_of_step(subject, LAYER) is subject.atlas
    assert atlas_of_step(subject, "head") is None
    assert atlas_of_step(replace(subject, atlas=None), LAYER) is None
