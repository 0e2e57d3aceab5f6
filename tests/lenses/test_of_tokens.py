"""Lenses on tokens and channels last: channel k is the last axis, and cells are where they lie."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.errors import UnknownLayerError
from hookviz.synthesis.goals import Objective, by_picture
from tests import small_transformers
from tests.networks import random_input, seeded
from tests.small_transformers import SIDE, as_model, put_out


class Case(NamedTuple):
    """A network, a linear layer in it, and where its output has which cell."""

    build: Callable[[], nn.Module]
    layer: str
    first: str
    maps: Callable[[Tensor], Tensor]


def channels_last(output: Tensor) -> Tensor:
    return output[0].permute(2, 0, 1)


CASES = {
    "ViT": Case(
        *(small_transformers.vit, "blocks.0.mlp.fc1", "patch_embed.proj"),
        lambda output: output[0, 1:].T.reshape(96, 4, 4),
    ),
    "DeiT": Case(
        *(small_transformers.deit, "blocks.1.attn.qkv", "patch_embed.proj"),
        lambda output: output[0, 2:].T.reshape(72, 4, 4),
    ),
    "Swin": Case(
        *(small_transformers.swin, "layers.1.downsample.reduction", "patch_embed.proj"),
        channels_last,
    ),
    "ConvNeXt": Case(*(small_transformers.ConvNeXt, "block.block.3", "stem"), channels_last),
}


@pytest.fixture(params=CASES, scope="module")
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture(scope="module")
def model(case: Case) -> hookviz.Model:
    return as_model(seeded(case.build))


@pytest.fixture(scope="module")
def image() -> Tensor:
    return random_input(1, SIDE)


@pytest.fixture(scope="module")
def maps(case: Case, image: Tensor) -> Tensor:
    """What a plain hook on a network of its own sees, as maps."""
    return case.maps(put_out(seeded(case.build), case.layer, image)[1])


def test_a_region_is_asked_channel_by_channel(
    case: Case, model: hookviz.Model, image: Tensor, maps: Tensor
) -> None:
    values = hookviz.run_lens("responds-here", model, image, layer=case.layer).values
    weights = values["weights"]
    inside = [np.average(each, weights=weights) for each in maps.double().numpy()]
    np.testing.assert_allclose(values["inside"], inside, rtol=1e-5, atol=1e-8)


def test_one_channel_across_images_is_one_map(
    case: Case, model: hookviz.Model, image: Tensor, maps: Tensor
) -> None:
    values = hookviz.run_lens("across-images", model, image, layer=case.layer, channel=5).values
    np.testing.assert_allclose(values["maps"][0], maps[5], rtol=1e-5, atol=1e-7)
    assert values["highest"][0] == pytest.approx(maps[5].max().item(), rel=1e-5)


def test_features_are_means_over_cells(
    case: Case, model: hookviz.Model, image: Tensor, maps: Tensor
) -> None:
    values = hookviz.run_lens("embedding", model, image, layer=case.layer).values
    np.testing.assert_allclose(values["vectors"][0], maps.mean((1, 2)), rtol=1e-4, atol=1e-6)


def test_two_captures_are_compared_channel_by_channel(
    case: Case, model: hookviz.Model, image: Tensor, maps: Tensor
) -> None:
    one, two = (hookviz.capture(model, each, case.layer) for each in (image, image.flip(3)))
    channels = hookviz.compare(one, two)[case.layer].channels
    other = case.maps(put_out(seeded(case.build), case.layer, image.flip(3))[1])
    expected = nn.functional.cosine_similarity(maps.flatten(1), other.flatten(1), dim=1)
    np.testing.assert_allclose(channels.cosine, expected, atol=1e-5)


def test_health_counts_channels_as_units(
    case: Case, model: hookviz.Model, image: Tensor, maps: Tensor
) -> None:
    values = hookviz.run_lens("health", model, image).values
    names = [layer.name for layer in hookviz.list_layers(model, kind="all")]
    at = names.index(case.layer)
    assert values["units"][at] == len(maps)
    assert values["dead"][at] == 0
    assert values["largest"][at] >= maps.abs().max().item() * (1 - 1e-6)


def test_what_excites_a_channel_climbs_that_channel(
    case: Case, model: hookviz.Model, image: Tensor, maps: Tensor
) -> None:
    goal = Objective.of_channel(case.layer, 5, (2, 1))
    _, output = put_out(seeded(case.build), case.layer, image)
    of_each = by_picture(model, case.layer, output, 1, tuple(image.shape[1:]))
    assert float(goal.value(of_each[0])) == maps[5, 2, 1].item()
    found = hookviz.run_lens("maximize", model, image, layer=case.layer, channel=5, steps=8).values
    assert found["history"][-1, 0] > found["history"][0, 0]


def test_a_dream_is_of_all_channels_of_the_cells(
    case: Case, model: hookviz.Model, image: Tensor
) -> None:
    found = hookviz.run_lens("dream", model, image, layer=case.layer, steps=2).values
    assert np.isfinite([float(found["before"]), float(found["after"])]).all()


def test_a_picture_is_rebuilt_from_tokens(case: Case, model: hookviz.Model, image: Tensor) -> None:
    found = hookviz.run_lens("inversion", model, image, layer=case.layer, steps=2).values
    assert np.isfinite(found["distances"]).all()


@pytest.mark.parametrize("slug", ["ablate", "prune-weights", "channels-that-matter", "kernels"])
def test_what_edits_convolutions_says_that_it_takes_these(
    slug: str, case: Case, model: hookviz.Model, image: Tensor
) -> None:
    with pytest.raises(UnknownLayerError, match=f"There is no conv layer in .*'{case.layer}'"):
        hookviz.run_lens(slug, model, image, layer=case.layer)


def test_a_channel_of_the_patches_convolution_is_switched_off(
    case: Case, model: hookviz.Model, image: Tensor
) -> None:
    found = hookviz.run_lens("ablate", model, image, layer=case.first, channels="3").values
    network = seeded(case.build).eval()

    def without(_: nn.Module, _given: object, output: Tensor) -> Tensor:
        return output * (torch.arange(output.shape[1]) != 3)[:, None, None]

    network.get_submodule(case.first).register_forward_hook(without)
    with torch.no_grad():
        np.testing.assert_allclose(found["logits_after"], network(image)[0], atol=1e-5)


def test_a_token_before_attention_reaches_no_pixel_beside_its_patch() -> None:
    model = as_model(seeded(small_transformers.vit))
    found = hookviz.run_lens(
        "effective-receptive-field", model, random_input(1, SIDE), layer="blocks.0.norm1"
    ).values
    row, column = found["cell"] * 8
    inside = np.zeros((SIDE, SIDE), bool)
    inside[row : row + 8, column : column + 8] = True
    assert found["map"][inside].all()
    assert not found["map"][~inside].any()
