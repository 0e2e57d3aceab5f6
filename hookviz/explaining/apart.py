"""Whether a network keeps the rows of a batch apart, so that inputs may go through it together."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from hookviz.errors import ModelError
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.hooking.precision import device_and_dtype

_SLACK = 4  # the largest difference of all values of a map is looked for


def halved(image: Tensor) -> Tensor:
    """Half of an input and the input itself, ``(2, C, H, W)``.

    Nearly every number that a network takes over a whole batch, such as its largest, is another
    one for the two together than for the half alone.
    """
    return torch.cat([image / 2, image])


def alone_and_together(
    images: Tensor, whole: Callable[[Tensor], Tensor], reporter: ProgressReporter | None = None
) -> tuple[Tensor, Tensor | None]:
    """What each of some inputs has in a pass of its own, and what they have in one batch.

    Args:
        images: ``(N, C, H, W)``.
        whole: what a pass on a replica of its own makes of such a batch, ``(N, …)``.
        reporter: through which the caller may end a pass.

    Returns:
        both ``(N, …)``; None for the second where the network can't take the batch.

    Raises:
        ModelError: it can't take one of them alone.
    """
    alone = torch.cat([whole(image[None]) for image in images])
    try:
        return alone, whole(images)
    except ModelError as error:
        if reporter is not None and reporter.was_ended_by(error):
            raise
        return alone, None  # made for one image; what else is wrong shows with one, too


def are_near(alone: Tensor, together: Tensor | None, rounding: float) -> bool:
    """Whether two results are there and differ by rounding, NaN and infinities in nothing."""
    return (
        together is not None
        and alone.shape == together.shape
        and torch.allclose(together, alone, rtol=0, atol=_SLACK * rounding, equal_nan=True)
    )


def rounding(network: nn.Module, values: Tensor) -> float:
    """Below this, values of two passes differ by rounding alone, which no two batches share."""
    device, dtype = device_and_dtype(network)
    epsilon = torch.finfo(dtype).eps
    if device.type == "cuda" and dtype == torch.float32 and torch.backends.cudnn.allow_tf32:
        epsilon = 2.0**-16  # its products have ten bits: two passes are some 1e-3 apart
    finite = values[values.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    return min(256 * epsilon, 0.02) * largest
