"""Put the global generators of random numbers back: torch's, Python's and NumPy's."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from hookviz.hooking.shared_block import SharedBlock


def generators() -> tuple[Any, ...]:
    """Return the state of the global random generators, to be compared or restored."""
    name, keys, *position = np.random.get_state(legacy=True)
    devices = torch.cuda.get_rng_state_all() if torch.cuda._initialized else []
    states = [torch.get_rng_state(), *devices]
    return (
        tuple(state.numpy().tobytes() for state in states),
        random.getstate(),
        (name, np.asarray(keys).tobytes(), *position),
    )


def put_generators_back(state: tuple[Any, ...]) -> None:
    """Restore a state that `generators` returned."""
    (cpu, *devices), pythons, (name, keys, *place) = state
    torch.set_rng_state(_as_tensor(cpu))
    if devices:
        torch.cuda.set_rng_state_all([_as_tensor(each) for each in devices])
    random.setstate(pythons)
    np.random.set_state((name, np.frombuffer(keys, np.uint32), *place))


def _as_tensor(data: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _keep() -> Callable[[], object]:
    before = generators()

    def put_back() -> None:
        if generators() != before:
            put_generators_back(before)

    return put_back


same_generators = SharedBlock(_keep)
"""Block behind which the generators are where they were before it."""
