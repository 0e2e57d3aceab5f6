"""One Ray cluster of this machine for all tests of the engine, or the reason why there is none."""

import gc
import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module

import pytest
import torch

from hookviz.engines.engine import Engine, engine_of


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    """A cluster of several processes, which the engines of a test find and leave as it is."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'hookviz[ray]'")
    cluster = import_module("hookviz.engines.ray_engine")
    os.environ.pop("RAY_ADDRESS", None)
    with ExitStack() as stack:
        with warnings.catch_warnings():
            # Of a node that came up too late, and was started again, Ray's processes are ending.
            warnings.simplefilter("ignore", ResourceWarning)
            stack.enter_context(cluster.connected(None, 2))
            gc.collect()
        yield


@pytest.fixture
def ray_engine(cluster: None) -> Engine:
    return engine_of("ray", 2)


@pytest.fixture
def one_worker(cluster: None) -> Engine:
    return engine_of("ray", 1)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As many threads as a worker has: with others the last bits may differ."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
