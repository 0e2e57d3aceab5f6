import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz import MaximizationConfig, Objective
from hookviz.synthesis.optimizing import Optimization
from hookviz.types import Model
from tests.networks import as_model, seeded

SHORT = MaximizationConfig(size=32)


def test_pictures_rise_and_say_how_far(tiny: Model) -> None:
    told: list[float] = []
    result = hookviz.maximize_activation(
        tiny, Objective.of_class(2), steps=20, method=SHORT, progress=told.append
    )
    assert result.pictures[0].shape == (32, 32, 3)
    assert result.pictures[0].dtype == np.uint8
    assert result.history.shape == (20, 1)
    assert result.history[-1] > result.history[0]
    assert result.values[0] > result.history[0]
    assert told == pytest.approx([step / 20 for step in range(1, 21)])


def test_several_of_one_begin_with_seeds_in_order_and_go_on_as_if_done_at_once(
    tiny: Model,
) -> None:
    pair = hookviz.maximize_activation(
        tiny, Objective.of_class(0), steps=3, pictures=2, method=SHORT
    )
    alone = Optimization(tiny, [Objective.of_class(0)], SHORT, seeds=(1,))
    alone.run(3)
    assert len(pair.objectives) == 2
    assert not np.array_equal(pair.pictures[0], pair.pictures[1])
    far = np.abs(pair.pictures[1].astype(int) - alone.pictures()[0].astype(int))
    assert far.max() <= 2
    resumed = pair.resumed(6)
    whole = hookviz.maximize_activation(
        tiny, Objective.of_class(0), steps=6, pictures=2, method=SHORT
    )
    assert (pair.steps, resumed.steps) == (3, 6)
    np.testing.assert_array_equal(resumed.pictures, whole.pictures)


@pytest.mark.parametrize("steps", [0, 5000])
def test_steps_are_bounded(steps: int, tiny: Model) -> None:
    with pytest.raises(hookviz.SettingError, match="1 to 4096"):
        hookviz.maximize_activation(tiny, Objective.of_class(0), steps=steps, method=SHORT)


class Dead(nn.Module):
    """A ReLU that is never reached, behind a convolution that is."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.relu = nn.ReLU(inplace=True)
        self.root = nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        maps = self.conv(images)
        self.root(maps.sqrt())
        scores: Tensor = self.relu(maps - 1000).mean((2, 3))
        return scores


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (Objective.of_channel("relu", 1), "stays the same when the picture changes"),
        (Objective.of_channel("root", 1), "is no finite number here"),
    ],
)
def test_a_dead_end_is_told_with_a_layer_that_works(objective: Objective, message: str) -> None:
    model = as_model(seeded(Dead))
    with pytest.raises(hookviz.ModelError, match=f"{message}.*Layer 'conv' has one"):
        hookviz.maximize_activation(model, objective, steps=2, method=SHORT)
    assert (
        hookviz.maximize_activation(
            model, Objective.of_channel("conv", 1), steps=2, method=SHORT
        ).steps
        == 2
    )


def test_a_cut_gradient_is_told() -> None:
    class Detached(Dead):
        def forward(self, images: Tensor) -> Tensor:
            scores: Tensor = self.conv(images).detach().mean((2, 3))
            return scores

    model = as_model(seeded(Detached))
    with pytest.raises(hookviz.ModelError, match="no gradient gets from the score of class 1"):
        hookviz.maximize_activation(model, Objective.of_class(1), steps=2, method=SHORT)


def test_grey_networks_and_blocks_without_gradients() -> None:
    grey = hookviz.wrap(
        nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(2)),
        hookviz.Preprocess(32, 32, (0.5,), (0.5,)),
    )
    with torch.inference_mode():
        result = hookviz.maximize_activation(
            grey, Objective.of_channel("0", 1), steps=3, method=SHORT
        )
    assert result.pictures[0].shape == (32, 32, 3)
    with pytest.raises(hookviz.ModelError, match="answers 1 image with"):
        hookviz.maximize_activation(grey, Objective.of_class(0), steps=3, method=SHORT)
