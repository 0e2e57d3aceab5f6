import numpy as np

import hookviz
from hookviz.explaining.patching.channel_mask import ChannelMask, mask_channels
from hookviz.images.preprocess import repainted
from hookviz.lessons.layers import layer_of
from hookviz.lessons.scores import chance
from hookviz.ui.lessons.parts.no_cause import PART, Versions, class_channels, pictures_of, versions
from tests.ui.lessons.parts.scenes import star, with_defaults


def test_the_follower_matters_least_of_those_that_go_along_best() -> None:
    scene, options = star(), with_defaults(PART, layer="early")
    layer = layer_of(scene, "early")
    chances = []
    for channel in range(layer.output_shape[0]):
        without = mask_channels(scene.model, ChannelMask(layer.name, (channel,)))
        chances.append(dict(hookviz.capture(without, scene.model_input).predictions(20))["star"])
    found = class_channels(scene, options)
    np.testing.assert_allclose(found.without, chances, atol=1e-6)
    along = np.argsort(-versions(scene, layer).correlations)[: len(chances) // 8]
    changes = np.abs(np.array(chances) - found.chance)
    assert found.follower == min(along, key=lambda channel: changes[channel])
    assert found.needed == int(changes.argmax())
    facts = PART.facts(scene, options)
    assert facts["without"] == chance(chances[found.follower])
    assert facts["verdict"] == "That hardly matters."
    assert PART.link(scene, options)["silenced"] == f"{layer.name}:{found.follower}"


def test_means_scores_and_correlations_are_those_of_captures_of_different_pictures() -> None:
    scene = star()
    picture = scene.model_input.picture
    assert picture is not None
    made = pictures_of(picture)
    assert np.array_equal(made[0], picture)
    assert {(each.shape, each.dtype) for each in made} == {(picture.shape, np.dtype(np.uint8))}
    assert len({each.tobytes() for each in made}) == len(made)
    found = versions(scene, layer_of(scene, "first"))
    for at in (0, 4, 9):
        painted = repainted(scene.model, scene.model_input, made[at])
        capture = hookviz.capture(scene.model, painted, ["stem.relu"])
        assert capture.logits is not None
        assert found.scores[at] == float(capture.logits[3])
        expected = capture["stem.relu"].values.numpy().astype(np.float64).mean((1, 2))
        np.testing.assert_allclose(found.means[at], expected, rtol=1e-6)
    moves = found.means.std(0) > 0
    expected = np.corrcoef(found.means[:, moves].T, found.scores)[-1, :-1]
    np.testing.assert_allclose(found.correlations[moves], expected, atol=1e-9)
    means = np.stack([np.arange(4.0), np.full(4, 2.0)], 1)  # the second goes along with nothing
    assert Versions(np.arange(4.0) * -2, means).correlations.tolist() == [-1.0, 0.0]
