"""A channel that goes along and does not matter, checked by silencing every one."""

import numpy as np

import hookviz
from hookviz.explaining.patching.channel_mask import ChannelMask, mask_channels
from hookviz.lessons.chances import chance
from hookviz.lessons.layers import layer_of
from hookviz.lessons.parts.no_cause import PART, class_channels
from hookviz.lessons.versions import versions
from tests.lessons.parts.scenes import star, with_defaults


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
