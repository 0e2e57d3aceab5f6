import numpy as np
import pytest
import torch

import hookviz
from hookviz.capturing.inputs import prepare_input
from hookviz.errors import HookVizError
from hookviz.explaining.patching.channel_mask import mask_channels, read_channel_mask
from hookviz.explaining.scores.adversarial import adversarial_input
from hookviz.lessons.layers import layer_of, maps_before_and_after, moved
from hookviz.lessons.part import LessonScene
from hookviz.lessons.scores import chance as written
from hookviz.types import Preprocess
from hookviz.ui.lessons.parts.what_if import (
    ANYTHING,
    CHANGES,
    LIGHT,
    PART,
    SILENCE,
    SLIDERS,
    STEPS,
    changed_input,
    difference,
    moved_back,
    slider_of,
    steps_of,
    target_of,
)
from hookviz.wording import percent
from tests.networks import Tiny, hook_count, seeded
from tests.ui.lessons.parts.scenes import star, with_defaults


def test_without_channels_is_what_the_silenced_network_says() -> None:
    scene = star()
    options = with_defaults(PART, change="silence", amount="9", layer="middle")
    facts, link = PART.facts(scene, options), PART.link(scene, options)
    assert link["layer"] == facts["layer"] == layer_of(scene, "middle").name
    silence = read_channel_mask(link["silenced"])
    assert len(silence.channels) == facts["amount"] == 9
    said = hookviz.capture(mask_channels(scene.model, silence), scene.model_input).predictions(20)
    assert facts["after_chance"] == written(dict(said)[str(facts["label"])])
    assert facts["after_label"] == said[0][0]


def test_those_that_matter_most_are_found_by_switching_each_off() -> None:
    scene = star()
    link = PART.link(scene, with_defaults(PART, change="silence", amount="1", layer="first"))
    count = layer_of(scene, "first").output_shape[0]
    scores = []
    for channel in range(count):
        without = mask_channels(scene.model, read_channel_mask(f"{link['layer']}:{channel}"))
        logits = hookviz.capture(without, scene.model_input).logits
        assert logits is not None
        scores.append(float(logits[3]))  # the star
    assert scene.model.categories[3] == "star"
    assert link["silenced"] == f"{link['layer']}:{int(np.argmin(scores))}"


@pytest.mark.parametrize("change", [change for change in CHANGES if change != SILENCE])
def test_no_change_is_the_input_itself_and_every_change_has_facts(change: str) -> None:
    options = with_defaults(PART, change=change)
    assert changed_input(star(), options, 100 if change == LIGHT else 0) is star().model_input
    facts = PART.facts(star(), options)
    assert (facts["label"], facts["amount"]) == ("star", SLIDERS[change].start)
    assert facts["outcome"]
    assert slider_of("turn", "-30").start == -30
    assert slider_of("turn", "999").start == SLIDERS["turn"].numbers[-1]
    assert slider_of(SILENCE, "", 64) == slider_of(SILENCE, "8", 64)


def test_fooling_lowers_the_class_and_noise_of_the_same_size_does_not() -> None:
    facts = PART.facts(star(), with_defaults(PART, change="fool", amount="6"))
    chances = {
        name: float(str(facts[name]).strip("< %"))
        for name in ("chance", "after_chance", "random_chance")
    }
    assert chances["after_chance"] < chances["chance"] - 20
    assert abs(chances["random_chance"] - chances["chance"]) < 2
    assert hook_count(star().model.network) == 0


def test_what_is_added_is_enlarged_about_grey() -> None:
    before = np.full((1, 3, 3), 100, np.uint8)
    after = before.copy()
    after[0, 1] += 2
    after[0, 2] -= 200 - 110
    assert difference(before, after, 16)[0, :, 0].tolist() == [128, 160, 0]


def test_a_model_with_steps_of_its_own_says_what_it_cant() -> None:
    model = hookviz.wrap(seeded(Tiny), lambda image: torch.zeros(3, 16, 16), output="logits")
    scene = star()
    made = hookviz.capture(model, torch.zeros(3, 16, 16)).model_input
    own = LessonScene(model, made, scene.image)
    with pytest.raises(HookVizError, match="function of its own"):
        PART.facts(own, with_defaults(PART, change="turn"))


def test_it_is_made_any_class_in_steps_and_how_far_maps_changed_is_said() -> None:
    scene = star()
    options = with_defaults(PART, change="fool", amount="8", steps="12", target="heart")
    target = scene.model.categories.index("heart")
    changed = changed_input(scene, options, 8)
    by_itself = adversarial_input(scene.model, scene.model_input, target, 8, steps=12, towards=True)
    assert changed.digest == by_itself.digest
    facts = PART.facts(scene, options)
    (label, chance), *_ = hookviz.capture(scene.model, changed).predictions(1)
    assert (facts["after_label"], facts["steps"]) == (label, 12) == ("heart", 12)
    assert f"{written(chance)}." in str(facts["asked"])
    for place in ("first", "last"):
        layer = str(facts[f"{place}_layer"])
        assert layer == layer_of(scene, place).name
        before, after = (
            hookviz.capture(scene.model, given, layer)[layer].values
            for given in (scene.model_input, changed)
        )
        assert facts[f"{place}_moved"] == percent(float((after - before).norm() / before.norm()))
        maps = maps_before_and_after(scene, changed, layer)
        np.testing.assert_allclose(maps[0], before, atol=1e-5)
        np.testing.assert_allclose(maps[1], after, atol=1e-5)
    assert moved(np.zeros((1, 2, 2), np.float32), np.ones((1, 2, 2), np.float32)) == 0
    assert PART.link(scene, options) == {"lens": "toaster", "target": "heart"}
    away = with_defaults(PART, change="fool", amount="8", steps="12")
    assert "anything but star" in str(PART.facts(scene, away)["asked"])
    assert PART.link(scene, away) == {"lens": "toaster"}
    assert steps_of(with_defaults(PART, change="fool", steps="")) == STEPS.start
    logits = hookviz.capture(scene.model, scene.model_input).logits
    assert logits is not None
    second = int(logits.argsort()[-2])  # for a class that the network has not got
    targets = [target_of(scene, asked) for asked in ("toaster", "5", ANYTHING)]
    assert targets == [second, 5, None]


@pytest.mark.parametrize("columns", [-3, 0, 2])
def test_shifted_maps_that_are_moved_back_are_those_from_before(columns: int) -> None:
    maps = np.random.default_rng(0).normal(size=(2, 5, 12)).astype(np.float32)
    shifted = np.roll(maps, columns, -1)
    before, after = moved_back(maps, shifted, columns)
    np.testing.assert_array_equal(before, after)
    assert before.shape == (2, 5, 12 - abs(columns) - 2)


def test_off_is_said_to_be_behind_a_batch_norm_only_where_there_is_one() -> None:
    options = with_defaults(PART, change="silence", amount="1", layer="middle")
    assert "before the batch norm" in str(PART.facts(star(), options)["off"])
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(5)
    )
    network(torch.zeros(1, 3, 16, 16))
    model = hookviz.wrap(network.eval(), preprocess=Preprocess(16, 16), categories=[*"abcde"])
    own = LessonScene(model, prepare_input(model, star().image), star().image)
    assert PART.facts(own, options)["off"] == "Off means zeros."
