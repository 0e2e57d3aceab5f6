"""Lenses on layers of tokens, or with their channels last: channel k is that of the last axis."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import hookviz
from hookviz.explaining.receptive_fields.receptive_field import receptive_fields
from tests.attending import plain_pass
from tests.token_networks import TOKEN_NETWORKS, TokenNetwork

CASES = pytest.mark.parametrize("name", ["timm's DeiT", "timm's Swin", "ConvNeXt"])
CHANNEL = 5


def maps_of(case: TokenNetwork, layer: str, seed: int = 0) -> NDArray[np.float32]:
    """What the layer puts out, ``(C, H, W)``, by a plain hook, cut out by hand."""
    _, seen = plain_pass(case.model().network, case.image(seed))
    return case.maps(seen[layer][1])[0].detach().numpy()


def ran(case: TokenNetwork, slug: str, **chosen: Any) -> dict[str, NDArray[Any]]:
    """The lens's numbers for the case's second layer."""
    result = hookviz.run_lens(slug, case.model(), case.image(), layer=case.layers[1], **chosen)
    return dict(result.values)


@CASES
def test_what_a_channel_puts_out_is_read_off_the_last_axis(name: str) -> None:
    case = TOKEN_NETWORKS[name]
    maps = maps_of(case, case.layers[1])
    close = pytest.approx
    across = ran(case, "across-images", channel=CHANNEL)
    assert across["highest"][0] == close(maps[CHANNEL].max(), abs=1e-5)
    assert across["mean"][0] == close(maps[CHANNEL].mean(), abs=1e-5)
    place = np.unravel_index(maps[CHANNEL].argmax(), maps[CHANNEL].shape)
    assert tuple(across["place"][0]) == place
    vector = ran(case, "embedding")["vectors"][0]
    np.testing.assert_allclose(vector, maps.mean((1, 2)), atol=1e-5)
    here = ran(case, "responds-here")
    inside = [np.average(each, weights=here["weights"]) for each in maps]
    np.testing.assert_allclose(here["inside"], inside, atol=1e-5)
    units = ran(case, "health")["units"]
    assert len(maps) in units
    hidden = ran(case, "occlusion", channel=CHANNEL, window=8, stride=8)
    assert hidden["value"] == close(maps[CHANNEL].mean(), abs=1e-5)


@CASES
def test_gradients_are_those_of_its_cells_and_channels(name: str) -> None:
    case = TOKEN_NETWORKS[name]
    layer, network = case.layers[1], case.model().network
    kept: list[torch.Tensor] = []
    network.get_submodule(layer).register_forward_hook(lambda *call: kept.append(call[2]))
    score = network(case.image().requires_grad_())[0, 3]
    (gradient,) = torch.autograd.grad(score, kept)
    expected = case.maps(gradient)[0].numpy()
    found = ran(case, "gradients", target=3)["gradient"]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-7)
    effective = ran(case, "effective-receptive-field", row=1, column=2)
    box = receptive_fields(case.model(), (3, *case.size))[layer].box(1, 2)
    assert effective["box"].tolist() == list(box)
    top, left, bottom, right = box
    outside = effective["map"].copy()
    outside[top:bottom, left:right] = 0
    assert effective["map"].any()
    assert not outside.any()


@CASES
def test_pictures_are_made_for_it(name: str) -> None:
    case = TOKEN_NETWORKS[name]
    assert ran(case, "dream", steps=2)["picture"].shape == (*case.size, 3)
    inverted = hookviz.run_lens(
        "inversion", case.model(), case.image(), layer=case.layers[1], steps=2, layers=1
    )
    assert inverted.values["pictures"].shape[1:] == (*case.size, 3)


@CASES
def test_the_lens_of_kernels_says_what_the_layer_is_and_names_a_convolution(name: str) -> None:
    case = TOKEN_NETWORKS[name]
    with pytest.raises(hookviz.SettingError, match="is a Linear, and no convolution") as caught:
        ran(case, "kernels")
    conv = str(caught.value).rpartition("The nearest one is '")[2].rstrip("'.")
    assert isinstance(case.model().network.get_submodule(conv), torch.nn.Conv2d)
