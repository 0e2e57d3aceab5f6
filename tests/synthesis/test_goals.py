import pytest
import torch

import hookviz
from hookviz.language.speaking import speaking
from hookviz.synthesis.goals import Match, Objective, by_picture
from hookviz.types import Model

OUTPUT = torch.arange(24.0).reshape(2, 3, 4)  # (C, rows, columns)


@pytest.mark.parametrize(
    ("objective", "value"),
    [
        (Objective.of_channel("x", 1), 17.5),
        (Objective.of_channel("x", 1, (2, 3)), 23.0),
        (Objective.of_direction("x", {0: 2.0, 1: -1.0}), 2 * 5.5 - 17.5),
        (Objective("x"), float(OUTPUT.square().mean())),
    ],
)
def test_value(objective: Objective, value: float) -> None:
    assert float(objective.value(OUTPUT)) == pytest.approx(value)


def test_words_without_the_layer_and_names_of_classes_are_in_the_language_spoken(
    tiny: Model,
) -> None:
    with speaking("zh_CN"):
        assert Objective.of_channel("conv1", 3, (0, 2)).says_alone(tiny) == "通道 3，第 0 行第 2 列"
        model = hookviz.load_model("shapesnet", "random")
        assert Objective.of_class(3).says(model) == "星形的得分"
    assert Objective.of_class(2).says_alone(tiny) == "the score of class 2"
    assert Objective("conv1").says_alone(tiny) == "all of conv1"


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (Objective.of_channel("x", 2), "no channel 2 in layer 'x': it has 2, 0 to 1"),
        (Objective.of_channel("x", 0, (3, 0)), "no row 3"),
        (Objective.of_channel("x", 0, (0, -1)), "no column -1"),
        (Objective.of_class(9), "no class 9 in"),
        (Objective.of_direction("x", {0: 0.0}), "counts 0"),
    ],
)
def test_what_is_not_there_is_named(objective: Objective, message: str, tiny: Model) -> None:
    with pytest.raises(hookviz.SettingError, match=message):
        objective.check(tiny, OUTPUT.shape)


def test_distance_is_0_for_the_same_and_1_for_nothing() -> None:
    match = Match("x", OUTPUT)
    assert float(match.value(OUTPUT)) == 0
    assert float(match.value(torch.zeros_like(OUTPUT))) == pytest.approx(1)


SHAPE = (3, 16, 16)  # of each picture


def test_outputs_are_taken_picture_by_picture(tiny: Model) -> None:
    assert by_picture(tiny, "head", torch.ones(2, 5), 2, SHAPE).shape == (2, 5, 1, 1)
    assert by_picture(tiny, None, torch.ones(2, 5), 2, SHAPE).shape == (2, 5, 1, 1)
    assert by_picture(tiny, "conv1", torch.ones(4, 8, 8), 1, SHAPE).shape == (1, 4, 8, 8)
    for output in (torch.ones(3, 5), (torch.ones(2, 5),), torch.ones(2, 5).int()):
        with pytest.raises(hookviz.ModelError, match="for 2 pictures, and no maps for each"):
            by_picture(tiny, "conv1", output, 2, SHAPE)
