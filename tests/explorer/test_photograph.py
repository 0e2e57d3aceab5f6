"""The photograph, against Pillow's own resizing, and the crop in shares of it."""

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from torch import nn

import hookviz
from hookviz.explorer.given import subject_given
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.types import Preprocess
from tests.explorer.subjects import asked, subject_of, whole


@pytest.fixture(scope="module")
def subject() -> Subject:
    return subject_of(hookviz.load_model("squeezenet1_1", weights="random"), "cat")


def test_it_is_the_whole_photograph(subject: Subject) -> None:
    found = whole(subject, "photograph")
    picture = Image.open(io.BytesIO(found.data))
    assert picture.format == "JPEG"
    assert picture.size == (found.facts["width"], found.facts["height"])
    assert max(picture.size) == 480
    expected = Image.fromarray(subject.image.pixels).resize(picture.size, Image.Resampling.BILINEAR)
    off = np.asarray(picture).astype(int) - np.asarray(expected)
    assert np.abs(off).mean() < 3
    assert found.facts["alt"] == "a yellow star"


def test_the_crop_is_what_the_network_saw(subject: Subject) -> None:
    facts = asked(subject, "photograph")
    crop, image = facts["crop"], subject.image
    assert facts["missing"] == ""
    top, bottom = (round(crop[side] * image.height) for side in ("top", "bottom"))
    left, right = (round(crop[side] * image.width) for side in ("left", "right"))
    part = Image.fromarray(image.pixels[max(top, 0) : bottom, max(left, 0) : right])
    assert subject.model_input.picture is not None
    shown = np.asarray(part.resize((224, 224), Image.Resampling.BILINEAR)).astype(int)
    assert np.abs(shown - subject.model_input.picture).mean() < 6
    assert crop["bottom"] - crop["top"] < 1


def test_a_crop_that_is_not_known_is_said(subject: Subject) -> None:
    facts = asked(
        replace(subject, model_input=replace(subject.model_input, crop=None)), "photograph"
    )
    assert facts["crop"] is None
    assert facts["missing"] == "Where this lies on the image is not known."


def test_it_is_made_once(subject: Subject) -> None:
    assert whole(subject, "photograph").data is whole(subject, "photograph").data


@pytest.mark.parametrize(("layer", "frame", "level"), [("0", 0, 0), ("0", 4, 160), ("2", 1, 160)])
def test_of_an_animation_it_is_the_frame_that_is_shown(layer: str, frame: int, level: int) -> None:
    levels = [0, 40, 80, 120, 160, 200]
    stages = (nn.Conv3d(3, 2, 3, padding=1), nn.AvgPool3d((3, 1, 1)), nn.Conv3d(2, 2, 1))
    model = hookviz.wrap(nn.Sequential(*stages), Preprocess(20, 16, frames=6))
    pictures = [Image.new("RGB", (30, 24), (each,) * 3) for each in levels]
    file = io.BytesIO()
    pictures[0].save(file, "PNG", save_all=True, append_images=pictures[1:])
    clip = subject_given(model, file.getvalue())
    view = View(layer=layer, frame=frame)
    assert asked(clip, "layers", view)["moves"]
    shown = Image.open(io.BytesIO(whole(clip, "photograph", view).data))
    seen = int(np.asarray(shown)[12, 12, 0])
    # of two frames the second stands for the last three of six, in whose middle is the fifth
    assert abs(seen - level) <= 2
    assert not asked(subject_given(model, "assets/samples/cat.jpg"), "layers", view)["moves"]
