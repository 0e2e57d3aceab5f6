from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hookviz
from hookviz.capturing import inputs
from hookviz.explaining.attribution import input_gradient, last_layer_with_gradient, layer_gradient
from hookviz.explaining.attribution_target import AttributionTarget
from tests.networks import Tiny, as_model, hook_count, random_input, seeded

STEP = 1e-5  # of central differences, in float64


class InPlace(nn.Module):
    """Writes over its convs' outputs by functions that no replica can switch off."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3, padding=1)
        self.second = nn.Conv2d(4, 4, 3, padding=1)
        self.head = nn.Linear(4, 5)

    def forward(self, images: Tensor) -> Tensor:
        return self.after(self.first(images))

    def after(self, found: Tensor) -> Tensor:
        F.relu(found, inplace=True)
        more = self.second(found)
        more += found
        scores: Tensor = self.head(F.softplus(more).mean((2, 3)) ** 2)
        return scores


def prepared(model: hookviz.Model, given: Tensor) -> hookviz.ModelInput:
    return inputs.prepare(model, given)


def differences(function: Callable[[Tensor], Tensor], at: Tensor) -> Tensor:
    """The gradient of a number of a tensor by central differences, in float64."""
    result = torch.zeros(at.numel(), dtype=torch.float64)
    for index in range(at.numel()):
        moved = at.flatten().clone()
        moved[index] += STEP
        above = function(moved.view(at.shape))
        moved[index] -= 2 * STEP
        result[index] = (above - function(moved.view(at.shape))) / (2 * STEP)
    return result.view(at.shape)


@torch.no_grad()
def test_a_layers_gradient_agrees_with_finite_differences_behind_in_place_functions() -> None:
    network = seeded(InPlace).double()
    model = as_model(network)
    image = random_input(1, 6)
    result = layer_gradient(model, prepared(model, image), "first", AttributionTarget(2))
    output = network.first(image.double())
    np.testing.assert_allclose(result.output, output[0].numpy(), rtol=1e-12)
    expected = differences(lambda at: network.after(at.clone())[0, 2], output)
    np.testing.assert_allclose(result.gradient, expected[0].numpy(), rtol=1e-5, atol=1e-9)
    assert result.value == pytest.approx(float(network(image.double())[0, 2]))


@torch.no_grad()
def test_the_inputs_gradient_agrees_with_finite_differences() -> None:
    network = seeded(InPlace).double()
    model = as_model(network)
    image = random_input(2, 5)
    result = input_gradient(model, prepared(model, image), AttributionTarget(0))
    expected = differences(lambda at: network(at)[0, 0], image.double())
    np.testing.assert_allclose(result.gradient, expected[0].numpy(), rtol=1e-5, atol=1e-9)
    np.testing.assert_array_equal(result.output, image[0].double().numpy())


@pytest.mark.parametrize("cell", [None, (2, 3)])
@torch.no_grad()
def test_a_channel_can_be_asked_about(cell: tuple[int, int] | None) -> None:
    network = seeded(InPlace).double()
    model = as_model(network)
    image = random_input(3, 6)
    target = AttributionTarget(layer="second", channel=1, cell=cell)

    def asked(first: Tensor) -> Tensor:
        channel: Tensor = network.second(F.relu(first))[0, 1]
        return channel.mean() if cell is None else channel[cell]

    output = network.first(image.double())
    result = layer_gradient(model, prepared(model, image), "first", target)
    np.testing.assert_allclose(result.gradient, differences(asked, output)[0], rtol=1e-5, atol=1e-9)
    assert result.value == pytest.approx(float(asked(output)))
    result = input_gradient(model, prepared(model, image), target)
    expected = differences(lambda at: asked(network.first(at)), image.double())
    np.testing.assert_allclose(result.gradient, expected[0], rtol=1e-5, atol=1e-9)


class Cut(nn.Module):
    """Has a branch that nothing uses, and lets no gradient through in the middle."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 4, 3)
        self.unused = nn.Conv2d(3, 4, 3)
        self.last = nn.Conv2d(4, 4, 3)
        self.head = nn.Linear(4, 5)
        self.how = how

    def forward(self, images: Tensor) -> Tensor:
        self.unused(images)
        if self.how == "no_grad":
            with torch.no_grad():
                values = F.relu(self.first(images))
        else:
            values = self.first(images)
            values = values.detach() if self.how == "detach" else values.round()
        scores: Tensor = self.head(self.last(values).mean((2, 3)))
        return scores


@pytest.mark.parametrize("how", ["detach", "no_grad"])
def test_a_network_that_cuts_gradients_is_refused(how: str, noise: Tensor) -> None:
    model = as_model(seeded(lambda: Cut(how)))
    model_input = prepared(model, noise)
    with pytest.raises(hookviz.HookVizError, match=r"cuts .* layer 'first' and .*'last'"):
        layer_gradient(model, model_input, "first", AttributionTarget(0))
    with pytest.raises(hookviz.HookVizError, match=r"cuts .* the input and .*'last'"):
        input_gradient(model, model_input, AttributionTarget(0))
    assert layer_gradient(model, model_input, "last", AttributionTarget(0)).gradient.any()
    assert hook_count(model.network) == 0


@pytest.mark.parametrize("how", ["detach", "round"])
def test_a_layer_that_does_not_matter_is_refused_with_one_that_does(
    how: str, noise: Tensor
) -> None:
    model = as_model(seeded(lambda: Cut(how)))
    model_input = prepared(model, noise)
    says = "the score of class 0 does not depend on layer 'unused'.*Layer 'last' has a gradient"
    with pytest.raises(hookviz.HookVizError, match=says):
        layer_gradient(model, model_input, "unused", AttributionTarget(0))
    with pytest.raises(hookviz.HookVizError, match="channel 0 of first does not depend on"):
        layer_gradient(model, model_input, "last", AttributionTarget(layer="first"))


def test_zero_gradients_are_zeros_and_another_layer_is_found(noise: Tensor) -> None:
    model = as_model(seeded(lambda: Cut("round")))  # rounding has a gradient, and it is 0
    model_input = prepared(model, noise)
    assert not layer_gradient(model, model_input, "first", AttributionTarget(0)).gradient.any()
    assert last_layer_with_gradient(model, model_input, AttributionTarget(0)) == "last"
    assert last_layer_with_gradient(model, model_input, AttributionTarget(0), but="last") is None


@pytest.mark.parametrize("slug", ["grad-cam", "gradients", "saliency"])
def test_a_layer_without_a_batch_has_the_same_gradients(slug: str) -> None:
    class Plain(Tiny):
        def forward(self, images: Tensor) -> Tensor:
            values = self.conv2(self.at_work(self.conv1(images).relu()))
            scores: Tensor = self.head(values.mean((-2, -1)).reshape(1, -1))
            return scores

        def at_work(self, result: Tensor) -> Tensor:
            return result

    class Squeezed(Plain):
        def at_work(self, result: Tensor) -> Tensor:
            return result.squeeze(0)

    image = random_input(1)
    squeezed, plain = (
        hookviz.run_lens(slug, as_model(seeded(kind)), image, layer="conv2")
        for kind in (Squeezed, Plain)
    )
    assert squeezed.values.keys() == plain.values.keys()
    for name, values in plain.values.items():
        np.testing.assert_allclose(squeezed.values[name], values, rtol=1e-4, atol=1e-6)
