"""Free caches where memory runs out, and say so in words."""

import gc
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.machine import memory
from hookviz.serving import capacity
from hookviz.serving.memory_reservations import OutOfMemoryError

_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)


@contextmanager
def translate_oom(label: str) -> Iterator[None]:
    """Translate the block's lack of memory into an error in words, and free caches.

    Args:
        label: what is done, in a person's words.

    Raises:
        OutOfMemoryError: there was not enough memory for the block.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, OutOfMemoryError) or not memory.is_short_of_memory(error):
            raise
        _free_caches()
        if isinstance(error, HookVizError):
            raise
        raise OutOfMemoryError(
            say(
                "{label} takes more memory than this server has left. What it kept has given "
                "way, so another try may go well; a smaller input or model takes less.",
                label=label,
            )
        ) from error


def with_retry(label: str, work: Callable[[], _Result]) -> _Result:
    """Return what `work` returns; where memory is short, free caches and try once more.

    Raises:
        OutOfMemoryError: there is not enough memory for it.
    """
    try:
        return work()
    except Exception as error:
        if not memory.is_short_of_memory(error):
            raise
    _free_caches()
    with translate_oom(label):
        return work()


def _free_caches() -> None:
    """Drop all that can be computed or loaded again: activations, and models that nobody uses."""
    budget = capacity.activation_budget()
    kept = budget.give_back(budget.used)
    loaded = capacity.model_pool().evict_unused()
    _log.warning(
        "Memory ran out, and %d MB of activations and %d MB of models gave way",
        kept // memory.MEGABYTE,
        loaded // memory.MEGABYTE,
    )
    gc.collect()
    memory.return_to_system()
