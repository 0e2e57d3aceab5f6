"""Show how far a run is, and a button that ends it, in one row."""

import time
from collections.abc import Callable

import streamlit as st

from hookviz.language.saying import say
from hookviz.serving.turns import RunSlot
from hookviz.wording import time_left

_PATIENCE = 0.5  # seconds after which a person wants to know how far it is
_SLOTS = 4  # as many as the row has things in it after a run
_EVERY = 0.1  # seconds between two looks of the bar; a click ends the run in one of them


def _do_nothing() -> None:
    """Stand in for what stops a run, or takes away what is shown before the bar."""


class RunBar:
    """Progress bar with *Stop* beside it, which come where a run takes more than half a second.

    Attributes:
        share: how far the run is, 0…1.
    """

    def __init__(
        self, title: str, stop: Callable[[], None] = _do_nothing, from_share: float = 0.0
    ) -> None:
        """Reserve places in the present container, which is a row; nothing is shown yet.

        Args:
            title: what runs.
            stop: called for a click on *Stop*, before the page starts again and so ends the run.
            from_share: where the run goes on from, if it does.
        """
        self.share = from_share
        # The others take away at once what stood there when a run before was stopped.
        self._bar, self._button, *_ = (st.empty() for _ in range(_SLOTS))
        self._title, self._stop, self._from_share = title, stop, from_share
        self._held: RunSlot | None = None
        self._started = self._looked = self._waits_since = 0.0
        self._words = ""
        self._shown = False
        self._instead: Callable[[], None] = _do_nothing

    def start(self, held: RunSlot, instead: Callable[[], None] = _do_nothing) -> None:
        """Begin to measure: the run has its turn, and the wait before it is shown by itself.

        Args:
            held: the turn.
            instead: takes away what is shown until the bar is.
        """
        self._held, self._instead = held, instead
        self._started = time.monotonic()

    def show(self) -> None:
        """Show the bar and its button from now on."""
        if not self._shown:  # a click on it starts the page again, which ends this run
            self._shown = True
            self._instead()
            self._look(self._title + "…")
            self._button.button(say("Stop"), on_click=self._stop, icon=":material/stop:")

    def report(self, share: float) -> None:
        """Show how far the run is, 0…1."""
        now = time.monotonic()
        self.share = min(1.0, max(0.0, share))
        self._waits_since = 0.0
        if now - self._looked < _EVERY or (not self._shown and now - self._started < _PATIENCE):
            return
        self.show()
        assert self._held is not None
        begun = self._from_share if self.share >= self._from_share else 0.0
        done = (self.share - begun) / max(1e-9, 1 - begun)
        self._look(f"{self._title}… {time_left(done, now - self._started - self._held.yielded)}")

    def wait(self, position: int) -> None:
        """Say that others compute, where it takes more than a moment; the run goes on by itself."""
        now = time.monotonic()
        self._waits_since = self._waits_since or now
        if now - self._waits_since < _PATIENCE / 2:
            self._look(self._words)  # whatever is drawn lets a click end the wait
            return
        self.show()
        self._look(
            say(
                "{title}… waits for others, number {position} in the queue",
                title=self._title,
                position=position,
            )
        )

    def end(self) -> None:
        """Remove the bar and its button."""
        self._bar.empty()
        self._button.empty()

    def _look(self, words: str) -> None:
        self._words, self._looked = words.rstrip(), time.monotonic()
        if self._shown:
            self._bar.progress(self.share, self._words)
        else:
            self._bar.empty()
