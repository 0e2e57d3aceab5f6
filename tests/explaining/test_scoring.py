import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.capturing.inputs import prepare
from hookviz.explaining.scoring import class_scores, images_at_once, scores_in
from hookviz.hooking.forward_pass import private_replica
from hookviz.types import Model
from tests.networks import as_model, random_input, seeded


class Mixing(nn.Module):
    """Takes the mean of the batch off every image."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.conv(images - images.mean(0)).mean((2, 3))
        return scores


def test_every_image_has_its_scores(tiny: Model) -> None:
    images = torch.cat([random_input(seed) for seed in range(3)])
    with private_replica(tiny) as replica:
        scores = class_scores(tiny, replica, images)
    assert torch.equal(scores, tiny.network(images))


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (torch.zeros(2, 4, 7, 7), "for 1 image it gives 2×4×7×7, and not 1×classes"),
        (torch.zeros(2, 4), "gives 2×4"),
        (torch.tensor(1.0), "gives one number"),
        ({"scores": torch.zeros(1, 4)}, "gives no tensor"),
        (None, "gives no tensor"),
    ],
)
def test_what_is_no_score_per_class_is_named(tiny: Model, output: object, said: str) -> None:
    with pytest.raises(hookviz.ModelError, match=f"puts out no class scores: .*{said}"):
        scores_in(tiny, output, 1)


def test_images_go_together_only_where_they_are_apart(tiny: Model, noise: Tensor) -> None:
    for model, many in ((tiny, True), (as_model(seeded(Mixing)), False)):
        with private_replica(model) as replica:
            logits = class_scores(model, replica, noise)[0]
            assert (images_at_once(model, replica, prepare(model, noise), logits) > 1) == many
