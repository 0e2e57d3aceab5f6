"""Memory that could not be had: what is kept gives way, and a person hears it in words."""

import gc
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.machine import memory
from hookviz.serving import capacity

_Result = TypeVar("_Result")
_log = logging.getLogger(__name__)


class OutOfMemoryError(HookVizError):
    """A run needed more memory than this process could get."""


@contextmanager
def translate_oom(label: str) -> Iterator[None]:
    """The block, whose want of memory is translate_oom in words, after what is kept has given way.

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
        give_way()
        if isinstance(error, HookVizError):
            raise
        raise OutOfMemoryError(
            say(
                "{label} takes more memory than this server has left. What it kept has given "
                "way, so another try may go well; a smaller input or model takes less.",
                label=label,
            )
        ) from error


def with_another_try(label: str, work: Callable[[], _Result]) -> _Result:
    """What `work` gives, which is tried once more where memory is short.

    Raises:
        OutOfMemoryError: there is not enough memory for it.
    """
    try:
        return work()
    except Exception as error:
        if not memory.is_short_of_memory(error):
            raise
    give_way()
    with translate_oom(label):
        return work()


def give_way() -> None:
    """Let go of all that is kept and can be had again: activations, and models nobody looks at."""
    budget = capacity.activation_budget()
    kept = budget.give_back(budget.used)
    loaded = capacity.model_pool().give_back()
    _log.warning(
        "Memory ran out, and %d MB of activations and %d MB of models gave way",
        kept // memory.MEGABYTE,
        loaded // memory.MEGABYTE,
    )
    gc.collect()
    memory.return_to_system()
