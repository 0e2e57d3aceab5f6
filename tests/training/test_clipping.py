import copy
import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.training.clipping import clip_gradients
from tests.networks import Tiny, random_input, seeded


@pytest.fixture
def network() -> nn.Module:
    return seeded(Tiny).train()


def backward(network: nn.Module, scale: float = 1.0, seed: int = 0) -> dict[str, Tensor]:
    """The gradients of a loss, by parameter."""
    loss = nn.functional.cross_entropy(network(random_input(seed)) * scale, torch.tensor([2]))
    loss.backward()  # type: ignore[no-untyped-call]
    gradients = {}
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None
        gradients[name] = parameter.grad
    return gradients


def hooks_on_parameters(network: nn.Module) -> int:
    return sum(len(parameter._backward_hooks or ()) for parameter in network.parameters())


@pytest.mark.parametrize("value", [1e-3, 0.02, 1, 100.0])
def test_by_value_is_what_pytorch_does_afterwards(network: nn.Module, value: float) -> None:
    other = copy.deepcopy(network)
    with clip_gradients(network, value):
        ours = backward(network)
    theirs = backward(other)
    nn.utils.clip_grad_value_(other.parameters(), value)
    for name, gradient in ours.items():
        torch.testing.assert_close(gradient, theirs[name], rtol=0, atol=0)


@pytest.mark.parametrize("norm", [1e-3, 0.1, 100])
def test_by_norm_is_what_pytorch_does_to_each_parameter(network: nn.Module, norm: float) -> None:
    other = copy.deepcopy(network)
    with clip_gradients(network, norm=norm):
        ours = backward(network)
    theirs = backward(other)
    for name, parameter in other.named_parameters():
        nn.utils.clip_grad_norm_([parameter], norm)
        torch.testing.assert_close(ours[name], theirs[name], rtol=1e-7, atol=0)
        assert float(ours[name].norm()) <= norm * (1 + 1e-6)


def test_clipping_ends_with_the_block(network: nn.Module) -> None:
    other = copy.deepcopy(network)
    with clip_gradients(network, 1e-4):
        backward(network)
        assert hooks_on_parameters(network) == 6
    assert hooks_on_parameters(network) == 0
    network.zero_grad()
    theirs = backward(other)
    for name, gradient in backward(network).items():
        torch.testing.assert_close(gradient, theirs[name], rtol=0, atol=0)


def test_each_backward_pass_is_clipped_by_itself(network: nn.Module) -> None:
    with clip_gradients(network, 1e-5):
        backward(network)
        gradients = backward(network)
    assert max(float(gradient.abs().max()) for gradient in gradients.values()) == pytest.approx(
        2e-5
    )


def test_a_parameter_used_twice_is_clipped_once_as_a_whole() -> None:
    conv = seeded(lambda: nn.Conv2d(3, 3, 1, bias=False))
    other = copy.deepcopy(conv)
    with clip_gradients(conv, 0.5):
        conv(conv(random_input(0))).mean().backward()
    other(other(random_input(0))).mean().backward()
    assert conv.weight.grad is not None
    assert other.weight.grad is not None
    torch.testing.assert_close(conv.weight.grad, other.weight.grad.clamp(-0.5, 0.5))


def test_frozen_parameters_are_left_alone_and_a_model_of_them_is_refused(
    network: nn.Module,
) -> None:
    assert isinstance(network, Tiny)
    network.conv1.requires_grad_(False)
    with clip_gradients(network, 0.1):
        assert hooks_on_parameters(network) == 4
    with (
        pytest.raises(hookviz.ModelError, match="No parameter of this Tiny requires a gradient"),
        clip_gradients(network.requires_grad_(False), 0.1),
    ):
        pass


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        ({}, "takes one limit"),
        ({"value": 1, "norm": 1}, "value=1 and norm=1"),
        ({"value": 0}, "value=0 is not a finite number above 0"),
        ({"value": -1.5}, "value=-1.5"),
        ({"value": float("nan")}, "value=nan"),
        ({"norm": float("inf")}, "norm=inf"),
        ({"norm": True}, "norm=True"),
        ({"value": "much"}, "value='much'"),
        ({"value": 1, "at": "output"}, "'outputs'"),
    ],
)
def test_limits_that_mean_nothing_are_refused(
    network: nn.Module, limits: dict[str, Any], says: str
) -> None:
    with (
        pytest.raises(hookviz.SettingError, match=re.escape(says)),
        clip_gradients(network, **limits),
    ):
        pass
    assert hooks_on_parameters(network) == 0


def test_infinite_gradients_become_the_limit(network: nn.Module) -> None:
    weight = nn.Parameter(torch.tensor([1.0, 2.0]))
    holder = nn.Module()
    holder.weight = weight
    with clip_gradients(holder, 3):
        total = (weight * torch.tensor([float("inf"), -float("inf")])).sum()
        total.backward()  # type: ignore[no-untyped-call]
    assert weight.grad is not None
    assert weight.grad.tolist() == [3, -3]


def test_the_parameters_of_some_layers_can_be_clipped_alone(network: nn.Module) -> None:
    free = {name: gradient.clone() for name, gradient in backward(network, 100).items()}
    network.zero_grad()
    with clip_gradients(network, 1e-3, layers="conv?", exclude="conv2"):
        clipped = backward(network, 100)
    for name, gradient in free.items():
        limited = gradient.clamp(-1e-3, 1e-3) if name.startswith("conv1") else gradient
        assert torch.equal(clipped[name], limited)
        assert torch.equal(gradient, limited) != name.startswith("conv1")
    with (
        pytest.raises(hookviz.SettingError, match="chosen layers have no parameter"),
        clip_gradients(network, 1, layers="relu"),
    ):
        pytest.fail("the block must not run")


@pytest.mark.parametrize("at", ["inputs", "outputs"])
@pytest.mark.parametrize("limits", [{"value": 1e-3}, {"norm": 1e-3}])
def test_what_flows_through_a_layer_is_clipped_and_all_upstream_feels_it(
    network: Any, at: str, limits: dict[str, Any]
) -> None:
    image = random_input(0)
    a = network.conv1(image)
    b = a.relu()
    c = network.conv2(b)
    loss = nn.functional.cross_entropy(network.head(c.relu().mean((2, 3))), torch.tensor([2]))
    tensor = b if at == "inputs" else c
    (gradient,) = torch.autograd.grad(loss, tensor, retain_graph=True)
    if "value" in limits:
        clipped = gradient.clamp(-1e-3, 1e-3)
    else:
        clipped = gradient * (1e-3 / (gradient.norm() + 1e-6)).clamp(max=1)
    assert not torch.equal(clipped, gradient)
    (expected,) = torch.autograd.grad(tensor, network.conv1.weight, clipped)
    with clip_gradients(network, at=at, layers="conv2", **limits):
        gradients = backward(network)
    torch.testing.assert_close(gradients["conv1.weight"], expected, rtol=1e-5, atol=0)
