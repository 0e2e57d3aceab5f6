from typing import Any

import numpy as np
import pytest
from torch import nn

import hookviz
from hookviz.capturing.cache import Budget
from hookviz.types import Model
from tests.codegen.script_cases import LEVELS, NETWORKS, SQUEEZENET, ScriptCase
from tests.networks import Tiny, as_model, random_input, seeded
from tests.pictures import picture

SCRIPTS = (
    ScriptCase({"steps": 6}, NETWORKS, 1e-3, LEVELS),
    ScriptCase(
        {"steps": 6, "layer": "features.3", "rate": 2.0, "seed": 5}, SQUEEZENET, 1e-3, LEVELS
    ),
)


def test_the_image_stays_and_the_layer_sees_more(tiny: Model) -> None:
    model_input = hookviz.prepare_input(tiny, picture(), size=64)
    result = hookviz.run_lens("dream", tiny, model_input, layer="conv2", steps=15, rate=0.2)
    expected = hookviz.capture(tiny, model_input, "conv2")["conv2"].values.square().mean()
    assert result.values["after"] > result.values["before"]
    assert result.values["before"] == pytest.approx(float(expected), rel=0.5)  # moved a little
    shown = np.array(picture().resize((64, 64)), float).ravel()
    picture_of = result.values["picture"]
    assert picture_of.shape == (64, 64, 3)
    assert shown.size == picture_of.size
    start = hookviz.run_lens("dream", tiny, model_input, layer="conv2", steps=1, rate=0.01)
    same = np.corrcoef(start.values["picture"].ravel(), picture_of.ravel())[0, 1]
    assert 0.5 < same < 0.9999


def test_it_begins_with_the_image(tiny: Model) -> None:
    grey_network = seeded(lambda: nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3)))
    grey = hookviz.wrap(grey_network, hookviz.Preprocess(64, 64, (0.5,), (0.25,)))
    for model, layer in ((tiny, "conv2"), (grey, "2")):
        model_input = hookviz.prepare_input(model, picture(), size=64)
        start = hookviz.run_lens("dream", model, model_input, layer=layer, steps=1, rate=0.01)
        steps: Any = model.preprocess
        mean, std = (np.array(each)[:, None, None] for each in (steps.mean, steps.std))
        own = np.moveaxis(model_input.tensor[0].numpy() * std + mean, 0, -1).clip(0.02, 0.98)
        shown = start.values["picture"] / 255
        np.testing.assert_allclose(shown, np.broadcast_to(own, shown.shape), atol=0.02)


def test_more_steps_go_on(tiny: Model) -> None:
    session = Budget(10_000_000).cache(10_000_000)
    whole = hookviz.run_lens("dream", tiny, picture(), layer="conv2", steps=8)
    hookviz.run_lens("dream", tiny, picture(), layer="conv2", steps=3, cache=session)
    rest = hookviz.run_lens("dream", tiny, picture(), layer="conv2", steps=8, cache=session)
    np.testing.assert_array_equal(rest.values["picture"], whole.values["picture"])


def test_an_image_in_double_precision_dreams_as_in_single() -> None:
    model = as_model(seeded(Tiny).double())
    image = random_input(1).double()
    made = hookviz.run_lens("dream", model, image, layer="conv2", steps=3, rate=0.01)
    single = hookviz.run_lens(
        "dream", as_model(seeded(Tiny)), image.float(), layer="conv2", steps=3, rate=0.01
    )
    np.testing.assert_allclose(made.values["picture"], single.values["picture"], atol=1)
    assert made.values["after"] == pytest.approx(float(single.values["after"]), rel=1e-3)
