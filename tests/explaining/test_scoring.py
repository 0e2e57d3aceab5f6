import pytest
import torch

import hookviz
from hookviz.explaining.scoring import class_scores, scores_in
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
