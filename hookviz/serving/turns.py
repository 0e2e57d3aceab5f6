"""Give a session its turn to compute, and log and measure the run."""

import secrets
import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.serving import capacity, logs, out_of_memory
from hookviz.serving.fair_queue import OnPosition
from hookviz.serving.memory_reservations import MemoryNeed
from hookviz.serving.run_slot import RunSlot
from hookviz.serving.time_limit import TooLongError

PATIENCE = 0.3
"""Seconds after which a person wants to know what is waited for."""


@contextmanager
def turn(
    session: str,
    label: str,
    kind: str = "capture",
    *,
    model: str = "",
    layer: str = "",
    owner: Hashable = None,
    need: MemoryNeed | None = None,
    on_position: OnPosition | None = None,
) -> Iterator[RunSlot]:
    """Wait for a session's turn, and hold it for the block.

    Yields the turn's `RunSlot`, whose time limit whatever computes takes as its progress callback;
    a run that takes long lets others compute in it.

    To be entered only for what has to be computed: what is kept needs no turn. Within one's own
    turn another one is had at once and is part of the first.

    Args:
        session: whose turn it is, for the log.
        label: what is run, in a person's words.
        kind: what is run, in a word for logs and metrics.
        model: the model's name in the catalog, for the log.
        layer: the layer's name, for the log.
        owner: who has the place in the queue, of which each has one; None for the session.
        need: memory that is reserved for the block, before the wait for a slot.
        on_position: called as by `FairQueue.turn`; what it raises ends the wait.

    Raises:
        OutOfMemoryError: the block needs more memory than there is.
        TooLongError: there was not enough memory for as long as a run may take.
    """
    owner = session if owner is None else owner
    with (
        logs.bound(session=session, request=secrets.token_hex(4), model=model, layer=layer),
        capacity.reservations().hold(label, need, _behind_runs(on_position)),
        capacity.queue().turn(owner, on_position) as waited,
    ):
        slot = RunSlot(capacity.queue(), owner, label)
        with _logged(kind, slot, waited), out_of_memory.translate_oom(label):
            yield slot


def _behind_runs(on_position: OnPosition | None) -> OnPosition | None:
    """Return what tells a position in the line for memory as one behind those who have theirs."""
    if on_position is None:
        return None
    return lambda position: on_position(position + capacity.queue().waiting)


def says_position(position: int) -> str:
    """Say to a person who waits which place in the queue is theirs."""
    return say("You are number {position} in the queue. This starts by itself.", position=position)


@contextmanager
def _logged(kind: str, slot: RunSlot, waited: float) -> Iterator[None]:
    """Log and measure a run, however it ends."""
    started = time.perf_counter()
    outcome = "stopped"  # by a click, a closed tab, or a line that was cut
    try:
        yield
        outcome = "done"
    except TooLongError:
        outcome = "too long"
        raise
    except HookVizError:
        outcome = "refused"
        raise
    except Exception:
        outcome = "failed"
        raise
    finally:
        seconds = time.perf_counter() - started - slot.yielded
        waited += slot.yielded
        logs.event(
            kind,
            outcome=outcome,
            ms=round(seconds * 1000, 1),
            waited_ms=round(waited * 1000, 1),
        )
        metrics = capacity.metrics()
        if metrics is not None:
            metrics.run_ended(kind, outcome, seconds, waited)
