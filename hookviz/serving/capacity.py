"""What all sessions of the process share: the models, a bound on activations, turns, metrics.

Each is made when it is first asked for, after the settings were read.
"""

from functools import cache
from typing import TYPE_CHECKING

from hookviz.capturing.cache import Budget
from hookviz.machine import memory
from hookviz.machine.memory import Memory
from hookviz.serving.fair_queue import FairQueue
from hookviz.serving.garbage import GarbageCollector
from hookviz.serving.model_pool import ModelPool
from hookviz.serving.run_plan import RunPlan, plan
from hookviz.settings import MEGABYTE, settings

if TYPE_CHECKING:
    from hookviz.serving.metrics import Metrics


@cache
def model_pool() -> ModelPool:
    """The loaded models that all sessions share, within `HOOKVIZ_MODELS_MB`."""
    return ModelPool(settings().models_mb * MEGABYTE)


@cache
def activation_budget() -> Budget:
    """The bound in bytes on what the caches of all sessions hold together."""
    return Budget(settings().cache_mb * MEGABYTE)


@cache
def own_memory() -> Memory:
    """The memory that this process uses, and how much it may."""
    return memory.own_memory(settings().memory_mb, settings().processes)


@cache
def run_plan() -> RunPlan:
    """How many runs compute at once, and on how many threads each."""
    cores = memory.cores() // settings().processes
    return plan(settings().runs, settings().threads, cores, own_memory().limit)


@cache
def queue() -> FairQueue:
    """The queue in which every run waits. Where memory is short, old activations go first."""
    return FairQueue(run_plan().runs, lambda: own_memory().make_room(activation_budget().give_back))


@cache
def garbage_collector() -> GarbageCollector:
    """What collects the process's garbage while it serves."""
    return GarbageCollector()


@cache
def metrics() -> "Metrics | None":
    """What is counted for Prometheus; None where nobody asked for it."""
    if not settings().metrics_port:
        return None
    # Its library takes a tenth of a second to import.
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
            "memory_used_bytes": ("What counts against the limit.", own_memory().used),
            "memory_limit_bytes": ("What may be used.", lambda: own_memory().limit),
        }
    )
