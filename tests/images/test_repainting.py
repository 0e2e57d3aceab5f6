"""A changed picture as a network's input: the same picture gives the same tensor to the bit."""

import numpy as np
import pytest
import torch

import hookviz
from hookviz.capturing.inputs import prepare
from hookviz.errors import HookVizError
from hookviz.images.repainting import repainted
from hookviz.types import Model, Preprocess
from tests.networks import Tiny, seeded
from tests.pictures import picture


def test_the_picture_itself_gives_the_input_itself() -> None:
    for name in ("shapesnet", "squeezenet"):
        model = hookviz.load_model(name)
        made = prepare(model, picture())
        assert made.picture is not None
        again = repainted(model, made, made.picture)
        assert torch.equal(again.tensor, made.tensor)
        assert again.digest == made.digest
        assert again.crop == made.crop


def test_a_change_is_in_the_tensor_and_in_the_picture(tiny: Model) -> None:
    made = prepare(tiny, picture())
    assert made.picture is not None
    black = np.zeros_like(made.picture)
    again = repainted(tiny, made, black)
    steps = tiny.preprocess
    assert isinstance(steps, Preprocess)
    for channel, (mean, std) in enumerate(zip(steps.mean, steps.std, strict=True)):
        expected = torch.full((16, 16), -mean / std)
        torch.testing.assert_close(again.tensor[0, channel], expected)
    assert again.picture is not None
    assert np.array_equal(again.picture, black)
    assert again.digest != made.digest


def test_a_grey_model_gets_the_grey_of_it() -> None:
    grey = hookviz.wrap(
        torch.nn.Conv2d(1, 2, 3), Preprocess(resize=16, crop=16, mean=(0.5,), std=(0.5,))
    )
    made = prepare(grey, picture())
    assert made.picture is not None
    assert torch.equal(repainted(grey, made, made.picture).tensor, made.tensor)


def test_a_function_of_its_own_is_refused() -> None:
    model = hookviz.wrap(seeded(Tiny), lambda image: torch.zeros(3, 16, 16))
    made = prepare(model, picture())
    with pytest.raises(HookVizError, match="function of its own"):
        repainted(model, made, np.zeros((16, 16, 3), np.uint8))


def test_a_tensor_without_a_picture_is_refused_as_one() -> None:
    model = hookviz.wrap(seeded(Tiny), Preprocess(resize=16, crop=16))
    made = prepare(model, torch.zeros(1, 3, 16, 16))
    with pytest.raises(HookVizError, match="given as a tensor"):
        repainted(model, made, np.zeros((16, 16, 3), np.uint8))
