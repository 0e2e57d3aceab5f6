"""Lenses that edit a layer, on linear layers over tokens, windows and maps with channels last.

The edits are written by hand here: a hook that writes into the last axis, a matrix without rows.
"""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.drawing.panels import GridPanel
from tests.attending import plain_pass
from tests.lenses.said import texts
from tests.token_networks import TOKEN_NETWORKS

WINDOWS = ("timm's Swin", "layers.0.blocks.1.attn.qkv")  # which are cut after a shift
CASES = pytest.mark.parametrize(
    ("name", "layer"),
    [(name, case.layers[1]) for name, case in TOKEN_NETWORKS.items()] + [WINDOWS],
)
Change = Callable[[Tensor], Tensor]


def edited(network: nn.Module, layer: str, image: Tensor, change: Change) -> tuple[Tensor, Tensor]:
    """The scores, and what the layer puts out, where a plain hook changes that."""
    seen: list[Tensor] = []
    network = copy.deepcopy(network)

    def hook(_module: nn.Module, _inputs: Any, output: Tensor) -> Tensor:
        seen.append(change(output.clone()))
        return seen[0].clone()

    network.get_submodule(layer).register_forward_hook(hook)
    with torch.no_grad():
        return network(image)[0], seen[0]


def without(*channels: int) -> Change:
    def change(output: Tensor) -> Tensor:
        output[..., list(channels)] = 0
        return output

    return change


def close(found: Any, expected: Tensor) -> None:
    bound = 1e-6 * max(1.0, float(expected.abs().max()))
    np.testing.assert_allclose(found, expected.numpy(), rtol=0, atol=bound)


def but(channels: list[int], output: Tensor) -> Tensor:
    kept = torch.zeros_like(output)
    kept[..., channels] = output[..., channels]
    return kept


def times(channels: list[int], output: Tensor) -> Tensor:
    output[..., channels] = output[..., channels] * -1.5
    return output


def strong(channels: list[int], output: Tensor) -> Tensor:
    part = output[..., channels]
    output[..., channels] = torch.where(part.abs() > 0.4, part, 0)
    return output


EDITS: dict[str, Callable[[list[int], Tensor], Tensor]] = {
    "switch off": lambda channels, output: without(*channels)(output),
    "keep only": but,
    "scale": times,
    "threshold": strong,
}


@CASES
def test_every_edit_is_that_of_a_hook_on_all_tokens(name: str, layer: str) -> None:
    case, channels = TOKEN_NETWORKS[name], [1, 5]
    model, image = case.model(), case.image()
    options: dict[str, Any] = {"factor": -1.5, "limit": 0.4, "target": 2, "channels": channels}
    for mode, change in EDITS.items():
        result = hookviz.run_lens("ablate", model, image, layer=layer, mode=mode, **options)
        scores, output = edited(model.network, layer, image, partial(change, channels))
        close(result.values["logits_after"], scores)
        assert (result.values["logits_after"] != result.values["logits_before"]).any()
        maps = result.values["after"]
        assert maps.shape[1:] == case.grid
        if (name, layer) != WINDOWS:
            close(maps, case.maps(output)[0])
        if mode == "switch off":
            assert not maps[channels].any()


def test_the_next_layer_is_watched_and_other_tokens_are_told_of() -> None:
    case = TOKEN_NETWORKS["timm's DeiT"]
    model, image = case.model(), case.image()
    result = hookviz.run_lens("ablate", model, image, layer="blocks.0.mlp.fc1", channels="3")
    shown = [panel.title for panel in result.panels if isinstance(panel, GridPanel)]
    assert shown == ["blocks.0.mlp.fc1"] * 2 + ["blocks.0.mlp.fc2"] * 2
    expected, network = [], copy.deepcopy(model.network)
    network.get_submodule("blocks.0.mlp.fc2").register_forward_hook(
        lambda *call: expected.append(call[2])
    )
    edited(network, "blocks.0.mlp.fc1", image, without(3))
    close(result.values["downstream_after"], case.maps(expected[0])[0])
    says: Any = result.panels[1]
    assert "what else stands for no cell, is edited with the others" in says.text


@CASES
def test_each_channel_is_missed_as_by_a_hook_on_all_tokens(name: str, layer: str) -> None:
    case = TOKEN_NETWORKS[name]
    model, image = case.model(), case.image()
    result = hookviz.run_lens("channels-that-matter", model, image, layer=layer, target=2)
    with torch.no_grad():
        before = model.network(image)[0]
    channels = range(len(result.values["logit_change"]))
    after = torch.stack([edited(model.network, layer, image, without(k))[0] for k in channels])
    bound = 1e-6 * max(1.0, float(before.abs().max()))
    changes = (after - before)[:, 2].numpy()
    assert np.ptp(changes) > 1e-3
    np.testing.assert_allclose(result.values["logit_change"], changes, rtol=0, atol=bound)
    chances = (after.softmax(1) - before.softmax(0))[:, 2].numpy()
    np.testing.assert_allclose(result.values["probability_change"], chances, rtol=0, atol=bound)
    one = hookviz.run_lens(
        *("channels-that-matter", model, image),
        layer=layer,
        of="a channel: which classes",
        channel=3,
    )
    close(one.values["logit_change"], after[3] - before)


