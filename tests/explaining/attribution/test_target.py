from typing import Any

import pytest
from torch import Tensor

import hookviz
from hookviz.explaining.attribution.gradients import layer_gradient
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.language.speaking import speaking
from tests.explaining.attribution.test_gradients import prepared


def test_its_description_names_class_channel_and_cell() -> None:
    model = hookviz.load_model("shapesnet", "random")
    assert AttributionTarget(3).describe(model) == "the score of star"
    assert AttributionTarget(99).describe(model) == "the score of class 99"
    with speaking("zh_CN"):
        assert AttributionTarget(3).describe(model) == "星形的得分"
    channel = AttributionTarget(layer="stem", channel=2)
    assert channel.describe(model) == "the mean of channel 2 of stem"
    cell = AttributionTarget(layer="stem", channel=2, cell=(4, 5))
    assert cell.describe(model) == "row 4, column 5 of channel 2 of stem"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"channel": 6}, "no channel 6 in layer 'conv2': it has 6, 0 to 5"),
        ({"cell": (7, 0)}, "no row 7 in layer 'conv2': it has 7, 0 to 6"),
        ({"cell": (0, -1)}, "no column -1"),
    ],
)
def test_channels_and_cells_that_a_layer_lacks_are_refused(
    asked: dict[str, Any], message: str, tiny: hookviz.Model, noise: Tensor
) -> None:
    target = AttributionTarget(layer="conv2", **asked)
    with pytest.raises(hookviz.SettingError, match=message):
        layer_gradient(tiny, prepared(tiny, noise), "conv1", target)
