"""Layers that put out no ordinary tensor: each against plain hooks on the network itself."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.capturing.cache import Budget
from hookviz.capturing.layer_trace import input_trace
from tests.networks import as_model, random_input, seeded
from tests.odd_networks import KINDS, ODD, Masked, dense

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own, of what is not finished there

IMAGE = random_input(5)


def seen_by_a_plain_hook(network: nn.Module, image: Tensor, layer: str) -> Any:
    seen: list[Any] = []
    hook = nn.Module.register_forward_hook(
        network.get_submodule(layer), lambda _module, _inputs, output: seen.append(dense(output))
    )
    with torch.no_grad():
        network(image.clone())
    hook.remove()
    return seen[0]


@pytest.mark.parametrize(
    "kind", ["Scripted", "Traced", "Sparse", "Quantised", "Nested", "ComplexConv", "InDouble"]
)
def test_what_an_odd_layer_puts_out_is_what_a_plain_hook_sees(kind: str) -> None:
    network = seeded(KINDS[kind]).eval()
    model = as_model(network)
    image = IMAGE.double() if kind == "InDouble" else IMAGE
    for layer in ("conv", *(() if kind == "InDouble" else (ODD,))):
        values = hookviz.capture(model, image, layer)[layer].values
        theirs = seen_by_a_plain_hook(network, image, layer)
        torch.testing.assert_close(values, theirs.to(values.dtype)[0], rtol=0, atol=1e-6)
        described = {info.name: info for info in hookviz.list_layers(model, kind="maps")}[layer]
        assert described.output_shape == tuple(values.shape)


def test_a_scripted_block_is_a_layer_like_another() -> None:
    network = seeded(KINDS["Scripted"]).eval()
    model = as_model(network)
    assert [info.name for info in hookviz.list_layers(model, kind="all")] == [
        *("conv", "relu", ODD, "head")
    ]
    block = hookviz.list_layers(model, kind="all")[2]
    assert block.parameters == 4 * 4 * 9 + 4 + 2 * 4
    with torch.no_grad():
        scores = network(IMAGE)[0]
    captured = hookviz.capture(model, IMAGE, inputs=True)
    torch.testing.assert_close(captured.logits, scores)
    assert torch.equal(
        hookviz.capture(model, IMAGE, ODD, inputs=True).inputs(ODD)[0].values,
        hookviz.capture(model, IMAGE, "relu")["relu"].values,
    )

    class Halves(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            x.data.mul_(0.5)
            return x

    # What a script writes past the counters is not shown of the layer before.
    model = as_model(seeded(lambda: nn.Sequential(nn.Conv2d(3, 4, 3), torch.jit.script(Halves()))))
    values = hookviz.capture(model, IMAGE, "0")["0"].values
    with torch.no_grad():
        torch.testing.assert_close(values, model.network.get_submodule("0")(IMAGE)[0])


def test_of_a_layer_under_vmap_all_images_are_there() -> None:
    network = seeded(KINDS["Mapped"]).eval()
    model = as_model(network)
    with torch.no_grad():
        before = torch.relu(network.get_submodule("conv")(IMAGE))
        theirs = network.get_submodule(ODD)(before)  # as it computes without vmap
    torch.testing.assert_close(hookviz.capture(model, IMAGE, ODD)[ODD].values, theirs[0])
    caps = hookviz.capture(model, [IMAGE, random_input(6)], ODD)
    torch.testing.assert_close(caps[0][ODD].values, theirs[0])
    assert hookviz.list_layers(model)[1].output_shape == (4, 12, 12)


def test_channels_of_a_layer_under_vmap_are_switched_off_one_by_one() -> None:
    network = seeded(KINDS["Mapped"]).eval()
    model = as_model(network)
    found = hookviz.run_lens("channels-that-matter", model, IMAGE, layer=ODD, target=1)
    with torch.no_grad():
        maps = network.get_submodule(ODD)(torch.relu(network.get_submodule("conv")(IMAGE)))
        head = network.get_submodule("head")
        whole = head(maps.mean((2, 3)))[0, 1]
        for channel in range(4):
            without = maps.clone()
            without[:, channel] = 0
            change = float(head(without.mean((2, 3)))[0, 1] - whole)
            assert found.values["logit_change"][channel] == pytest.approx(change, abs=1e-6)


@pytest.mark.parametrize(("kind", "why"), [("OnMeta", ".* on the meta device"), ("Ragged", "")])
def test_a_tensor_without_values_is_named(kind: str, why: str) -> None:
    """A cache with room has a pass keep all that puts out maps, and one of them has none."""
    network = seeded(KINDS[kind]).eval()
    model, cache = as_model(network), Budget(10**6).cache(10**6)
    cap = hookviz.capture(model, IMAGE, "relu", cache=cache)
    theirs = seen_by_a_plain_hook(network, IMAGE, "relu")
    torch.testing.assert_close(cap["relu"].values, theirs[0], rtol=0, atol=1e-6)
    with pytest.raises(hookviz.ModelError, match=f"Layer 'odd'{why}"):
        hookviz.capture(model, IMAGE, ODD, cache=cache)
    assert hookviz.capture(model, IMAGE).logits is not None
    assert hookviz.capture(model, IMAGE, "conv", cache=cache).forward_passes == 0


def test_an_encoder_with_a_padding_mask_is_described_as_it_runs() -> None:
    network = seeded(Masked).eval()
    model = as_model(network)
    assert input_trace(model, hookviz.prepare_input(model, IMAGE)).is_static is False
    for info in hookviz.list_layers(model, kind="all"):
        parts = hookviz.capture(model, IMAGE, info.name).calls(info.name)
        assert info.output_shape == tuple(parts[0].values.shape), info.name
    # of 196 tokens 100 are no padding
    linear = "odd.layers.0.linear1"
    values = hookviz.capture(model, IMAGE, linear)[linear].values
    assert tuple(values.shape) == (100, 8)
    with torch.no_grad():
        maps = torch.relu(network.get_submodule("conv")(IMAGE))
        tokens = maps.flatten(2).transpose(1, 2)[:, :100]
        layer: Any = network.get_submodule("odd.layers.0")
        attended = layer.norm1(tokens + layer.self_attn(tokens, tokens, tokens)[0])
        torch.testing.assert_close(values, layer.linear1(attended)[0], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(
            hookviz.capture(model, IMAGE).logits, network(IMAGE)[0], rtol=1e-4, atol=1e-5
        )
