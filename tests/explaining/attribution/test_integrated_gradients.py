import warnings

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.explaining.attribution.baselines import BASELINES, baseline_of
from hookviz.explaining.attribution.integrated_gradients import (
    IntegratedGradients,
    integrated_gradients,
)
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.images.samples import samples
from hookviz.types import ignore
from tests.networks import as_model, random_input, seeded
from tests.pictures import picture


@pytest.mark.parametrize("baseline", BASELINES)
def test_it_agrees_with_captum(baseline: str) -> None:
    import captum.attr  # noqa: PLC0415

    model = hookviz.load_model("shapesnet")
    model_input = hookviz.prepare(model, picture(), size=64)
    start = baseline_of(model, model_input, baseline)
    result = integrated_gradients(
        model, model_input, AttributionTarget(2), start, steps=50, progress=ignore
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, delta = captum.attr.IntegratedGradients(model.network).attribute(
            model_input.tensor, start, target=2, n_steps=50, return_convergence_delta=True
        )
    expected = theirs[0].numpy()
    atol = 1e-5 * np.abs(expected).max()
    np.testing.assert_allclose(result.attribution, expected, rtol=1e-3, atol=atol)
    assert np.corrcoef(result.attribution.flat, expected.flat)[0, 1] > 0.9999
    error = abs(float(delta)) / abs(result.difference)
    assert result.error == pytest.approx(error, abs=1e-5)


class Square(nn.Module):
    """One score: the sum of the squares of the input."""

    def __init__(self) -> None:
        super().__init__()
        self.same = nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        total: Tensor = self.same(images).square().sum((1, 2, 3))
        return total[:, None]


@pytest.mark.parametrize("steps", [1, 2, 33])
def test_of_a_sum_of_squares_it_is_exact_at_any_number_of_steps(steps: int) -> None:
    # Gauss-Legendre with one point is exact for the straight line that the gradient is.
    model, image = as_model(Square()), random_input(0)
    made, start = hookviz.prepare(model, image), torch.full_like(image, 0.5)
    result = integrated_gradients(
        model, made, AttributionTarget(0), start, steps=steps, progress=ignore
    )
    np.testing.assert_allclose(result.attribution, image[0].square() - 0.25, atol=1e-5)
    assert result.value == pytest.approx(float(image.square().sum()), rel=1e-6)
    assert result.start == pytest.approx(0.25 * image.numel(), rel=1e-6)
    assert result.is_complete


def test_at_the_advised_number_of_steps_a_photograph_is_complete() -> None:
    model = hookviz.load_model("squeezenet")
    coffee = next(one.path for one in samples() if one.name == "coffee")
    model_input = hookviz.prepare(model, coffee, size=96)
    start = torch.zeros_like(model_input.tensor)
    target = int(model.network(model_input.tensor).argmax())

    def at(steps: int) -> IntegratedGradients:
        return integrated_gradients(
            model, model_input, AttributionTarget(target), start, steps=steps, progress=ignore
        )

    few = at(6)
    assert not few.is_complete
    assert few.enough_steps is not None
    assert few.enough_steps > 6
    assert at(few.enough_steps).is_complete


def test_without_a_difference_there_is_no_share_of_it() -> None:
    class Constant(Square):
        def forward(self, images: Tensor) -> Tensor:
            return super().forward(images).cos() * 0 + 3

    model, image = as_model(seeded(Constant)), random_input(0)
    result = integrated_gradients(
        *(model, hookviz.prepare(model, image), AttributionTarget(0), torch.zeros_like(image)),
        steps=3,
        progress=ignore,
    )
    assert (result.value, result.start, result.error) == (3, 3, 0)
    off = IntegratedGradients(np.ones((1, 2, 2)), 3.0, 3.0, 5)
    assert (off.error, off.enough_steps, off.is_complete) == (float("inf"), None, False)
