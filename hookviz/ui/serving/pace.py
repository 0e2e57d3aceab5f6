"""How often a page may ask for something: a burst at once, then so many times a second.

What comes faster waits, and nothing is lost of it: requests to run the page that wait are put
together into one, which has the last one's choices and all that was clicked. Streamlit itself puts
together only those that come while one run lasts, and starts a thread for each.
"""

import logging
import time
from collections import deque
from collections.abc import Callable

from starlette.types import Message, Receive

from hookviz.ui.serving.incoming import Incoming, is_click, read_request

_BURST, _RATE = 30, 10.0  # messages at once, and a second after them
_MOST = 100  # different ones that wait; no page of a person has so many
_END: Message = {"type": "websocket.disconnect", "code": 1008}

_log = logging.getLogger(__name__)


class Pace:
    """The messages of one connection, no faster than they may be."""

    def __init__(
        self,
        receive: Receive,
        held_back: Callable[[], None] = lambda: None,
        *,
        burst: int = _BURST,
        rate: float = _RATE,
    ) -> None:
        """Stand before `receive`.

        Args:
            receive: gives the messages as they come.
            held_back: called for every message that has to wait.
            burst: how many pass at once.
            rate: how many a second pass after them.
        """
        self._incoming = Incoming(receive)
        self._held_back = held_back
        self._burst, self._rate = burst, rate
        self._free, self._at = float(burst), time.monotonic()
        self._waiting: deque[Message] = deque()

    async def next(self) -> Message:
        """The next message, when it is due; that the visitor is gone is told at once."""
        if not self._waiting:
            message = await self._incoming.next()
            if message["type"] != "websocket.receive":
                return message
            self._waiting.append(message)
        due = self._due()
        if due > time.monotonic():
            self._held_back()
        while (left := due - time.monotonic()) > 0:
            later = await self._incoming.within(left)
            if later is None:
                break
            if later["type"] != "websocket.receive":
                return later
            self._held_back()
            together = _together(self._waiting[-1], later)
            if together is not None:
                self._waiting[-1] = together
            elif len(self._waiting) < _MOST:
                self._waiting.append(later)
            else:
                _log.warning("A connection was ended: more than %d messages waited", _MOST)
                return _END
        return self._waiting.popleft()

    def close(self) -> None:
        """Ask for nothing more."""
        self._incoming.close()

    def _due(self) -> float:
        """When the next message may pass, by `time.monotonic`; it is counted as passed then."""
        now = time.monotonic()
        self._free = min(self._burst, self._free + (now - self._at) * self._rate) - 1
        self._at = now
        return now + max(0.0, -self._free / self._rate)


def _together(older: Message, newer: Message) -> Message | None:
    """One message in place of both, None where each has to be answered."""
    first, second = read_request(older), read_request(newer)
    if first is None or second is None:
        return None
    if any(
        getattr(first.rerun_script, name) != getattr(second.rerun_script, name)
        for name in ("fragment_id", "page_script_hash", "is_history_navigation", "is_auto_rerun")
    ):
        return None
    widgets = {state.id: state for state in second.rerun_script.widget_states.widgets}
    for state in first.rerun_script.widget_states.widgets:
        if is_click(state) and not is_click(widgets.get(state.id)):
            widgets[state.id] = state
    states = list(widgets.values())
    del second.rerun_script.widget_states.widgets[:]
    second.rerun_script.widget_states.widgets.extend(states)
    return {**newer, "bytes": second.SerializeToString()}
