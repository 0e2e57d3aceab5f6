import pytest
import torch
from torch import Tensor, nn

import hookviz
from tests.conftest import picture, seeded


def test_a_tensor_and_an_input_are_used_as_they_are(tiny: hookviz.Model, noise: Tensor) -> None:
    made = hookviz.prepare(tiny, noise)
    assert torch.equal(made.tensor, noise)
    assert hookviz.prepare(tiny, made) is made
    for given in (noise, made):
        with pytest.raises(hookviz.ImageError, match=r"size=32 is for images.*Leave it out"):
            hookviz.prepare(tiny, given, size=32)


def test_an_image_takes_the_size_that_is_asked_for(tiny: hookviz.Model) -> None:
    assert hookviz.prepare(tiny, picture(), size=20).tensor.shape == (1, 3, 20, 20)


def test_sound_is_told_by_its_model() -> None:
    sound = hookviz.wrap(seeded(lambda: nn.Sequential(nn.Conv1d(1, 4, 9))))
    assert hookviz.prepare(sound, torch.zeros(1, 80)).tensor.shape == (1, 1, 80)
    with pytest.raises(hookviz.ImageError, match=r"float tensor of \(C, L\)"):
        hookviz.prepare(sound, torch.zeros(1, 3, 8, 8))
