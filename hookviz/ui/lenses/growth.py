"""Show what a lens has so far while it runs, and keep it where the run is ended."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from hookviz.lenses.contract.lens import LensResult
from hookviz.ui import streamlit_internals

_EVERY = 0.16  # seconds between two pictures: six a second are a movement
_OTHERS = 4  # times as long as it took to draw the last one, so that the lens has most of the time


@dataclass(frozen=True, eq=False, slots=True)
class KeptResult:
    """Result of a lens as a session keeps it.

    Attributes:
        result: the result, or what there was of it when the run was ended.
        share: how far the run was, 0…1.
        whole: whether it went to its end.
        grew: whether it was seen while it ran.
    """

    result: LensResult
    share: float = 1.0
    whole: bool = True
    grew: bool = False


class Growth:
    """Partial results on the page, as many as one can see, however many come.

    Attributes:
        began: whether there was one.
    """

    def __init__(
        self,
        show: Callable[[LensResult], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin without a result; `show` draws one in the place of the one before."""
        self.began = False
        self._show, self._clock = show, clock
        self._due = clock()

    def take(self, result: LensResult) -> None:
        """Show a partial result, if the last one was shown long enough ago."""
        self.began = True
        began = self._clock()
        if began < self._due:
            return
        self._show(result)
        ended = self._clock()
        self._due = max(began + _EVERY, ended + _OTHERS * (ended - began))


class Redrawn:
    """Part of the page that is drawn again and again in one run, controls and all.

    Elements of the same kind in the same order are changed in place, from one run to the next too,
    so that nothing jumps. Streamlit refuses a key that comes twice in a run; here the second takes
    the place of the first.
    """

    def __init__(self, *, clear: bool) -> None:
        """Begin at the present position on the page; what an earlier run drew there may stay."""
        self._around = st.container()
        self._place: DeltaGenerator | None = self._around.empty() if clear else None
        self._own: list[frozenset[str]] = []

    def draw(self, show: Callable[[], None], *, once: bool = False) -> None:
        """Call `show` for what stands there from now on, or for the rest of the run if `once`."""
        if once and self._place is None:
            with self._around.container():
                show()
            return
        names = streamlit_internals.registered_widgets()
        for known, own in zip(names, self._own, strict=False):
            others = known.snapshot() - own
            known.clear()
            for name in others:
                known.check_and_add(name)
        before = [known.snapshot() for known in names]
        # Not sooner: it takes away what is there.
        self._place = self._place or self._around.empty()
        with self._place.container():
            show()
        self._own = [known.snapshot() - was for known, was in zip(names, before, strict=True)]
