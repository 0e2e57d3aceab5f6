"""Find out whether a network treats the rows of a batch independently, so inputs may share one."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from hookviz.errors import ModelError
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.hooking.precision import device_and_dtype

_SLACK = 4  # times the tolerance, as the largest difference over a whole map counts


def half_and_whole(image: Tensor) -> Tensor:
    """Stack half of an input and the input itself, ``(2, C, H, W)``.

    Nearly every number that a network takes over a whole batch, such as its largest, is another
    one for the two together than for the half alone.
    """
    return torch.cat([image / 2, image])


def run_alone_and_batched(
    images: Tensor, run: Callable[[Tensor], Tensor], reporter: ProgressReporter | None = None
) -> tuple[Tensor, Tensor | None]:
    """Run inputs each in a pass of its own, and all in one batch.

    Args:
        images: ``(N, C, H, W)``.
        run: runs such a batch and returns ``(N, …)``.
        reporter: through which the caller may end a pass.

    Returns:
        both results, ``(N, …)``; None for the second where the network can't take the batch.

    Raises:
        ModelError: it can't take one of them alone.
    """
    alone = torch.cat([run(image[None]) for image in images])
    try:
        return alone, run(images)
    except ModelError as error:
        if reporter is not None and reporter.was_ended_by(error):
            raise
        return alone, None  # made for one image; what else is wrong shows with one, too


def agree_within(alone: Tensor, together: Tensor | None, tolerance: float) -> bool:
    """Return whether two results agree within rounding; NaN and infinities have to be the same."""
    return (
        together is not None
        and alone.shape == together.shape
        and torch.allclose(together, alone, rtol=0, atol=_SLACK * tolerance, equal_nan=True)
    )


def batch_tolerance(network: nn.Module, values: Tensor) -> float:
    """Return by how much values may differ through rounding between batches of different sizes."""
    device, dtype = device_and_dtype(network)
    epsilon = torch.finfo(dtype).eps
    if device.type == "cuda" and dtype == torch.float32 and torch.backends.cudnn.allow_tf32:
        epsilon = 2.0**-16  # its products have ten bits: two passes are some 1e-3 apart
    finite = values[values.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    return min(256 * epsilon, 0.02) * largest
