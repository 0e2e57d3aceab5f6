"""Share what the screens of a class compute alike, so that it is computed once.

Forty who follow ask for the same lens of the same sample at the same moment.
One of them computes it, and the others wait for that and find it here. What is in here is
known by the digests of network and input, so it is what each of them would have computed. Nobody's
own photograph comes in, and nothing is left of it when the last class has ended.
"""

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

import streamlit as st

from hookviz.capturing.cache import ByteCache
from hookviz.classroom.classes import class_activations
from hookviz.language.saying import say
from hookviz.ui.state import shows_sample

_IN_A_CLASS = {"follow", "class"}  # names of the link
_TICK = 0.5  # seconds between two calls of Streamlit's while waiting, at which a click ends it

_done = threading.Condition()
_computed: set[Hashable] = set()  # what one screen of a class computes now


def class_cache() -> ByteCache | None:
    """Return the cache of all classes; None outside of a class, or for an image of one's own."""
    in_class = bool(_IN_A_CLASS & set(st.query_params))
    return class_activations() if in_class and shows_sample() else None


@contextmanager
def computed_once(key: Hashable, of_class: ByteCache | None) -> Iterator[None]:
    """Wait until no other screen of a class computes this, and be the one that does for the block.

    Whoever has waited looks into the cache first. It waits with Streamlit's own calls, so a click
    or a closed tab ends the wait; and where the one that computes is stopped, the next one begins.
    """
    if of_class is None:
        yield
        return
    line = st.empty()
    while not _begins(key):
        line.info(
            say("This is computed once for the class, and is here in a moment."),
            icon=":material/hourglass_top:",
        )
        with _done:
            _done.wait_for(lambda: key not in _computed, _TICK)
    line.empty()
    try:
        yield
    finally:
        with _done:
            _computed.discard(key)
            _done.notify_all()


def _begins(key: Hashable) -> bool:
    with _done:
        if key in _computed:
            return False
        _computed.add(key)
        return True
