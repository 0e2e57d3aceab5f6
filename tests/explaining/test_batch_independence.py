import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.explaining.batch_independence import (
    agree_within,
    batch_tolerance,
    half_and_whole,
    run_alone_and_batched,
)
from hookviz.hooking.forward_pass import ProgressReporter
from tests.networks import random_input


@pytest.mark.parametrize(
    ("whole", "apart"),
    [
        (torch.sin, True),
        (lambda images: images / images.amax((1, 2, 3), keepdim=True), True),
        (lambda images: images / images.amax(), False),
        (lambda images: images / images.mean(), False),
        (lambda images: images.softmax(0), False),
        (lambda images: images.sort(0).values, False),
        (lambda images: images.cumsum(0), False),
        (lambda images: images - images.median(), False),
        (lambda images: images * len(images), False),
        (lambda images: images.flatten(0, 1), True),
    ],
)
def test_whatever_is_taken_over_both_shows(whole: object, apart: bool) -> None:
    assert callable(whole)
    image = random_input(0)
    alone, together = run_alone_and_batched(half_and_whole(image), whole)
    assert torch.equal(alone, torch.cat([whole(image / 2), whole(image)]))
    assert agree_within(alone, together, 1e-6) == apart


def test_a_refused_batch_is_none_and_a_refused_image_is_said() -> None:
    def one_alone(images: Tensor) -> Tensor:
        if len(images) > 1:
            raise hookviz.ModelError("too many")
        return images

    alone, together = run_alone_and_batched(half_and_whole(random_input(0)), one_alone)
    assert together is None
    assert not agree_within(alone, together, 1)
    with pytest.raises(hookviz.ModelError, match="too many"):
        run_alone_and_batched(random_input(0), lambda images: one_alone(images[0]))


def test_what_the_caller_raises_comes_out() -> None:
    def stop(_share: float) -> None:
        raise hookviz.ModelError("enough")

    reporter = ProgressReporter(stop)

    def whole(images: Tensor) -> Tensor:
        if len(images) > 1:
            reporter.share(0.5)
        return images

    with pytest.raises(hookviz.ModelError, match="enough"):
        run_alone_and_batched(half_and_whole(random_input(0)), whole, reporter)


def test_rounding_is_a_share_of_the_largest_number_in_the_networks_precision() -> None:
    network = nn.Linear(2, 2)
    values = torch.tensor([1.0, -4.0, torch.nan, torch.inf])
    assert batch_tolerance(network, values) == pytest.approx(4 * 256 * 2**-23)
    assert batch_tolerance(network.double(), values) == pytest.approx(4 * 256 * 2**-52)
    assert batch_tolerance(network.bfloat16(), values) == pytest.approx(4 * 0.02)
    assert batch_tolerance(network, values[2:]) == 0
