"""Integrated gradients: attribute a target's change from a baseline to the input to each pixel.

Sundararajan, Taly and Yan, "Axiomatic Attribution for Deep Networks" (2017).
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hookviz.explaining.attribution.batched_passes import iter_target_gradients, iter_target_values
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.types import Model, ModelInput, Progress

Floats = NDArray[np.float64]
NEAR = 0.01  # of the difference, below which the sum is taken to be complete
_STEPS = 10  # the advised number of steps is rounded up to a multiple of these
_MARGIN = (
    1.25  # by which the advised number is more than an error that falls as 1/steps would ask for
)


@dataclass(frozen=True, eq=False, slots=True)
class IntegratedGradients:
    """Attribution of a target to every number of an input, by integrated gradients.

    Attributes:
        attribution: float64 ``(C, H, W)``; its sum is ``value − start``, but for the error.
        value: F(x), the target of the input.
        start: F(x′), that of the baseline.
        steps: at how many points of the path the gradient was taken.
    """

    attribution: Floats = field(repr=False)
    value: float
    start: float
    steps: int

    @property
    def difference(self) -> float:
        """F(x) − F(x′), which the attributions should add up to (completeness)."""
        return self.value - self.start

    @property
    def error(self) -> float:
        """How far the attributions are off: ``|Σ attribution − difference| / |difference|``."""
        return completeness_error(self.attribution, self.difference)

    @property
    def is_complete(self) -> bool:
        """Whether the error is within 1 %."""
        return self.error <= NEAR

    @property
    def enough_steps(self) -> int | None:
        """Number of steps that should do for 1 %; None where no number would.

        The gradient of a network of ReLUs jumps along the path, so that no rule's error falls
        faster than about 1 / steps.
        """
        if not np.isfinite(self.error):
            return None
        wanted = _MARGIN * self.steps * self.error / NEAR
        return max(self.steps, _STEPS * int(-(-wanted // _STEPS)))


def gauss_legendre(steps: int) -> tuple[Floats, Floats]:
    """Return the points of the Gauss-Legendre rule on 0…1 and their weights, ``(steps,)`` each."""
    points, weights = np.polynomial.legendre.leggauss(steps)
    return (points + 1) / 2, weights / 2


def completeness_error(attribution: Floats, difference: float) -> float:
    """Return by which share of the difference the sum of the attributions is off."""
    off = abs(float(attribution.sum()) - difference)
    if off == 0:
        return 0.0
    return off / abs(difference) if difference else float("inf")


def integrated_gradients(
    model: Model,
    model_input: ModelInput,
    target: AttributionTarget,
    baseline: Tensor,
    *,
    steps: int,
    progress: Progress,
) -> IntegratedGradients:
    """Integrate the target's gradients along the straight path from the baseline to the input.

    ``(x − x′) · Σ_i w_i ∂F/∂x (x′ + α_i (x − x′))`` with the points α and the weights w of the
    Gauss-Legendre rule on 0…1, as captum's default has it. Equal steps come out worse: what the
    network computes changes fastest near the baseline, where this rule has more points.

    Args:
        model: the model.
        model_input: the input x, ``(1, C, H, W)``.
        target: F.
        baseline: x′, ``(1, C, H, W)``.
        steps: how many points.
        progress: called with the share done; what it raises ends the run.

    Raises:
        HookVizError: as `iter_target_gradients` does.
    """
    image = model_input.tensor
    points, weights = gauss_legendre(steps)
    alphas = torch.from_numpy(points).to(image.dtype).view(-1, *[1] * (image.ndim - 1))
    path = image - baseline

    def on_path(start: int, stop: int) -> Tensor:
        return baseline + alphas[start:stop] * path

    total = torch.zeros(image.shape[1:], dtype=torch.float64)
    ends = steps / (steps + 1)  # the share of the time before the values at both ends
    batches = iter_target_gradients(
        model,
        model_input,
        target,
        on_path,
        count=steps,
        progress=lambda share: progress(share * ends),
    )
    for batch in batches:
        shares = torch.from_numpy(weights[batch.start : batch.start + len(batch.values)])
        total += torch.einsum("n,n...->...", shares, batch.gradients.double())
    both = torch.cat([image, baseline])
    values = iter_target_values(
        model,
        model_input,
        target,
        lambda start, stop: both[start:stop],
        count=2,
        progress=lambda share: progress(ends + share * (1 - ends)),
    )
    value, at_baseline = torch.cat([batch.values for batch in values]).tolist()
    return IntegratedGradients((total * path[0].double()).numpy(), value, at_baseline, steps)
