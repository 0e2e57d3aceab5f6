"""Bound the pace of a connection: throttle what a client sends, cut off one that does not read.

A burst passes at once, then a steady rate. What comes faster waits, and nothing of it is lost:
waiting requests to run the page are coalesced into one, which has the last one's choices and all
that was clicked. Streamlit itself coalesces only those that come while one run lasts, and starts a
thread for each.

For a client that does not read, Streamlit keeps up to 500 messages. Where there are more it gives
up the session and keeps the connection, on which nothing is answered any more. Cut off, a browser
reconnects by itself.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable

from starlette.types import Message, Receive, Send

from hookviz.ui.serving.messages import MessageReader, is_trigger, rerun_request

_BURST, _RATE = 30, 10.0  # messages at once, and a second after them
_MOST = 100  # different ones that wait; no page of a person has so many
_END: Message = {"type": "websocket.disconnect", "code": 1008}

SEND_TIMEOUT = 20.0
"""Seconds in which a message has to find room on the connection; 64 KB may wait there."""

_log = logging.getLogger(__name__)


class TokenBucket:
    """Token bucket: a burst of `burst` tokens at once, refilled at `rate` a second."""

    def __init__(self, burst: float, rate: float) -> None:
        """Start full."""
        self._burst, self._rate = burst, rate
        self._tokens, self._at = float(burst), time.monotonic()

    def take(self) -> float:
        """Take a token, and return the seconds until it is due: 0 where it was there.

        Tokens that were not there yet are owed, so the next one is due later still.
        """
        now = time.monotonic()
        refilled = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._tokens, self._at = refilled - 1, now
        return max(0.0, -self._tokens / self._rate)

    def take_if_there(self) -> float:
        """Take a token if there is one, and return 0; else the seconds until there is one.

        One that is not there is not owed: whoever asks too often waits for no longer than that.
        """
        owed = self.take()
        if owed:
            self._tokens += 1
        return owed


class Throttle:
    """Message source of one connection, which gives its messages no faster than they may come."""

    def __init__(
        self,
        receive: Receive,
        on_wait: Callable[[], None] = lambda: None,
        *,
        burst: int = _BURST,
        rate: float = _RATE,
    ) -> None:
        """Wrap `receive`.

        Args:
            receive: gives the messages as they come.
            on_wait: called for every message that has to wait.
            burst: how many pass at once.
            rate: how many a second pass after them.
        """
        self._reader = MessageReader(receive)
        self._on_wait = on_wait
        self._bucket = TokenBucket(burst, rate)
        self._waiting: deque[Message] = deque()

    async def next(self) -> Message:
        """Return the next message when it is due; that the visitor is gone is told at once."""
        if not self._waiting:
            message = await self._reader.next()
            if message["type"] != "websocket.receive":
                return message
            self._waiting.append(message)
        delay = self._bucket.take()
        due = time.monotonic() + delay
        if delay:
            self._on_wait()
        while (left := due - time.monotonic()) > 0:
            later = await self._reader.within(left)
            if later is None:
                break
            if later["type"] != "websocket.receive":
                return later
            self._on_wait()
            coalesced = _coalesce(self._waiting[-1], later)
            if coalesced is not None:
                self._waiting[-1] = coalesced
            elif len(self._waiting) < _MOST:
                self._waiting.append(later)
            else:
                _log.warning("A connection was ended: more than %d messages waited", _MOST)
                return _END
        return self._waiting.popleft()

    def close(self) -> None:
        """Cancel the wait for a message, if there is one."""
        self._reader.close()


def _coalesce(older: Message, newer: Message) -> Message | None:
    """Return one message in place of both; None where each has to be answered."""
    first, second = rerun_request(older), rerun_request(newer)
    if first is None or second is None:
        return None
    if any(
        getattr(first.rerun_script, name) != getattr(second.rerun_script, name)
        for name in ("fragment_id", "page_script_hash", "is_history_navigation", "is_auto_rerun")
    ):
        return None
    widgets = {state.id: state for state in second.rerun_script.widget_states.widgets}
    for state in first.rerun_script.widget_states.widgets:
        if is_trigger(state) and not is_trigger(widgets.get(state.id)):
            widgets[state.id] = state
    states = list(widgets.values())
    del second.rerun_script.widget_states.widgets[:]
    second.rerun_script.widget_states.widgets.extend(states)
    return {**newer, "bytes": second.SerializeToString()}


def send_with_timeout(
    send: Send, cut_off: Callable[[], None], is_session_lost: Callable[[], bool], seconds: float
) -> Send:
    """Return a `send` that ends the connection of a client that does not read.

    Args:
        send: the connection's.
        cut_off: ends it at once.
        is_session_lost: whether Streamlit has given up the session of this connection.
        seconds: for one message.
    """

    async def send_in_time(message: Message) -> None:
        try:
            async with asyncio.timeout(seconds):
                await send(message)
        except TimeoutError:
            _log.warning("A visitor who read nothing for %g s was cut off", seconds)
        else:
            if not is_session_lost():
                return
            _log.warning("A visitor who reads too slowly was cut off")
        cut_off()
        raise OSError("the visitor does not read")  # which Streamlit takes for a lost line

    return send_in_time
