import gc
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.capturing.inputs import prepare_input
from hookviz.capturing.layer_trace import input_trace
from hookviz.hooking import channels_last
from hookviz.hooking.channels_last import (
    ROUNDING,
    faster_model,
    is_convolutional,
    lay_out,
    rounding_note,
    with_channels_last,
)
from hookviz.hooking.forward_pass import forward_pass, private_replica
from hookviz.types import Model
from tests.networks import Tiny, all_hooks, as_model, as_shared, random_input, seeded
from tests.wide_networks import Wide, WideByStrides, WideViewed

SIDE = 24


def traced(model: Model) -> Model:
    """The model, of whose network a pass was watched."""
    input_trace(model, prepare_input(model, random_input(0, SIDE)))
    return model


def wide() -> Model:
    return traced(as_shared(seeded(Wide)))


def is_last(weights: Tensor) -> bool:
    return weights.is_contiguous(memory_format=torch.channels_last)


def scores(model: Model, images: Tensor) -> Tensor:
    with private_replica(model) as replica:
        output: Tensor = forward_pass(model, replica, images)
    return output


def test_the_users_weights_keep_their_format_their_memory_and_their_values() -> None:
    module = seeded(Wide)
    model = traced(as_shared(module))
    networks = {"the module": module, "the model's": model.network}
    before = {
        (which, name): (each.data_ptr(), each.stride(), each._version, each.clone())
        for which, network in networks.items()
        for name, each in network.state_dict(keep_vars=True).items()
    }
    fast = faster_model(model, random_input(0, SIDE))
    scores(fast, random_input(1, SIDE))
    moved = dict(fast.network.named_parameters())
    assert all(is_last(moved[f"conv{number}.weight"]) for number in (1, 2, 3))
    for which, network in networks.items():
        for name, each in network.state_dict(keep_vars=True).items():
            address, stride, version, values = before[which, name]
            assert (each.data_ptr(), each.stride(), each._version) == (address, stride, version)
            assert torch.equal(each, values)
        assert not is_last(network.get_submodule("conv2").weight)  # type: ignore[arg-type]
    assert moved["head.weight"].data_ptr() == model.network.get_parameter("head.weight").data_ptr()
    assert all_hooks(model) == 0


@pytest.mark.parametrize(
    ("name", "suits"),
    [
        ("resnet18", True),
        ("shapesnet", False),  # it has done its pass before its weights are laid out
        ("vit_b_32", False),
        ("convnext_tiny", False),
    ],
)
def test_networks_of_convolutions_suit_and_attention_and_small_ones_do_not(
    name: str, suits: bool
) -> None:
    weights = "pretrained" if name == "shapesnet" else "random"
    model = hookviz.load_model(name, weights=weights)
    shape = 224 if name == "vit_b_32" else 64
    input_trace(model, prepare_input(model, torch.zeros(1, 3, shape, shape)))
    assert is_convolutional(model.network) == suits
    assert (with_channels_last(model) is not model) == suits


def test_other_precisions_and_what_does_more_than_compute_stay_as_they_are() -> None:
    class Scaled(Wide):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(1, 10))

        def forward(self, images: Tensor) -> Tensor:
            return super().forward(images) * self.scale

    assert is_convolutional(wide().network)
    assert not is_convolutional(as_model(seeded(Wide)).network)  # a person's own
    for other in (seeded(Wide).double(), seeded(Tiny), seeded(Scaled)):
        assert not is_convolutional(traced(as_shared(other)).network)


@pytest.mark.parametrize("kind", [WideViewed, WideByStrides])
def test_a_network_that_goes_by_how_its_input_lies_gets_it_plainly(kind: type[Wide]) -> None:
    model = traced(as_shared(seeded(kind)))
    assert with_channels_last(model) is not model
    images = random_input(0, SIDE)
    assert faster_model(model, images) is model
    assert faster_model(model, images) is model
    assert rounding_note(faster_model(model, images)) == ""


def test_a_second_run_finds_the_network_and_it_goes_with_the_last() -> None:
    model = wide()
    first, second = with_channels_last(model), with_channels_last(model)
    assert first.network is second.network
    assert with_channels_last(first) is first
    assert input_trace(first, prepare_input(model, random_input(0, SIDE))) is input_trace(
        model, prepare_input(model, random_input(0, SIDE))
    )
    del first, second
    gc.collect()
    assert channels_last._copies[model.network][0]() is None


@pytest.mark.parametrize("replaced", [False, True])
def test_weights_that_changed_since_are_moved_anew_though_somebody_holds_the_old_ones(
    replaced: bool,
) -> None:
    model, image = wide(), random_input(0, SIDE)
    held = with_channels_last(model)
    conv = next(part for part in model.network.modules() if isinstance(part, nn.Conv2d))
    with torch.no_grad():
        if replaced:
            conv.weight = nn.Parameter(3 * conv.weight)
        else:
            conv.weight.mul_(3)
    traced(model)
    now = with_channels_last(model)
    assert now.network is not held.network
    plain = scores(model, image)
    assert not torch.allclose(scores(held, lay_out(image)), plain, rtol=1e-3)
    assert torch.allclose(
        scores(now, lay_out(image)), plain, atol=ROUNDING * float(plain.abs().max())
    )


def test_scores_and_maps_are_those_of_a_plain_pass_to_rounding_and_captures_are_exact() -> None:
    model, images = wide(), torch.cat([random_input(seed, SIDE) for seed in range(3)])
    seen: list[Tensor] = []
    module = seeded(Wide).eval()
    module.get_submodule("conv3").register_forward_hook(lambda *call: seen.append(call[2].clone()))
    with torch.no_grad():
        plain = module(images)
    fast = faster_model(model, images)
    assert fast is not model
    far = (scores(fast, lay_out(images)) - plain).abs().max()
    assert 0 <= far <= ROUNDING * plain.abs().max()
    image, names = images[:1], ["conv1", "conv3"]
    captured = hookviz.capture(model, image, names)
    torch.testing.assert_close(captured["conv3"].values, seen[0][0])
    with torch.no_grad():
        module(image)
    assert torch.equal(captured["conv3"].values, seen[1][0])
    model_input = prepare_input(model, image)
    laid_out = replace(model_input, tensor=lay_out(model_input.tensor))
    assert is_last(laid_out.tensor)
    for name, activation in hookviz.capture(fast, laid_out, names).items():
        assert activation.values.is_contiguous()
        far = (activation.values - captured[name].values).abs().max()
        assert far <= ROUNDING * captured[name].values.abs().max()
