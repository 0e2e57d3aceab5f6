import warnings
import weakref
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hookviz
from hookviz.capturing import inputs
from hookviz.explaining.attribution.gradients import (
    INPUT,
    GradientPass,
    input_gradient,
    last_layer_with_gradient,
    layer_gradient,
)
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.types import ignore
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
    return inputs.prepare_input(model, given)


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


@pytest.mark.parametrize(
    "target",
    [
        AttributionTarget(2),
        AttributionTarget(layer="second", channel=1),
        AttributionTarget(layer="second", channel=1, cell=(2, 3)),
    ],
)
@torch.no_grad()
def test_gradients_agree_with_finite_differences_behind_in_place_functions(
    target: AttributionTarget,
) -> None:
    network = seeded(InPlace).double()
    model, image = as_model(network), random_input(3, 6)
    model_input = prepared(model, image)

    def asked(first: Tensor) -> Tensor:
        if target.layer is None:
            return network.after(first.clone())[0, 2]
        channel: Tensor = network.second(F.relu(first))[0, 1]
        return channel.mean() if target.cell is None else channel[target.cell]

    output = network.first(image.double())
    of_layer = layer_gradient(model, model_input, "first", target)
    of_input = input_gradient(model, model_input, target)
    for result, at, function in (
        (of_layer, output, asked),
        (of_input, image.double(), lambda at: asked(network.first(at))),
    ):
        expected = differences(function, at)[0]
        np.testing.assert_allclose(result.gradient, expected, rtol=1e-5, atol=1e-9)
        np.testing.assert_allclose(result.output, at[0], rtol=1e-12)
        assert result.value == pytest.approx(float(asked(output)))


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
    if how == "round":  # which has a gradient, and it is 0
        assert not layer_gradient(model, model_input, "first", AttributionTarget(0)).gradient.any()
    assert last_layer_with_gradient(model, model_input, AttributionTarget(0)) == "last"
    assert last_layer_with_gradient(model, model_input, AttributionTarget(0), but="last") is None


@pytest.mark.parametrize("slug", ["grad-cam", "gradients", "saliency"])
def test_a_layer_without_a_batch_has_the_same_gradients(slug: str) -> None:
    class Squeezed(Tiny):
        def forward(self, images: Tensor) -> Tensor:
            values = self.conv2(self.relu(self.conv1(images)).squeeze(0)).relu()
            scores: Tensor = self.head(values.mean((-2, -1)).reshape(1, -1))
            return scores

    squeezed, plain = (
        hookviz.run_lens(slug, as_model(seeded(kind)), random_input(1), layer="conv2")
        for kind in (Squeezed, Tiny)
    )
    assert squeezed.values.keys() == plain.values.keys()
    for name, values in plain.values.items():
        np.testing.assert_allclose(squeezed.values[name], values, rtol=1e-4, atol=1e-6)


def test_several_layers_in_one_pass(tiny: hookviz.Model, noise: Tensor) -> None:
    model_input = prepared(tiny, noise)
    target, names = AttributionTarget(1), ("conv1", "conv2", INPUT)
    together = GradientPass(tiny, model_input, target, names, ignore).run(noise)
    for name in ("conv1", "conv2"):
        alone = GradientPass(tiny, model_input, target, (name,), ignore).run(noise)
        torch.testing.assert_close(together[name], alone[name])
    leaf = noise.clone().requires_grad_()
    (expected,) = torch.autograd.grad(tiny.network(leaf)[0, 1], leaf)
    torch.testing.assert_close(together[INPUT], expected)


