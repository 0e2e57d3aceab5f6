"""Sums of goals over several layers: their numbers, words and gradients, beside torch alone."""

import copy
from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

import hookviz
from hookviz import FunctionObjective, MaximizationConfig, Objective, ObjectiveSum
from hookviz.synthesis.optimizing import Optimization
from hookviz.synthesis.settings import NONE
from hookviz.types import Model
from tests.networks import Tiny, as_model, seeded
from tests.synthesis.networks import SIDE, normalised

STILL = MaximizationConfig(size=SIDE, robustness=NONE)
A, B = Objective.of_channel("conv1", 1), Objective.of_channel("conv2", 5, cell=(0, 2))
FIRST, SECOND = torch.arange(24.0).reshape(2, 3, 4), torch.arange(60.0).reshape(6, 2, 5) ** 2


SHORT = MaximizationConfig(size=32)
Outputs = Mapping[str | None, Tensor]


@pytest.mark.parametrize(
    ("goal", "value"),
    [
        (A + B, 17.5 + 52.0**2),
        (B * 0.5 - 2 * A, 0.5 * 52.0**2 - 2 * 17.5),
        (-(A - B) / 2, (52.0**2 - 17.5) / 2),
        (A + Objective.of_channel("conv1", 0) - B, 17.5 + 5.5 - 52.0**2),
        (A + Objective("conv2", ((5, 1.0),), (0, 2), rises=False), 17.5 - 52.0**2),
    ],
)
def test_value(goal: ObjectiveSum, value: float) -> None:
    outputs = {"conv1": FIRST, "conv2": SECOND}
    of_each = [outputs[str(layer)] for layer in goal.layers]
    assert float(goal.value(*of_each)) == pytest.approx(value)


def test_words_and_layers(tiny: Model) -> None:
    goal = B - 0.5 * A + Objective.of_class(2)
    assert goal.layers == ("conv2", "conv1", None)
    assert goal.says(tiny) == (
        "channel 5 of conv2, row 0, column 2 − 0.5 × channel 1 of conv1 + the score of class 2"
    )
    assert goal == B + -0.5 * A + Objective.of_class(2)
    assert {goal: "can be a key"}


class InPlace(Tiny):
    """Code that writes over what the first convolution put out."""

    def forward(self, images: Tensor) -> Tensor:
        maps = self.conv2(self.conv1(images).relu_()).relu()
        scores: Tensor = self.head(maps.mean((2, 3)))
        return scores


