"""Versions of an image: what is made of it, and the correlation against NumPy's own."""

import numpy as np

import hookviz
from hookviz.images.preprocess import repainted
from hookviz.lessons.layers import layer_of
from hookviz.lessons.versions import Versions, pictures_of, versions
from tests.lessons.parts.scenes import star


def test_the_versions_are_pictures_of_one_size_all_different() -> None:
    picture = star().model_input.picture
    assert picture is not None
    made = pictures_of(picture)
    assert np.array_equal(made[0], picture)
    assert {each.shape for each in made} == {picture.shape}
    assert {each.dtype for each in made} == {np.dtype(np.uint8)}
    assert len({each.tobytes() for each in made}) == len(made)


def test_means_and_scores_are_those_of_captures() -> None:
    scene = star()
    picture = scene.model_input.picture
    assert picture is not None
    layer = layer_of(scene, "first")
    found = versions(scene, layer)
    for at in (0, 4, 9):
        made = repainted(scene.model, scene.model_input, pictures_of(picture)[at])
        capture = hookviz.capture(scene.model, made, ["stem.relu"])
        assert capture.logits is not None
        assert found.scores[at] == float(capture.logits[3])
        expected = capture["stem.relu"].values.numpy().astype(np.float64).mean((1, 2))
        np.testing.assert_allclose(found.means[at], expected, rtol=1e-6)


def test_the_correlation_is_pearsons() -> None:
    found = versions(star(), layer_of(star(), "late"))
    for channel in (0, 50, 100):
        expected = np.corrcoef(found.means[:, channel], found.scores)[0, 1]
        np.testing.assert_allclose(found.correlations[channel], expected, atol=1e-9)


def test_a_channel_that_never_moves_goes_along_with_nothing() -> None:
    means = np.stack([np.arange(4.0), np.full(4, 2.0)], 1)
    assert Versions(np.arange(4.0) * -2, means).correlations.tolist() == [-1.0, 0.0]
