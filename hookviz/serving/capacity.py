"""What all sessions share: memory for models and activations, turns to compute, and counters."""

from functools import cache
from typing import TYPE_CHECKING

from hookviz.capturing.cache import Budget
from hookviz.machine import memory
from hookviz.machine.memory import Memory
from hookviz.serving.model_pool import ModelPool
from hookviz.serving.run_queue import Admission, plan
from hookviz.settings import MEGABYTE, settings

if TYPE_CHECKING:
    from hookviz.serving.metrics import Metrics


@cache
def models() -> ModelPool:
    """The models that all sessions share."""
    return ModelPool(settings().models_mb * MEGABYTE)


@cache
def activations() -> Budget:
    """The bound on what all sessions keep together."""
    return Budget(settings().cache_mb * MEGABYTE)


@cache
def own_memory() -> Memory:
    """What this process may use."""
    return memory.own_memory(settings().memory_mb)


@cache
def planned() -> tuple[int, int]:
    """How many runs compute at once, and on how many threads each."""
    return plan(settings().runs, settings().threads, memory.cores(), own_memory().limit)


@cache
def admission() -> Admission:
    """The queue for all that is computed. Where memory is short, old activations go first."""
    return Admission(planned()[0], lambda: own_memory().make_room(activations().give_back))


@cache
def metrics() -> "Metrics | None":
    """What is counted for Prometheus; None where nobody asked for it."""
    if not settings().metrics_port:
        return None
    # Its library takes a tenth of a second to import.
    from hookviz.serving.metrics import Metrics  # noqa: PLC0415

    return Metrics(
        {
            "running": ("Runs that compute now.", lambda: admission().running),
            "waiting": ("Runs that wait in the queue.", lambda: admission().waiting),
            "runs_limit": ("Runs that may compute at once.", lambda: admission().runs),
            "cache_bytes": ("Activations that are kept.", lambda: activations().used),
            "cache_limit_bytes": ("Most that may be kept.", lambda: activations().limit),
            "model_bytes": ("Models that are loaded.", lambda: models().used),
            "model_limit_bytes": ("Most that may be loaded.", lambda: models().limit),
            "memory_used_bytes": ("What counts against the limit.", own_memory().used),
            "memory_limit_bytes": ("What may be used.", lambda: own_memory().limit),
        }
    )