def plainly_pruned(network: nn.Module, names: list[str], method: str, share: float) -> nn.Module:
    """A copy of which a share of some matrices, or of their rows, is 0, by magnitude."""
    network = copy.deepcopy(network)
    parts: list[Any] = [network.get_submodule(name) for name in names]
    with torch.no_grad():
        every = torch.cat([part.weight.flatten().abs() for part in parts])
        limit = every.kthvalue(round(share * len(every))).values
        for part in parts:
            if method == "smallest weights":
                part.weight[part.weight.abs() <= limit] = 0
            else:
                rows = (
                    part.weight.flatten(1).abs().sum(1).argsort()[: round(share * len(part.weight))]
                )
                part.weight[rows] = part.bias[rows] = 0
    return network


@CASES
def test_weights_and_rows_go_as_from_a_plain_copy(name: str, layer: str) -> None:
    case = TOKEN_NETWORKS[name]
    model, image = case.model(), case.image()
    every = [
        each.name for each in hookviz.list_layers(model, input_shape=(3, *case.size), kind="all")
    ]
    linears = [
        each
        for each in every
        if isinstance(model.network.get_submodule(each), nn.Conv2d | nn.Linear)
        and plain_pass(model.network, image)[1][each][1].ndim > 2
    ]
    options: dict[str, Any] = {"layer": layer, "keep": 40, "most": 30, "step": 50}
    for method in ("smallest weights", "channels by L1 norm"):
        for where, names in (
            ("this layer alone", [layer]),
            ("every conv and linear layer", linears),
        ):
            result = hookviz.run_lens(
                "prune-weights", model, image, method=method, where=where, **options
            )
            pruned = plainly_pruned(model.network, names, method, 0.4)
            with torch.no_grad():
                close(result.values["kept_logits"], pruned(image)[0])
                less = plainly_pruned(model.network, names, method, 0.3)
                close(result.values["logits"][1], less(image)[0])
            if (name, layer) != WINDOWS:
                close(result.values["after"], case.maps(plain_pass(pruned, image)[1][layer][1])[0])


def test_rows_of_zeros_stay_in_the_network_and_it_is_said() -> None:
    case = TOKEN_NETWORKS["torchvision's ViT"]
    result = hookviz.run_lens(
        *("prune-weights", case.model(), case.image()),
        layer=case.layers[1],
        method="channels by L2 norm",
        where="this layer alone",
        step=50,
    )
    assert "weights in 1 conv or linear layer;" in texts(result)
    assert "stay in the network, with zeros" in texts(result)
    assert "parameters" not in result.values


class WithRelu(nn.Module):
    """Tokens through a linear layer, a ReLU that cuts its channel 1, and another one."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 6, 4, stride=4)
        self.first, self.relu, self.second = nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 6)
        self.head = nn.Linear(6, 5)
        with torch.no_grad():
            self.first.bias[1] = -100

    def forward(self, images: Tensor) -> Tensor:
        tokens = self.patches(images).flatten(2).mT
        scores: Tensor = self.head(self.second(self.relu(self.first(tokens))).mean(1))
        return scores


def test_what_a_relu_cuts_anyway_is_said() -> None:
    model = hookviz.wrap(WithRelu().eval())
    image = torch.randn(1, 3, 16, 24)
    result = hookviz.run_lens("ablate", model, image, layer="first", channels="1")
    assert "relu (ReLU) had cut" in texts(result)


@pytest.mark.parametrize("slug", ["ablate", "channels-that-matter", "prune-weights"])
@pytest.mark.parametrize(
    ("layer", "says"),
    [
        ("blocks.0.norm1", r"is a LayerNorm that puts out 8×4×6, .*nearest one is 'patch_embed"),
        ("head", r"is a Linear that puts out 5, .*nearest one is 'blocks.1.mlp.fc2'"),
    ],
)
def test_what_has_no_weights_for_maps_is_refused_with_the_nearest(
    slug: str, layer: str, says: str
) -> None:
    case = TOKEN_NETWORKS["timm's ViT"]
    with pytest.raises(hookviz.SettingError, match=says):
        hookviz.run_lens(slug, case.model(), case.image(), layer=layer)
