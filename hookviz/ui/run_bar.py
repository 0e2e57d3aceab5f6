"""Show the progress of a run, and a button that ends it, in one row."""

import time
from collections.abc import Callable

import streamlit as st

from hookviz.language.saying import say
from hookviz.serving.turns import RunSlot
from hookviz.wording import time_left

_BAR_AFTER_S = 0.5
_ELEMENTS = 4  # of the row after a run
_EVERY_S = 0.1  # between two updates of the bar, in which a click ends the run


class RunBar:
    """Progress bar with *Stop*, for runs that take more than half a second.

    Attributes:
        share: progress of the run, 0…1.
    """

    def __init__(
        self, title: str, stop: Callable[[], None] = lambda: None, from_share: float = 0.0
    ) -> None:
        """Reserve elements in the present container, which is a row.

        Args:
            title: of the run.
            stop: called at *Stop*, before the page starts again and so ends the run.
            from_share: progress of an earlier run with which this one starts.
        """
        self.share = from_share
        # the others remove at once the elements of a stopped run before
        self._bar, self._button, *_ = (st.empty() for _ in range(_ELEMENTS))
        self._title, self._stop, self._from_share = title, stop, from_share
        self._slot: RunSlot | None = None
        self._started = self._updated = self._waits_since = 0.0
        self._words = ""
        self._is_visible = False
        self._before_bar: Callable[[], None] = lambda: None

    def start(self, slot: RunSlot, before_bar: Callable[[], None] = lambda: None) -> None:
        """Start the clock: the run has its job slot.

        Args:
            slot: the job slot.
            before_bar: called before the bar appears, to remove a spinner in its place.
        """
        self._slot, self._before_bar = slot, before_bar
        self._started = time.monotonic()

    def show(self) -> None:
        """Show the bar and its button from now on."""
        if not self._is_visible:
            self._is_visible = True
            self._before_bar()
            self._update(self._title + "…")
            self._button.button(say("Stop"), on_click=self._stop, icon=":material/stop:")

    def report(self, share: float) -> None:
        """Show the progress of the run, 0…1."""
        now = time.monotonic()
        self.share = min(1.0, max(0.0, share))
        self._waits_since = 0.0
        is_early = not self._is_visible and now - self._started < _BAR_AFTER_S
        if is_early or now - self._updated < _EVERY_S:
            return
        self.show()
        assert self._slot is not None
        start = self._from_share if self.share >= self._from_share else 0.0
        done = (self.share - start) / max(1e-9, 1 - start)
        self._update(f"{self._title}… {time_left(done, now - self._started - self._slot.yielded)}")

    def wait(self, position: int) -> None:
        """Show that the run waits for others, if it does for more than a moment."""
        now = time.monotonic()
        self._waits_since = self._waits_since or now
        if now - self._waits_since < _BAR_AFTER_S / 2:
            self._update(self._words)  # an update lets a click end the wait
            return
        self.show()
        self._update(
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

    def _update(self, words: str) -> None:
        self._words, self._updated = words.rstrip(), time.monotonic()
        if self._is_visible:
            self._bar.progress(self.share, self._words)
        else:
            self._bar.empty()
