"""Riddles of the atlases in the box: what is called right is what the atlas itself says."""

import base64
import io
from collections import Counter
from random import Random

import numpy as np
import pytest
from PIL import Image

import hookviz
from hookviz.atlas.files import FOLDER, PHOTOGRAPH
from hookviz.capturing.inputs import prepare_input
from hookviz.classroom.guess_channel import (
    NAMES,
    find_channel,
    four_names,
    make_riddle,
    typed_names,
)
from hookviz.errors import ClassroomError
from hookviz.explorer.subject import Colours
from hookviz.images.samples import samples

ATLAS = hookviz.load_atlas(FOLDER / "shapesnet.atlas")


@pytest.mark.parametrize("layer", ["", *ATLAS.layers])
def test_a_channel_of_each_layer_answers_to_the_class_that_is_called_right(layer: str) -> None:
    for seed in range(3):
        rng = Random(seed)
        found = find_channel(ATLAS, layer, rng)
        assert layer in ("", found.layer)
        best = ATLAS.top_activations(found.layer, found.channel)
        counts = Counter(each.image.category for each in best)
        assert counts[found.category] == max(counts.values()) == found.share * len(best)
        names, right = four_names(ATLAS, found, rng)
        assert names[right] == found.category
        assert len(set(names)) == NAMES
        others = {*names} - {found.category}
        assert not others & set(counts)
        # each of the three excites it less than most classes do
        answers = dict(
            zip(
                ATLAS.classes,
                ATLAS.statistics(found.layer).class_maximum[:, found.channel],
                strict=True,
            )
        )
        assert max(answers[name] for name in others) < np.median(list(answers.values()))


def test_a_channel_is_guessed_once_and_drawings_before_photographs() -> None:
    known: set[tuple[str, int]] = set()
    layer, rng = "stage3.second.conv", Random(1)
    for _ in range(10):
        found = find_channel(ATLAS, layer, rng, known)
        assert found.key not in known
        assert found.category != PHOTOGRAPH
        known.add(found.key)
    everything = {(layer, channel) for channel in range(ATLAS.layers[layer])}
    with pytest.raises(ClassroomError, match="were guessed"):
        find_channel(ATLAS, layer, rng, everything)


def test_names_are_mixed_and_those_of_a_teacher_may_be_refused() -> None:
    found = find_channel(ATLAS, "", Random(0))
    assert {four_names(ATLAS, found, Random(seed))[1] for seed in range(40)} == {0, 1, 2, 3}
    assert {typed_names("abcd", Random(seed))[1] for seed in range(40)} == {0, 1, 2, 3}
    names, right = typed_names(["dots ", "", "star", "<b>cat</b>", "none"], Random(0))
    assert sorted(names) == ["<b>cat</b>", "dots", "none", "star"]
    assert names[right] == "dots"
    for lines, said in ((["a", "b"], "has 4 names.*has 2"), (["a", "b", "c", "a"], "there twice")):
        with pytest.raises(ClassroomError, match=said):
            typed_names(lines, Random(0))


def picture(url: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2])))


def test_a_riddle_has_pictures_of_its_channel_and_its_map_on_the_image() -> None:
    model = hookviz.load_model("shapesnet")
    image = hookviz.read_image(samples()[0].path)
    today = image, prepare_input(model, image, size=None, whole=False)
    rng = Random(3)
    maps = []
    for layer in ("stage3.second.conv", "stem.first.conv"):
        found = find_channel(ATLAS, layer, rng)
        named = four_names(ATLAS, found, rng)
        colours = Colours("RdBu_r", "gray")
        riddle = make_riddle(found, named, model, ATLAS, today=today, colours=colours)
        assert riddle.names == named[0]
        assert len(riddle.patches) == ATLAS.top
        assert all(max(picture(each).size) <= 160 for each in riddle.patches)
        assert riddle.where["channel"] == found.channel
        height, width = image.pixels.shape[:2]
        shown = picture(riddle.map)
        assert max(shown.size) == 480
        assert shown.width / shown.height == pytest.approx(width / height, abs=0.01)
        maps.append(riddle.map)
        assert sum(map(len, riddle.patches)) + len(riddle.map) < 200_000  # to forty phones at once
    assert maps[0] != maps[1]
    own = make_riddle(found, None, model, ATLAS, today=today, colours=colours)
    assert (own.names, own.right) == ((), None)


def test_the_colours_of_a_riddle_s_map_are_the_map_s_alone() -> None:
    model = hookviz.load_model("shapesnet")
    image = hookviz.read_image(next(each.path for each in samples() if each.name == "flower"))
    found = find_channel(ATLAS, "stem.first.conv", Random(3))
    today = image, prepare_input(model, image, size=None, whole=False)
    grey = Colours("gray", "gray")
    riddle = make_riddle(found, None, model, ATLAS, today=today, colours=grey)
    assert (riddle.where["above"], riddle.where["below"]) == ("white", "black")
    shown = np.asarray(picture(riddle.map)).astype(int)
    assert np.ptp(image.pixels.astype(int), axis=2).max() > 100  # the image itself has colours
    assert np.ptp(shown, axis=2).max() <= 2  # a JPEG's
