"""A page's turn to compute: waiting with a place in the queue, a time limit, a line in the log."""

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import streamlit as st

from hookviz.errors import HookVizError
from hookviz.serving import capacity, logs
from hookviz.settings import settings

Report = Callable[[float], None]
"""Told how far a run is, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The time that a run has. Whatever computes is handed `within` as its progress callback.

    Attributes:
        label: what is run, in a person's words.
        ends: when the time is over, in seconds of `time.monotonic`.
        limit: how long that was from the start, in seconds.
    """

    label: str
    ends: float
    limit: int

    def within(self, report: Report | None = None) -> Report:
        """`report`, which raises once the time is over.

        Raises:
            HookVizError: from the callback, after `HOOKVIZ_RUN_SECONDS`.
        """

        def checked(share: float) -> None:
            if time.monotonic() > self.ends:
                raise TooLongError(
                    f"{self.label} took longer than the {self.limit} seconds that one run may "
                    "take here (HOOKVIZ_RUN_SECONDS). A smaller input, model or number of steps "
                    "takes less."
                )
            if report is not None:
                report(share)

        return checked


class TooLongError(HookVizError):
    """A run took more time than whoever started the server allows."""


@contextmanager
def turn(label: str, kind: str = "capture", *, model: str = "", layer: str = "") -> Iterator[Turn]:
    """Wait for this session's turn, with its place on the screen, and hold it for the block.

    To be entered only for what has to be computed: what is kept needs no turn. The place in the
    queue is written with Streamlit's own calls, so a click or a closed tab ends the wait. Within
    one's own turn another one is had at once and is part of the first.

    Args:
        label: what is run, in a person's words.
        kind: what is run, in a word for logs and metrics.
        model: the model's name in the catalog, for the log.
        layer: the layer's name, for the log.
    """
    line = st.empty()
    shown = False

    def tell(position: int) -> None:
        nonlocal shown
        shown = True
        line.info(
            f"You are number {position} in the queue. This starts by itself.",
            icon=":material/hourglass_top:",
        )

    allowed = settings().run_seconds
    with (
        logs.bound(session=session(), request=secrets.token_hex(4), model=model, layer=layer),
        capacity.admission().turn(session(), tell) as waited,
    ):
        if shown:
            line.empty()
        with _written_down(kind, waited):
            yield Turn(label, time.monotonic() + allowed, allowed)


@contextmanager
def _written_down(kind: str, waited: float) -> Iterator[None]:
    """Log and measure a run, however it ends."""
    started = time.perf_counter()
    outcome = "stopped"  # by Streamlit, for a click or a closed tab
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
        seconds = time.perf_counter() - started
        logs.event(
            kind,
            outcome=outcome,
            ms=round(seconds * 1000, 1),
            waited_ms=round(waited * 1000, 1),
        )
        metrics = capacity.metrics()
        if metrics is not None:
            metrics.run_ended(kind, outcome, seconds, waited)


def session() -> str:
    """A random name for this session, which stands for nobody outside of the logs."""
    name: str = st.session_state.setdefault("_session", secrets.token_hex(4))
    return name
