"""Give a page its turn to compute: show its place in the queue, and log and measure the run."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from hookviz.classroom.classes import classes
from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.live.streams import streams
from hookviz.serving import capacity, logs, out_of_memory
from hookviz.serving.run_slot import RunSlot
from hookviz.serving.time_limit import TooLongError


@contextmanager
def turn(
    label: str, kind: str = "capture", *, model: str = "", layer: str = ""
) -> Iterator[RunSlot]:
    """Wait for this session's turn, with its place on the screen, and hold it for the block.

    Yields the turn's `RunSlot`, whose time limit whatever computes takes as its progress callback;
    a run that takes long lets others compute in it.

    To be entered only for what has to be computed: what is kept needs no turn. The place in the
    queue is written with Streamlit's own calls, so a click or a closed tab ends the wait. Within
    one's own turn another one is had at once and is part of the first.

    Args:
        label: what is run, in a person's words.
        kind: what is run, in a word for logs and metrics.
        model: the model's name in the catalog, for the log.
        layer: the layer's name, for the log.

    Raises:
        OutOfMemoryError: the block needs more memory than there is.
    """
    line = st.empty()
    shown = False

    def on_position(position: int) -> None:
        nonlocal shown
        shown = True
        line.info(
            say(
                "You are number {position} in the queue. This starts by itself.", position=position
            ),
            icon=":material/hourglass_top:",
        )

    with (
        logs.bound(session=session(), request=secrets.token_hex(4), model=model, layer=layer),
        capacity.queue().turn(session(), on_position) as waited,
    ):
        if shown:
            line.empty()
        slot = RunSlot(capacity.queue(), session(), label)
        with _logged(kind, slot, waited), out_of_memory.translate_oom(label):
            yield slot


@contextmanager
def _logged(kind: str, slot: RunSlot, waited: float) -> Iterator[None]:
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


def session() -> str:
    """Return a random name for this session, which stands for nobody outside of the logs."""
    if "_session" not in st.session_state:
        st.session_state["_session"] = _own_name()
    name: str = st.session_state["_session"]
    return name


def _on_session_end(name: str) -> None:
    streams().withdraw(name)
    classes().session_ended(name)


@st.cache_resource(scope="session", on_release=_on_session_end, show_spinner=False)
def _own_name() -> str:
    """Make the name where Streamlit tells of the session's end, which ends its stream of frames."""
    return secrets.token_hex(4)
