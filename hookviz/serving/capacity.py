"""Make what all sessions of the process share: models, activations' bound, queue, metrics, its end.

Each is made when it is first asked for, after the settings were read.
"""

import gc
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from hookviz.capturing.cache import Budget, ByteCache
from hookviz.machine import memory
from hookviz.machine.memory import MEGABYTE, Memory
from hookviz.serving.fair_queue import FairQueue
from hookviz.serving.garbage import GarbageCollector
from hookviz.serving.memory_reservations import MemoryReservations
from hookviz.serving.model_pool import ModelPool
from hookviz.settings import settings

if TYPE_CHECKING:
    from hookviz.serving.metrics import Metrics


_TWO_OF_TWO = 4  # cores that two runs of two threads fill


@dataclass(slots=True)
class Shutdown:
    """End of a process: a flag to look at, which a signal's handler may set.

    A handler runs between any two instructions of the main thread, where nothing may be waited for.

    Attributes:
        has_begun: whether the process has been told to end; what it would begin now is lost.
    """

    has_begun: bool = False


@cache
def shutdown() -> Shutdown:
    """Return the end of this process.

    >>> shutdown().has_begun
    False
    """
    return Shutdown()


@cache
def model_pool() -> ModelPool:
    """Return the loaded models that all sessions share, within `HOOKVIZ_MODELS_MB`."""
    return ModelPool(settings().models_mb * MEGABYTE)


@cache
def activation_budget() -> Budget:
    """Return the bound in bytes on what the caches of all sessions hold together."""
    return Budget(settings().cache_mb * MEGABYTE)


@cache
def sample_activations() -> ByteCache:
    """Return the cache of what samples gave, which all sessions share, as large as one session's.

    It is within what all sessions may keep.
    """
    return activation_budget().cache(settings().session_mb * MEGABYTE)


@cache
def own_memory() -> Memory:
    """Return the memory that this process uses, and how much it may."""
    return memory.own_memory(settings().memory_mb, settings().processes)


class RunPlan(NamedTuple):
    """How the cores are shared out.

    Attributes:
        runs: how many compute at once.
        threads: of each run.
        large: how many of the runs, and of the loadings beside them, may take much memory.
    """

    runs: int
    threads: int
    large: int


def plan_runs(runs: int, threads: int, cores: int, memory_bytes: int) -> RunPlan:
    """Return how many runs compute at once, and on how many threads, so that they fill the cores.

    At least two at once, so that one long run does not hold up everybody, and one for every four
    cores; four where each has a single thread, among which the system divides the cores. At most
    one for every gigabyte.

    Args:
        runs: what was chosen; 0 for automatic.
        threads: what was chosen; 0 for automatic.
        cores: processors that there are; 0 for less than one.
        memory_bytes: that there are.
    """
    least = 2 if cores >= _TWO_OF_TWO else 4
    runs = runs or max(1, min(max(least, cores // 4), memory_bytes >> 30))
    return RunPlan(runs, threads or max(1, cores // runs), large=max(1, min(runs - 1, cores // 2)))


@cache
def run_plan() -> RunPlan:
    """Return how the cores of this process are shared out."""
    cores = memory.cores() // settings().processes
    return plan_runs(settings().runs, settings().threads, cores, own_memory().limit)


@cache
def queue() -> FairQueue:
    """Return the queue in which every run waits for one of the slots."""
    return FairQueue(run_plan().runs)


@cache
def reservations() -> MemoryReservations:
    """Return the line in which every run and every loading waits for memory."""
    return MemoryReservations(own_memory(), _give_back, _droppable, run_plan().large)


def _give_back(nbytes: int) -> int:
    """Drop old activations, then models that nobody uses; return how many bytes went."""
    went = activation_budget().give_back(nbytes)
    if not went:
        went = model_pool().evict_unused(nbytes)
        gc.collect()  # a network's modules refer to each other
    return went


def _droppable() -> int:
    """Return the bytes that `_give_back` could drop now."""
    return activation_budget().used + model_pool().unused


@cache
def garbage_collector() -> GarbageCollector:
    """Return what collects the process's garbage while it serves."""
    return GarbageCollector()


@cache
def metrics() -> "Metrics | None":
    """Return the counters for Prometheus; None where nobody asked for them."""
    if not settings().metrics_port:
        return None
    # Its library takes a tenth of a second to import.
    from hookviz.serving.device import gpu_bytes  # noqa: PLC0415
    from hookviz.serving.metrics import Metrics  # noqa: PLC0415

    return Metrics(
        {
            "running": ("Runs that compute now.", lambda: queue().running),
            "waiting": ("Runs that wait in the queue.", lambda: queue().waiting),
            "runs_limit": ("Runs that may compute at once.", lambda: queue().runs),
            "cache_bytes": ("Activations that are kept.", lambda: activation_budget().used),
            "cache_limit_bytes": ("Most that may be kept.", lambda: activation_budget().limit),
            "model_bytes": ("Models that are loaded.", lambda: model_pool().used),
            "model_limit_bytes": ("Most that may be loaded.", lambda: model_pool().limit),
            "gpu_bytes": ("The GPU's memory that is reserved.", lambda: gpu_bytes()[0]),
            "gpu_limit_bytes": ("What of it may be reserved.", lambda: gpu_bytes()[1]),
            "memory_used_bytes": ("What counts against the limit.", own_memory().used),
            "memory_limit_bytes": ("What may be used.", lambda: own_memory().limit),
        }
    )
