"""Choose the device that the app's networks run on, and bound the memory they take on a GPU."""

import logging
from functools import cache

import torch

from hookviz.errors import ModelError
from hookviz.machine.memory import MEGABYTE
from hookviz.models.loading import find_device
from hookviz.settings import settings

_log = logging.getLogger("hookviz")


@cache
def serving_device() -> torch.device:
    """Return the device of `HOOKVIZ_DEVICE`, or the CPU with a warning where it is missing.

    On a CUDA device, PyTorch's allocator gets at most `HOOKVIZ_GPU_MB`: a run that needs more is
    refused as one that needs more memory than the machine has.

    >>> serving_device()
    device(type='cpu')
    """
    chosen = settings()
    try:
        device = find_device(chosen.device)
    except ModelError as error:
        _log.warning("%s The app computes on the CPU.", error)
        return torch.device("cpu")
    if device.type == "cuda" and chosen.gpu_mb:
        total = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(
            min(1.0, chosen.gpu_mb * MEGABYTE / total), device
        )
    return device


def gpu_bytes() -> tuple[int, int]:
    """Return the bytes of the GPU's memory that this process has reserved, and may reserve.

    Both are 0 where the app computes on another device.
    """
    device = serving_device()
    if device.type != "cuda":
        return 0, 0
    total = torch.cuda.get_device_properties(device).total_memory
    limit = settings().gpu_mb * MEGABYTE or total
    return torch.cuda.memory_reserved(device), min(limit, total)
