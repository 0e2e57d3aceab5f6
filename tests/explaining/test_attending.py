"""Which layers attend, told without weights; nothing where none does."""

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.explaining.attending import attending_layers, no_attention_error
from hookviz.hooking import attention_calls
from hookviz.types import Model
from tests.attending import vit
from tests.networks import all_hooks, as_model, random_input, seeded


def test_they_are_those_whose_weights_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    model = as_model(seeded(vit))
    expected = list(hookviz.attention(model, random_input(0)))

    def refuse(*_: object, **__: object) -> Tensor:
        raise AssertionError("weights were computed")

    monkeypatch.setattr(attention_calls, "multi_head_weights", refuse)
    assert list(attending_layers(model, (3, 16, 16))) == expected
    assert all_hooks(model) == 0


def test_a_layer_that_attends_twice_is_listed_once() -> None:
    class Twice(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            tokens = images.flatten(2).mT
            for _ in range(2):
                tokens = torch.softmax(tokens @ tokens.mT, -1) @ tokens
            return tokens.mean(1)

    assert attending_layers(as_model(nn.Sequential(Twice())), (3, 4, 4)) == ("0",)


def test_nothing_is_listed_of_a_network_without_attention(tiny: Model) -> None:
    assert attending_layers(tiny, (3, 16, 16)) == ()
    assert "vit_b_16" in str(no_attention_error(tiny))
