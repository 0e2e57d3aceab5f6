"""What excites a channel, alone and in place of maps, against the atlas of the network."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import hookviz
from hookviz.atlas.atlas import Atlas
from hookviz.atlas.files import atlas_of
from hookviz.explorer.excites import (
    PatchTiles,
    answer_choices,
    atlas_of_step,
    patch_tiles,
    patches_of,
)
from hookviz.explorer.question import NotThereError
from hookviz.explorer.rendering import render
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.language.speaking import speaking
from hookviz.types import Model
from hookviz.wording import number
from tests.explorer.asking import ask, asked, cache, decoded, subject_of

LAYER, CHANNEL = "stage2.second.conv", 9
VIEW = View(layer=LAYER)


@pytest.fixture(scope="module")
def atlas(model: Model) -> Atlas:
    known = atlas_of(model)
    assert known is not None
    return known


@pytest.fixture(scope="module")
def subject(model: Model, atlas: Atlas) -> Subject:
    return subject_of(model, atlas=atlas)


def test_the_patches_are_the_atlass_strongest_first(subject: Subject, atlas: Atlas) -> None:
    top = atlas.top_activations(LAYER, CHANNEL)
    facts = ask(subject, "excites", VIEW, channel=CHANNEL).facts
    assert facts["known"]
    assert facts["error"] == ""
    assert facts["label"] == "What excites channel 9 most, strongest first"
    titles = [
        f"{best.image.name}: {number(best.value)} at row {best.cell[0]}, column {best.cell[1]}"
        for best in top
    ]
    assert [each["title"] for each in facts["patches"]] == titles
    for patch, best in zip(facts["patches"], top, strict=True):
        assert best.patch is not None
        difference = decoded(patch["picture"]).astype(float) - best.patch
        assert abs(difference).mean() < 8  # of 255: a JPEG's
    kept = cache()
    first = patches_of(kept, atlas, LAYER, CHANNEL)
    assert patches_of(kept, atlas, LAYER, CHANNEL) is first
    assert all(each.activation.patch is None for each in first)
    with speaking("zh_CN"):  # pictures are kept and words are not
        assert first[0].title != titles[0]


def test_a_patch_leads_to_its_cell_and_its_image(subject: Subject, atlas: Atlas) -> None:
    top = atlas.top_activations(LAYER, CHANNEL)
    rows, columns = next(
        layer.output_shape[1:] for layer in subject.trace.convs if layer.name == LAYER
    )
    named = replace(subject, image_names={top[1].image.digest: "star"})
    leads = [
        each["leads"] for each in ask(named, "excites", VIEW, channel=CHANNEL).facts["patches"]
    ]
    for rank, (lead, best) in enumerate(zip(leads, top, strict=True)):
        assert lead["cell"] == f"{best.cell[0]},{best.cell[1]},{rows},{columns}"
        assert lead["channel"] == CHANNEL
        if best.image.digest == top[1].image.digest:
            assert lead["sample"] == "star"
        else:
            assert lead["image"] == rank


def test_a_step_that_the_atlas_lacks_is_not_known(subject: Subject) -> None:
    nothing = {"known": False, "patches": [], "error": ""}
    view = View(layers="maps", layer="stem.first.norm")
    assert view.layer in {layer.name for layer in subject.trace.maps}
    assert ask(subject, "excites", view, channel=0).facts == nothing
    without = replace(subject, atlas=None)
    assert ask(without, "excites", VIEW, channel=0).facts == nothing
    assert atlas_of_step(subject, LAYER) is subject.atlas
    assert atlas_of_step(subject, "head") is atlas_of_step(without, LAYER) is None
    with pytest.raises(NotThereError, match=f"{LAYER} has no channel"):
        ask(subject, "excites", VIEW, channel=10_000)


def test_an_atlas_whose_patches_are_gone_says_so(
    subject: Subject, atlas: Atlas, tmp_path: Path
) -> None:
    folder = tmp_path / atlas.path.name
    shutil.copytree(atlas.path, folder)
    lost = hookviz.load_atlas(folder)
    for file in folder.iterdir():
        file.unlink()
    facts = ask(replace(subject, atlas=lost), "excites", VIEW, channel=CHANNEL).facts
    assert facts["known"]
    assert facts["patches"] == []
    assert facts["error"]


PATCH_LAYER = "stage3.second.conv"


def tiles(subject: Subject, answers: str, view: View | None = None) -> PatchTiles:
    shown = render(subject, view or View(layer=PATCH_LAYER))
    assert subject.atlas is not None
    return patch_tiles(subject, subject.atlas, shown.own, shown.maps.numpy(), answers)


def test_every_channel_has_its_own_in_the_grids_order(subject: Subject) -> None:
    view = View(layer=PATCH_LAYER, sort="max")
    shown = render(subject, view)
    for answers in ("every channel", "<no class>"):
        found = tiles(subject, answers, view)
        assert found.grid is shown.own
        assert (found.note, found.sheet.geometry.count) == ("", 128)
    assert found.sheet is tiles(subject, "every channel", view).sheet
    assert found.sheet is not tiles(subject, "every channel").sheet


def test_of_a_class_or_an_image_those_are_left_that_answer_to_it(
    subject: Subject, atlas: Atlas
) -> None:
    def answering(names: set[str]) -> list[int]:
        return [
            channel
            for channel in range(128)
            if any(e.image.name in names for e in atlas.top_activations(PATCH_LAYER, channel))
        ]

    for name in [*atlas.classes][:4]:
        found = tiles(subject, name)
        expected = answering({image.name for image in atlas.images if image.category == name})
        if expected:
            assert sorted(found.grid.order) == expected
            assert found.sheet.geometry.count == len(expected)
            assert found.note == ""
        else:
            assert len(found.grid.order) == 128
            assert name in found.note
    top = atlas.top_activations(PATCH_LAYER, 5)[0].image
    other = replace(subject, image=replace(subject.image, digest=top.digest))
    alike = {image.name for image in atlas.images if image.digest == top.digest}
    assert sorted(tiles(other, "those for this image").grid.order) == answering(alike)


def test_an_atlas_without_this_image_does_not_offer_it(subject: Subject, atlas: Atlas) -> None:
    known = any(each.digest == subject.image.digest for each in atlas.images)
    assert ("those for this image" in dict(answer_choices(subject, atlas))) == known
    other = replace(subject, image=replace(subject.image, digest="another"))
    assert "those for this image" not in dict(answer_choices(other, atlas))
    assert "this image" in tiles(other, "those for this image").note


def test_a_class_that_none_answers_to_is_said(subject: Subject, atlas: Atlas) -> None:
    class Nobody(Atlas):
        def channels_of_class(self, name: str, count: int = 20) -> tuple[()]:
            return ()

    nobody = Nobody(**{name: getattr(atlas, name) for name in Atlas.__dataclass_fields__})
    view = View(layer=PATCH_LAYER, patches=True, answers="circle")
    facts = asked(replace(subject, atlas=nobody), "tiles", view)
    assert len(facts["order"]) == 128
    assert facts["notes"] == [
        "No channel of this layer has 'circle' among its strongest: these are all."
    ]
    with speaking("zh_CN"):
        assert "圆形" in asked(replace(subject, atlas=nobody), "tiles", view)["notes"][0]
