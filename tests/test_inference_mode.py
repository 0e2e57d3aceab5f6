"""Everything works inside `torch.inference_mode`, and on what was made or loaded there."""

import pytest
import torch
from torch import nn

import hookviz
from tests.every_lens import SLUGS_OF_TENSORS
from tests.networks import Tiny, as_model, random_input, seeded


def made_inside() -> nn.Module:
    with torch.inference_mode():
        return seeded(Tiny)


def ordinary(network: nn.Module) -> bool:
    return not any(each.is_inference() for each in (*network.parameters(), *network.buffers()))


@pytest.mark.parametrize("inside", [True, False])
def test_a_module_of_inference_tensors_is_looked_at_as_any_other(inside: bool) -> None:
    network = made_inside()
    with torch.inference_mode(mode=inside):
        model = as_model(network)
        cap = hookviz.capture(model, random_input(0))
        hookviz.list_layers(model)
        gradients = hookviz.run_lens("grad-cam", model, random_input(0))
    assert model.network is network
    assert not ordinary(network)
    plain = hookviz.capture(as_model(seeded(Tiny)), random_input(0))
    assert torch.equal(cap["conv1"].values, plain["conv1"].values)
    assert gradients.values["map"].shape == (7, 7)


@pytest.mark.parametrize("lens", SLUGS_OF_TENSORS)
def test_every_lens_works_inside(lens: str) -> None:
    model = as_model(seeded(Tiny))
    outside = hookviz.run_lens(lens, model, random_input(0)).values
    with torch.inference_mode():
        inside = hookviz.run_lens(lens, as_model(seeded(Tiny)), random_input(0)).values
    assert inside.keys() == outside.keys()


@pytest.mark.parametrize("weights", ["pretrained", "random"])
def test_what_is_loaded_inside_is_ordinary(weights: str) -> None:
    with torch.inference_mode():
        model = hookviz.load_model("shapesnet", weights)
        scores = hookviz.capture(model, torch.zeros(3, 64, 64)).logits
    assert ordinary(model.network)
    assert scores is not None
    hookviz.run_lens("saliency", model, torch.zeros(3, 64, 64))


def test_watch_works_inside() -> None:
    for network in (seeded(Tiny), made_inside()):
        with torch.inference_mode(), hookviz.watch(network, record=True) as bad:
            network(random_input(0))
            assert bad == []
            network(torch.full((1, 3, 16, 16), torch.nan))
        assert bad[0].layer == "conv1"
