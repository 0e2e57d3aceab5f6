"""Find the devices of this machine on which networks can compute, and refuse the others."""

import torch

from hookviz.errors import ModelError, shorten
from hookviz.language.saying import joined, say


def list_devices() -> tuple[str, ...]:
    """List the devices that can compute networks, fastest first; ``"cpu"`` is always the last."""
    cuda = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    mps = ["mps"] if torch.backends.mps.is_available() else []
    return (*cuda, *mps, "cpu")


def find_device(name: str | torch.device, *, half: bool = False) -> torch.device:
    """Return the device called `name`; ``"auto"`` is the fastest, ``"cuda"`` the first GPU.

    Raises:
        ModelError: it is not there, or can't compute in half precision where that is asked for.
    """
    devices = list_devices()
    name = str(name)
    plain = name.strip().casefold()
    device = {"auto": devices[0], "cuda": "cuda:0", "gpu": devices[0]}.get(plain, plain)
    if device not in devices or (plain == "gpu" and device == "cpu"):
        raise ModelError(
            say(
                "There is no device {name!r} here; there is {devices} (auto takes "
                "{automatic_device}).",
                name=shorten(name),
                devices=joined(devices),
                automatic_device=devices[0],
            )
        )
    if half and device == "cpu":
        raise ModelError(
            say(
                "Half precision is for GPUs: on the CPU it is slower than full precision and "
                "less exact. Leave it out, or choose another device; there is {devices}.",
                devices=joined(devices),
            )
        )
    return torch.device(device)
