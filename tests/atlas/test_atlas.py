from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hookviz
from hookviz.errors import HookVizError, SettingError, UnknownLayerError, UnknownNameError
from hookviz.types import Model, Preprocess
from tests.atlas.folders import by_plain_hooks, save_folder
from tests.networks import Tiny, as_model, seeded

COUNT = 4


@pytest.fixture
def atlas(tiny: Model, tmp_path: Path) -> hookviz.Atlas:
    for number, name in enumerate(("cats", "dogs", "eels")):
        save_folder(tmp_path / "photos" / name, COUNT, first=10 * number)
    return hookviz.make_atlas(tiny, tmp_path / "photos", tmp_path / "a.atlas", top=3, batch=1)


def maxima(model: Model, tmp_path: Path, layer: str) -> np.ndarray:
    """Each image's largest value of each channel, ``(N, C)``, of all classes after another."""
    paths = sorted((tmp_path / "photos").rglob("*.png"))
    return np.asarray(by_plain_hooks(model, paths)[layer].max(axis=(2, 3)))


def test_first_patches_are_the_strongest_and_their_images_are_there(
    atlas: hookviz.Atlas, tiny: Model
) -> None:
    patches = atlas.first_patches("conv2")
    assert len(patches) == 6
    for channel, patch in enumerate(patches):
        np.testing.assert_array_equal(patch, atlas.top_activations("conv2", channel)[0].patch)
    for entry in atlas.top_activations("conv2", 2):
        path: Any = atlas.picture(entry.image)
        assert hookviz.read_image(path).digest == entry.image.digest
        assert (entry.image.height, entry.image.width) == hookviz.read_image(path).pixels.shape[:2]
        assert entry.box is not None
        values = hookviz.capture(tiny, path)["conv2"].values[2]
        assert float(values[entry.cell]) == entry.value == float(values.max())
    with pytest.raises(UnknownLayerError, match=r"Did you mean 'conv"):
        atlas.top_activations("conv", 0)
    with pytest.raises(SettingError, match="it has 6, counted from 0"):
        atlas.top_activations("conv2", 6)
    with pytest.raises(SettingError, match="no channel -1"):
        atlas.top_activations("conv2", -1)


def test_channels_of_a_class_are_those_whose_images_are_of_it(
    atlas: hookviz.Atlas, tiny: Model, tmp_path: Path
) -> None:
    answers = atlas.channels_of_class("dogs", 100)
    shares = [answer.share for answer in answers]
    assert shares == sorted(shares, reverse=True)
    assert len({(answer.layer, answer.channel) for answer in answers}) == len(answers) > 0
    maxima_of = {layer: maxima(tiny, tmp_path, layer) for layer in atlas.layers}
    expected = {
        (layer, channel)
        for layer, best in maxima_of.items()
        for channel in range(best.shape[1])
        if {COUNT <= image < 2 * COUNT for image in np.argsort(-best[:, channel])[:3]} & {True}
    }
    assert {(answer.layer, answer.channel) for answer in answers} == expected
    for answer in answers:
        best = maxima_of[answer.layer][:, answer.channel]
        order = np.argsort(-best, kind="stable")[:3]
        of_class = (order >= COUNT) & (order < 2 * COUNT)
        assert answer.share == pytest.approx(of_class.mean())
        assert answer.rank == int(of_class.argmax())
        assert answer.value == pytest.approx(float(best[order[answer.rank]]))
        means = best.reshape(3, COUNT).mean(axis=1)
        assert answer.contrast == pytest.approx((means[1] - means.mean()) / means.std(), abs=1e-3)
    with pytest.raises(UnknownNameError, match=r"'dog'.*Did you mean 'dogs'"):
        atlas.channels_of_class("dog")


def test_channels_of_an_image_are_those_that_have_it_in_their_list(atlas: hookviz.Atlas) -> None:
    for image in atlas.images:
        expected = {
            (layer, channel, rank)
            for layer, channels in atlas.layers.items()
            for channel in range(channels)
            for rank, entry in enumerate(atlas.top_activations(layer, channel))
            if entry.image == image
        }
        for name in (image.name, image.digest):
            answers = atlas.channels_of_image(name, 100)
            assert {(answer.layer, answer.channel, answer.rank) for answer in answers} == expected
            assert [answer.rank for answer in answers] == sorted(answer.rank for answer in answers)
        assert atlas.channels_of_image(image.name, 1) == answers[:1]
    with pytest.raises(UnknownNameError, match=r"cats/0000\.png"):
        atlas.channels_of_image("cats/0000.png")


def test_it_belongs_to_one_model(atlas: hookviz.Atlas, tiny: Model) -> None:
    assert atlas.belongs_to(tiny)
    atlas.check(tiny)
    other = as_model(Tiny())
    assert not atlas.belongs_to(other)
    with pytest.raises(HookVizError, match=r"digest .* make an atlas of this one"):
        atlas.check(other)
    larger = hookviz.wrap(seeded(Tiny), Preprocess(resize=20, crop=16))
    assert larger.digest == tiny.digest
    assert not atlas.belongs_to(larger)
    with pytest.raises(HookVizError, match="in another way"):
        atlas.check(larger)