def test_a_step_follows_the_gradient_that_torch_finds_by_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The goal's gradient with respect to the network's input, and the step that comes of it."""
    network = seeded(InPlace)
    model = as_model(network)
    goal = 2 * B - A + 0.25 * Objective.of_class(1)
    optimization = Optimization(model, [goal], STILL)
    begun = optimization.tensor()
    followed: list[Tensor] = []
    find = optimization._gradient

    def noted(loss: Tensor) -> Tensor | None:
        gradient = find(loss)
        assert gradient is not None
        followed.append(gradient.clone())
        return gradient

    monkeypatch.setattr(optimization, "_gradient", noted)
    optimization.run(1)

    by_hand = copy.deepcopy(network)
    inputs = normalised(begun, model).requires_grad_()
    first = by_hand.conv1(inputs)
    second = by_hand.conv2(first.relu())
    scores = by_hand.head(second.relu().mean((2, 3)))
    value = 2 * second[0, 5, 0, 2] - first[0, 1].mean() + 0.25 * scores[0, 1]
    assert optimization.history[0][0] == pytest.approx(value.item(), rel=1e-5)
    (gradient,) = torch.autograd.grad(value, [inputs])

    # the same gradient, handed on to the waves that the picture is made of, and one step of Adam
    again = Optimization(model, [goal], STILL)
    parameters = again._space.parameters
    seen = normalised(again._space.pictures(), model)
    spreads = [each.flatten().std(correction=0).item() for each in (second, first, scores)]
    unit = 2 * spreads[0] + spreads[1] + 0.25 * spreads[2]
    (of_waves,) = torch.autograd.grad(seen, [parameters], -gradient / unit)
    torch.testing.assert_close(followed[0], of_waves, rtol=1e-3, atol=1e-7)
    adam = torch.optim.Adam([parameters], lr=again._space.rate, eps=1e-16)
    parameters.grad = of_waves
    adam.step()
    torch.testing.assert_close(optimization.tensor(), again.tensor(), rtol=0, atol=2e-3)
    assert not torch.allclose(optimization.tensor(), begun, atol=0.01)


def test_several_pictures_penalties_and_diversity_go_with_several_layers(tiny: Model) -> None:
    method = MaximizationConfig(size=32, penalty="L2", diversity=5.0)
    pair = hookviz.maximize_activation(tiny, B - A, steps=3, pictures=2, method=method)
    one = Optimization(tiny, [B - A], MaximizationConfig(size=32, penalty="L2"))
    one.run(1)
    assert pair.history.shape == (3, 2)
    assert pair.history[0, 0] == pytest.approx(one.history[0][0], rel=1e-4)
    assert pair.resumed(5).steps == 5


@pytest.mark.parametrize(
    ("goal", "error", "message"),
    [
        (A - Objective.of_channel("conv3", 0), hookviz.UnknownLayerError, "conv2"),
        (A - Objective.of_channel("conv2", 6), hookviz.SettingError, "it has 6, 0 to 5"),
        (0 * A + 0 * B, hookviz.SettingError, "counts 0"),
        ([A + B, A + A], hookviz.SettingError, "of one layer, or"),
    ],
)
def test_what_can_not_be_is_named(
    goal: ObjectiveSum, error: type[Exception], message: str, tiny: Model
) -> None:
    with pytest.raises(error, match=message):
        hookviz.maximize_activation(tiny, goal, steps=2, method=MaximizationConfig(size=32))


def test_only_goals_and_numbers_compose() -> None:
    for compose in (lambda: A + 1, lambda: A - None, lambda: A * "2", lambda: A * B):  # type: ignore[operator]
        with pytest.raises(hookviz.SettingError, match=r"only other goals|is none"):
            compose()
    with pytest.raises(hookviz.SettingError, match="nan times"):
        A * float("nan")
    with pytest.raises(hookviz.SettingError, match="divided by 0"):
        A / 0


def contrast(outputs: Outputs) -> Tensor:
    return outputs["conv2"][5].max() - (outputs["conv1"][0] * outputs["conv1"][1]).mean()


def test_any_function_of_several_layers_is_followed_as_torch_does_it(tiny: Model) -> None:
    goal = FunctionObjective(["conv1", "conv2"], contrast)
    optimization = Optimization(tiny, [goal], STILL)
    begun, network = optimization.tensor(), tiny.network
    optimization.run(1)
    first: Tensor = network.conv1(normalised(begun, tiny))  # type: ignore[operator]
    second: Tensor = network.conv2(first.relu())  # type: ignore[operator]
    by_hand = contrast({"conv1": first[0], "conv2": second[0]})
    assert optimization.history[0][0] == pytest.approx(by_hand.item(), rel=1e-4)


def test_it_rises_falls_and_composes_with_units(tiny: Model) -> None:
    goal = FunctionObjective(("conv1", "conv2"), contrast)
    up = hookviz.maximize_activation(tiny, goal, steps=60, method=STILL)
    down = hookviz.maximize_activation(
        tiny,
        FunctionObjective(goal.layers, contrast, rises=False),
        steps=60,
        method=STILL,
    )
    assert up.history[-1] > up.history[0] > down.history[-1]
    both = 2 * goal - Objective.of_class(1)
    assert both.layers == ("conv1", "conv2", None)
    assert both.says(tiny) == "2 × the goal 'contrast' − the score of class 1"
    made = hookviz.maximize_activation(tiny, both, steps=15, method=SHORT)
    assert made.history[-1] > made.history[0]


def test_scores_and_one_name_will_do(tiny: Model) -> None:
    alone = FunctionObjective("conv2", lambda outputs: outputs["conv2"].mean(), "all of it")
    assert (alone.layers, alone.says(tiny)) == (("conv2",), "the goal 'all of it'")
    scores = FunctionObjective(None, lambda outputs: outputs[None][1, 0, 0])
    by_function = hookviz.maximize_activation(tiny, scores, steps=3, method=SHORT)
    by_class = hookviz.maximize_activation(tiny, Objective.of_class(1), steps=3, method=SHORT)
    assert by_function.values == pytest.approx(by_class.values, rel=1e-4)


def whole_map(outputs: Outputs) -> Tensor:
    return outputs["conv2"][0]


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (whole_map, hookviz.SettingError, r"'whole_map' returns \d+×\d+ numbers, and one is"),
        (lambda seen: seen["conv2"].sum().item(), hookviz.SettingError, "returns float"),
        (lambda seen: seen["conv2"].argmax(), hookviz.SettingError, "type int64"),
        (lambda seen: seen["conv2"][99].mean(), hookviz.SettingError, "fails: IndexError: index"),
        (lambda seen: seen["cnov2"].mean(), hookviz.UnknownNameError, "'cnov2'.*'conv2'"),
        (lambda seen: seen["conv2"].mean() * float("nan"), hookviz.ModelError, "no finite number"),
        (lambda seen: seen["conv2"].detach().mean(), hookviz.ModelError, "not depend on the pict"),
        (lambda _: torch.tensor(1.0), hookviz.ModelError, "does not depend on the picture"),
        (lambda seen: seen["conv2"].mean() * 0, hookviz.ModelError, "stays the same when the pic"),
    ],
)
def test_a_goal_that_can_not_be_followed_says_why(
    function: Any, error: type[Exception], message: str, tiny: Model
) -> None:
    goal = FunctionObjective(["conv2"], function)
    with pytest.raises(error, match=message):
        hookviz.maximize_activation(tiny, goal, steps=2, method=SHORT)
    assert not any(each._forward_hooks for each in tiny.network.modules())


class Calling(Tiny):
    """Calls its ReLU as a function, which is no layer."""

    def forward(self, images: Tensor) -> Tensor:
        return torch.relu(self.conv1(images)).mean((2, 3))


def test_a_function_of_the_network_s_code_is_told_from_a_layer() -> None:
    goal = Objective.of_channel("conv1", 1) - Objective.of_channel("relu() after conv1", 1)
    with pytest.raises(hookviz.SettingError, match="is a function in the network's code"):
        hookviz.maximize_activation(as_model(seeded(Calling)), goal, steps=2, method=SHORT)


@pytest.mark.parametrize(
    ("layers", "function", "message"),
    [
        ([], contrast, "needs a layer"),
        (7, contrast, "needs a layer"),
        (["conv1", 7], contrast, "7 is no name"),
        (["conv1"], "contrast", "can't be called"),
    ],
)
def test_what_is_no_goal_is_refused_at_once(layers: Any, function: Any, message: str) -> None:
    with pytest.raises(hookviz.SettingError, match=message):
        FunctionObjective(layers, function)
