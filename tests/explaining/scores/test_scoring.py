"""Scores of a batch; a class by its number or name, and what is said of one that is not there."""

import pytest
import torch

import hookviz
from hookviz.errors import SettingError
from hookviz.explaining.scores.scoring import class_number, class_scores, scores_in
from hookviz.hooking.forward_pass import private_replica
from hookviz.types import Model
from tests.networks import random_input


def test_every_image_has_its_scores(tiny: Model) -> None:
    images = torch.cat([random_input(seed) for seed in range(3)])
    with private_replica(tiny) as replica:
        scores = class_scores(tiny, replica, images).values
    assert torch.equal(scores, tiny.network(images))


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (torch.zeros(2, 4, 7, 7), "2×4×7×7"),
        (torch.zeros(2, 4), "2×4"),
        (torch.zeros(1, 4, dtype=torch.int64), "no tensor of floats"),
        ({"scores": "none"}, "no tensor of floats"),
        (None, "no tensor of floats"),
    ],
)
def test_what_is_no_score_per_class_is_named(tiny: Model, output: object, said: str) -> None:
    with pytest.raises(
        hookviz.ModelError, match=f"answers 1 image with {said}, which is no row of scores"
    ):
        scores_in(tiny, output, 1)


NAMES = ("circle", "square", "star")


@pytest.mark.parametrize(("value", "number"), [("star", 2), (1, 1), ("0", 0), (2.0, 2)])
def test_a_class_goes_by_number_or_name(value: object, number: int) -> None:
    assert class_number(value, NAMES, 3, "ours") == number


@pytest.mark.parametrize("value", [3, -1, True, None, "9" * 5000, float("nan"), float("inf")])
def test_a_number_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(SettingError, match=r"^target=.* is not a class of ours: 0 to 2\.$"):
        class_number(value, NAMES, 3, "ours")


def test_the_nearest_name_is_named() -> None:
    with pytest.raises(SettingError, match=r"ours knows no class 'stra'\. Did you mean 'star'\?"):
        class_number("stra", NAMES, 3, "ours")
