"""Goals that are a person's own function of layers' outputs, and what is wrong with some."""

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz import FunctionObjective, Objective, SynthesisMethod
from hookviz.synthesis.optimizing import Optimization
from hookviz.synthesis.robustness import NONE
from hookviz.types import Model
from tests.networks import as_model, seeded
from tests.synthesis.networks import SIDE, normalised

SHORT = SynthesisMethod(size=32)
STILL = SynthesisMethod(size=SIDE, robustness=NONE)
Outputs = Mapping[str | None, Tensor]


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
    up = hookviz.maximize(tiny, goal, steps=60, method=STILL)
    down = hookviz.maximize(
        tiny,
        FunctionObjective(goal.layers, contrast, rises=False),
        steps=60,
        method=STILL,
    )
    assert up.history[-1] > up.history[0] > down.history[-1]
    both = 2 * goal - Objective.of_class(1)
    assert both.layers == ("conv1", "conv2", None)
    assert both.says(tiny) == "2 × the goal 'contrast' − the score of class 1"
    made = hookviz.maximize(tiny, both, steps=15, method=SHORT)
    assert made.history[-1] > made.history[0]


def test_scores_and_one_name_will_do(tiny: Model) -> None:
    alone = FunctionObjective("conv2", lambda outputs: outputs["conv2"].mean(), "all of it")
    assert (alone.layers, alone.says(tiny)) == (("conv2",), "the goal 'all of it'")
    scores = FunctionObjective(None, lambda outputs: outputs[None][1, 0, 0])
    by_function = hookviz.maximize(tiny, scores, steps=3, method=SHORT)
    by_class = hookviz.maximize(tiny, Objective.of_class(1), steps=3, method=SHORT)
    assert by_function.values == pytest.approx(by_class.values, rel=1e-4)


def whole_map(outputs: Outputs) -> Tensor:
    return outputs["conv2"][0]


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (whole_map, hookviz.SettingError, r"'whole_map' returns \d+×\d+ numbers, and one is"),
        (lambda seen: seen["conv2"].sum().item(), hookviz.SettingError, "returns float"),
        (lambda seen: seen["conv2"].argmax(), hookviz.SettingError, "type int64"),
        (lambda seen: seen["conv2"].nix(), hookviz.SettingError, "fails: AttributeError"),
        (
            lambda seen: seen["conv2"][99].mean(),
            hookviz.SettingError,
            "fails: IndexError: index 99",
        ),
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
        hookviz.maximize(tiny, goal, steps=2, method=SHORT)
    assert not any(each._forward_hooks for each in tiny.network.modules())


def test_layers_that_are_not_there_are_named_with_the_nearest(tiny: Model) -> None:
    goal = FunctionObjective(["conv1", "cnov2"], contrast)
    with pytest.raises(hookviz.UnknownLayerError, match="'conv2'"):
        hookviz.maximize(tiny, goal, steps=2, method=SHORT)


class Calling(nn.Module):
    """Calls its ReLU as a function, which is no layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, images: Tensor) -> Tensor:
        return torch.relu(self.conv(images)).mean((2, 3))


def test_a_function_of_the_network_s_code_is_told_from_a_layer() -> None:
    goal = Objective.of_channel("conv", 1) - Objective.of_channel("relu() after conv", 1)
    with pytest.raises(hookviz.SettingError, match="is a function in the network's code"):
        hookviz.maximize(as_model(seeded(Calling)), goal, steps=2, method=SHORT)


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
