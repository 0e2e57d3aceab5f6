"""What all tests share: small fixtures, and the order in which tests are run.

It imports no torch: a room that needs none is collected in a moment.
"""

import gc
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from torch import Tensor

    from hookviz.types import Model

if "PYTEST_XDIST_WORKER" in os.environ:
    # Each worker has a core to itself: more threads would wait for each other. The servers and
    # programs that it starts follow, so that their numbers are the same to the last bit.
    os.environ["OMP_NUM_THREADS"] = "1"

pytest_plugins = ["tests.running_order"]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect no garbage while tests are collected: nothing of it goes, and each look is long.

    Nor look at it again afterwards: a gigabyte of modules and tests stays to the end.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def tiny() -> "Model":
    from tests.networks import Tiny, as_model, seeded  # noqa: PLC0415

    return as_model(seeded(Tiny))


@pytest.fixture
def noise() -> "Tensor":
    from tests.networks import random_input  # noqa: PLC0415

    return random_input(0)


@pytest.fixture(scope="session")
def of_catalog(request: pytest.FixtureRequest) -> "Model":
    """Each network of the catalog in turn, see `tests.every_network`."""
    import hookviz  # noqa: PLC0415

    name, weights = request.param
    return hookviz.load_model(name, weights)