def test_a_network_may_write_into_its_input(noise: Tensor) -> None:
    class Writes(Tiny):
        def forward(self, images: Tensor) -> Tensor:
            images *= 2
            return super().forward(images)

    model = as_model(seeded(Writes))
    model_input = prepared(model, noise)
    result = input_gradient(model, model_input, AttributionTarget(1))
    leaf = noise.clone().requires_grad_()
    (expected,) = torch.autograd.grad(seeded(Tiny)(2 * leaf)[0, 1], leaf)
    np.testing.assert_allclose(result.gradient, expected[0], rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(model_input.tensor, noise, rtol=0, atol=0)


def test_a_part_that_runs_without_gradients_can_be_asked_about(noise: Tensor) -> None:
    class Frozen(Tiny):
        def forward(self, images: Tensor) -> Tensor:
            with torch.no_grad():
                values = self.conv1(images)
            scores: Tensor = self.head(self.conv2(values).mean((2, 3)))
            return scores

    network = seeded(Frozen)
    model = as_model(network)
    result = layer_gradient(model, prepared(model, noise), "conv1", AttributionTarget(2))
    output = network.conv1(noise).detach().requires_grad_()
    score = network.head(network.conv2(output).mean((2, 3)))[0, 2]
    (expected,) = torch.autograd.grad(score, output)
    np.testing.assert_allclose(result.gradient, expected[0], rtol=1e-4, atol=1e-7)


def test_nothing_keeps_a_pass_and_its_tensors(tiny: hookviz.Model, noise: Tensor) -> None:
    model_input = prepared(tiny, noise)
    result = GradientPass(tiny, model_input, AttributionTarget(1), ("conv1",), ignore)
    result.run(noise)
    kept = weakref.ref(result)
    del result
    assert kept() is None


def test_a_layer_in_inference_mode_has_no_gradient() -> None:
    class InInference(Tiny):
        def forward(self, images: Tensor) -> Tensor:
            with torch.inference_mode():
                maps = self.conv2(self.conv1(images)).flatten(2)  # a view
            scores: Tensor = self.head(maps.mean(-1).clone())
            return scores

    model, image = as_model(seeded(InInference)), random_input(0)
    for lens in ("effective-receptive-field", "gradients", "grad-cam"):
        with pytest.raises(hookviz.HookVizError, match=r"cuts the gradient|no gradient"):
            hookviz.run_lens(lens, model, image)


class Rectified(nn.Module):
    """The same network with ReLUs as modules or as functions, in place or not."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(3, 6, 3), nn.Conv2d(6, 6, 3), nn.Conv2d(6, 6, 3)])
        self.relus = nn.ModuleList([nn.ReLU(inplace=kind == "in place") for _ in range(3)])
        self.head = nn.Linear(6, 4)
        self.kind = kind

    def forward(self, images: Tensor) -> Tensor:
        values = images
        steps: dict[str, Callable[[Tensor], Tensor]] = {
            "F.relu": F.relu,
            "F.relu in place": F.relu_,
            "method": lambda maps: maps.relu_(),
        }
        for conv, relu in zip(self.convs, self.relus, strict=True):
            values = steps.get(self.kind, relu)(conv(values))
        scores: Tensor = self.head(values.mean((2, 3)))
        return scores


@pytest.mark.parametrize("kind", ["module", "in place", "F.relu", "F.relu in place", "method"])
def test_guided_backpropagation_agrees_with_captum(kind: str) -> None:
    import captum.attr  # noqa: PLC0415

    model = as_model(seeded(lambda: Rectified(kind)))
    image = random_input(5)
    result = input_gradient(model, prepared(model, image), AttributionTarget(3), guided=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # captum says that it sets hooks
        theirs = captum.attr.GuidedBackprop(seeded(lambda: Rectified("module")).eval())
        expected = theirs.attribute(image.clone().requires_grad_(), target=3)
    np.testing.assert_allclose(result.gradient, expected[0].detach(), rtol=1e-4, atol=1e-8)
    assert result.guided == 3
    plain = input_gradient(model, prepared(model, image), AttributionTarget(3))
    assert plain.guided == 0
    assert not np.allclose(plain.gradient, result.gradient)


def test_relu6_is_a_relu_and_tanh_is_none() -> None:
    for middle, count in ((nn.ReLU6(), 1), (nn.ReLU6(inplace=True), 1), (nn.Tanh(), 0)):
        network = nn.Sequential(nn.Conv2d(3, 4, 3), middle, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        model = as_model(network)
        model_input = prepared(model, random_input(0))
        result = input_gradient(model, model_input, AttributionTarget(1), guided=True)
        assert result.guided == count


@pytest.mark.parametrize("when", [0.0, 0.6])
def test_what_progress_raises_ends_the_pass_as_it_is(
    when: float, tiny: hookviz.Model, noise: Tensor
) -> None:
    class Cancelled(Exception):  # noqa: N818 - not an error
        pass

    shares = []

    def cancel(share: float) -> None:
        shares.append(share)
        if share > when:
            raise Cancelled

    with pytest.raises(Cancelled):
        input_gradient(tiny, prepared(tiny, noise), AttributionTarget(0), progress=cancel)
    assert when < shares[-1] <= when + 0.5
    assert hook_count(tiny.network) == 0


def test_a_network_that_cannot_be_differentiated_is_refused(noise: Tensor) -> None:
    class Spoilt(Tiny):
        def forward(self, images: Tensor) -> Tensor:
            values = torch.sigmoid(self.conv2(self.conv1(images)))
            values += 1  # and sigmoid's gradient is computed from what it put out
            scores: Tensor = self.head(values.mean((2, 3)))
            return scores

    model = as_model(seeded(Spoilt))
    with pytest.raises(hookviz.ModelError, match=r"can't be differentiated: .*inplace"):
        layer_gradient(model, prepared(model, noise), "conv1", AttributionTarget(0))
