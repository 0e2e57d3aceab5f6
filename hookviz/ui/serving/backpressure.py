"""Cut off clients that do not read what they are sent, so that nothing piles up for them.

Streamlit keeps up to 500 messages for each. Where there are more it gives up the session and keeps
the connection, on which nothing is answered any more. Cut off, a browser reconnects by itself.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from starlette.types import Message, Send

SEND_TIMEOUT = 20.0
"""Seconds in which a message has to find room on the connection; 64 KB may wait there."""

_log = logging.getLogger(__name__)


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
    timeout = _ReusedTimeout(seconds)

    async def send_in_time(message: Message) -> None:
        try:
            async with timeout if message["type"] == "websocket.send" else asyncio.timeout(seconds):
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


class _ReusedTimeout:
    """``asyncio.timeout`` for one message after the other, whose timer is set once for many.

    A timer for each costs 13 µs, and a page has ninety messages.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since = 0.0
        self._task: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._has_expired = False

    async def __aenter__(self) -> None:
        loop = asyncio.get_running_loop()
        self._task, self._since = asyncio.current_task(), loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._look, loop)

    async def __aexit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        task, self._task = self._task, None
        if self._has_expired and kind is asyncio.CancelledError and task is not None:
            self._has_expired = False
            task.uncancel()
            raise TimeoutError

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel a send that waits for too long; else look again when it would have."""
        self._timer = None
        if self._task is None:
            return
        left = self._since + self._seconds - loop.time()
        if left > 0:
            self._timer = loop.call_later(left, self._look, loop)
        else:
            self._has_expired = True
            self._task.cancel()
