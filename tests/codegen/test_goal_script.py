"""Scripts of goals of one's own are run without HookViz, and their pictures compared."""

import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import hookviz
from hookviz import FunctionObjective, MaximizationConfig, Objective
from hookviz.codegen.goal_script import goal_script
from hookviz.images.samples import samples
from hookviz.models.bundled import BUNDLED
from hookviz.synthesis.maximizing import AnyObjective
from hookviz.synthesis.settings import NONE
from tests.codegen.bare_python import bare_python, in_ruffs_order

Outputs = Mapping[str | None, Tensor]
DEEP = Objective.of_channel("stage3.second.conv", 5, cell=(2, 2))
FIRST = Objective.of_channel("stem.first.conv", 3)


def corner(outputs: Outputs) -> Tensor:
    """The upper left of two maps of one layer, apart."""
    maps: Tensor = outputs["stage2.second.conv"]
    far = (maps[3] - maps[5])[:4, :4].square().mean()
    return far - math.sqrt(2) * torch.relu(maps[0]).mean()


CASES: dict[str, tuple[str, AnyObjective | list[AnyObjective], MaximizationConfig, int]] = {
    "sum": ("shapesnet", DEEP / 3 - 0.5 * FIRST + Objective.of_class(1), MaximizationConfig(64), 1),
    "function": (
        "shapesnet",
        FunctionObjective(["stage2.second.conv"], corner, rises=False),
        MaximizationConfig(64, seed=3, robustness=NONE, rate=0.5),
        1,
    ),
    "costs": (
        "shapesnet",
        2 * FunctionObjective(["stage2.second.conv"], corner) - FIRST,
        MaximizationConfig(64, penalty="total variation", strength=2.5, diversity=4.0),
        2,
    ),
    "tokens": (
        "shapesvit",
        [
            Objective("blocks.1") + Objective.of_class(2),
            Objective.of_class(3) - Objective("blocks.1"),
        ],
        MaximizationConfig(None, space="MACO", penalty="L2"),
        1,
    ),
}


@pytest.fixture(scope="module")
def run_script() -> Iterator[Callable[[Path], None]]:
    with bare_python() as run:
        yield run


@pytest.mark.parametrize("case", CASES)
def test_a_script_makes_the_same_pictures(
    case: str, tmp_path: Path, run_script: Callable[[Path], None]
) -> None:
    network, goal, method, pictures = CASES[case]
    made = hookviz.maximize_activation(
        hookviz.load_model(network), goal, steps=3, pictures=pictures, method=method
    )
    assert hookviz.save_script(made, tmp_path / "script.py") == tmp_path / "script.py"
    weights = BUNDLED[network].weights_file
    for file in (weights, *(each.path for each in samples() if each.kind == "photo")):
        (tmp_path / file.name).symlink_to(file)
    run_script(tmp_path)
    assert not (tmp_path / "error.txt").exists(), (tmp_path / "error.txt").read_text()
    for number, ours in enumerate(made.pictures):
        with Image.open(tmp_path / f"goal-{number}.png") as theirs:
            far = np.abs(np.array(theirs).astype(int) - ours.astype(int))
        assert far.max() <= 3, (case, number, far.max())
    in_ruffs_order(tmp_path)


LEVEL = 2.0


def beside(outputs: Outputs) -> Tensor:
    return outputs["conv2"].mean() * LEVEL


def other(name: str) -> Any:
    def beside(outputs: Outputs) -> Tensor:
        return outputs["conv2"].square().mean()

    beside.__name__ = name
    return beside


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda outputs: outputs["conv2"].mean(), "write it with def"),
        (torch.nn.Identity(), "'Identity' can't stand in a script"),
        (beside, 'uses "LEVEL", which a script would not have'),
    ],
)
def test_a_function_that_a_script_can_not_have_is_refused(
    function: Any, message: str, tiny: hookviz.Model
) -> None:
    def followed(outputs: Outputs) -> Tensor:
        return outputs["conv2"].mean()

    method = MaximizationConfig(32)
    goal = FunctionObjective("conv2", followed)
    made = hookviz.maximize_activation(tiny, goal, steps=1, method=method)
    assert "def followed(outputs):\n    return" in goal_script(made)
    object.__setattr__(goal, "function", function)
    with pytest.raises(hookviz.SettingError, match=message):
        goal_script(made)


def test_two_functions_of_one_name_and_a_file_of_another_kind_are_refused(
    tiny: hookviz.Model, tmp_path: Path
) -> None:
    goals = [FunctionObjective("conv2", other("one")), FunctionObjective("conv2", other("one"))]
    made = hookviz.maximize_activation(tiny, goals, steps=1, method=MaximizationConfig(32))
    with pytest.raises(hookviz.SettingError, match="Two goals are called 'one'"):
        goal_script(made)
    with pytest.raises(hookviz.SettingError, match=r"\.py"):
        hookviz.save_script(made, tmp_path / "goal.txt")
