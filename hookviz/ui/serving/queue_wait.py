"""Give a page its turn to compute, and show its place in the queue on the screen."""

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hookviz.classroom.classes import classes
from hookviz.live.streams import streams
from hookviz.serving import turns
from hookviz.serving.kept_photographs import kept_photographs
from hookviz.serving.memory_reservations import MemoryNeed
from hookviz.serving.turns import RunSlot
from hookviz.ui.serving import visitors
from hookviz.ui.serving.explorer_sessions import explorer_sessions


@contextmanager
def turn(
    label: str,
    kind: str = "capture",
    *,
    model: str = "",
    layer: str = "",
    need: MemoryNeed | None = None,
    line: DeltaGenerator | None = None,
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
        need: memory that is reserved for the block.
        line: the empty element that the place in the queue is written to; one of its own if None.
            Who does not enter a turn on each run gives one that is always there: Streamlit mounts
            anew what stands below an element that comes and goes, and its keys are lost meanwhile.

    Raises:
        OutOfMemoryError: the block needs more memory than there is.
    """
    line = st.empty() if line is None else line
    shown, started = False, time.monotonic()

    def on_position(position: int) -> None:
        nonlocal shown
        if time.monotonic() - started < turns.PATIENCE:
            return
        shown = True
        line.info(turns.says_position(position), icon=":material/hourglass_top:")

    with turns.turn(
        session(), label, kind, model=model, layer=layer, need=need, on_position=on_position
    ) as slot:
        if shown:
            line.empty()
        yield slot


def session() -> str:
    """Return a random name for this session, which stands for nobody outside of the logs."""
    if "_session" not in st.session_state:
        st.session_state["_session"] = secrets.token_hex(4)
    return _told_of_end(st.session_state["_session"])


def _on_session_end(name: str) -> None:
    explorer_sessions().withdraw(name)
    streams().withdraw(name)
    classes().session_ended(name)
    kept_photographs().leave(name)
    visitors.withdraw(name)


@st.cache_resource(scope="session", on_release=_on_session_end, show_spinner=False)
def _told_of_end(name: str) -> str:
    """Have Streamlit tell when the page goes, each time that it does: it may come back between."""
    return name
