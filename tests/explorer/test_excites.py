"""What excites a channel, as an answer, against the atlas of the network in the box."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import hookviz
from hookviz.atlas.atlas import Atlas
from hookviz.atlas.reading import atlas_of
from hookviz.explorer.excites import patches_of
from hookviz.explorer.question import NotThereError
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.language.speaking import speaking
from hookviz.types import Model
from hookviz.wording import number
from tests.explorer.asking import ask, decoded
from tests.explorer.subjects import cache, subject_of

LAYER, CHANNEL = "stage2.second.conv", 9
VIEW = View(layer=LAYER)


@pytest.fixture(scope="module")
def model() -> Model:
    return hookviz.load_model("shapesnet")


@pytest.fixture(scope="module")
def atlas(model: Model) -> Atlas:
    known = atlas_of(model)
    assert known is not None
    return known


@pytest.fixture
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
    assert ask(replace(subject, atlas=None), "excites", VIEW, channel=0).facts == nothing


def test_an_atlas_whose_patches_are_gone_says_so(
    subject: Subject, atlas: Atlas, tmp_path: Path
) -> None:
    folder = tmp_path / atlas.path.name
    shutil.copytree(atlas.path, folder)
    lost = hookviz.read_atlas(folder)
    for file in folder.iterdir():
        file.unlink()
    facts = ask(replace(subject, atlas=lost), "excites", VIEW, channel=CHANNEL).facts
    assert facts["known"]
    assert facts["patches"] == []
    assert facts["error"]


def test_pictures_are_kept_and_words_are_not(atlas: Atlas, subject: Subject) -> None:
    kept = cache()
    first = patches_of(kept, atlas, LAYER, CHANNEL)
    assert patches_of(kept, atlas, LAYER, CHANNEL) is first
    assert all(each.of.patch is None for each in first)
    said = first[0].title
    with speaking("zh_CN"):
        assert first[0].title != said


def test_a_channel_that_is_not_there_is_refused(subject: Subject) -> None:
    with pytest.raises(NotThereError, match=f"{LAYER} has no channel"):
        ask(subject, "excites", VIEW, channel=10_000)
