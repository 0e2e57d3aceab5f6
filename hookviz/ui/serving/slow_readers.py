"""Visitors who do not read what they are sent: cut off, so that nothing piles up for them.

Streamlit keeps up to 500 messages for each. Where there are more it gives up the session and keeps
the line, on which nothing is answered any more. Cut off, a browser comes back by itself.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from starlette.types import Message, Receive, Send

PATIENCE = 20.0
"""Seconds in which a message has to find room on the line; 64 KB may wait there."""

_log = logging.getLogger(__name__)


def in_time(
    send: Send, end: Callable[[], None], is_given_up: Callable[[], bool], patience: float
) -> Send:
    """`send`, which ends the connection of a visitor who does not read.

    Args:
        send: the connection's.
        end: ends it at once.
        is_given_up: whether the session of this connection was.
        patience: seconds for one message.
    """
    watch = _Watch(patience)

    async def send_in_time(message: Message) -> None:
        try:
            async with watch if message["type"] == "websocket.send" else asyncio.timeout(patience):
                await send(message)
        except TimeoutError:
            _log.warning("A visitor who read nothing for %g s was cut off", patience)
        else:
            if not is_given_up():
                return
            _log.warning("A visitor who reads too slowly was cut off")
        end()
        raise OSError("the visitor does not read")  # which Streamlit takes for a lost line

    return send_in_time


class _Watch:
    """``asyncio.timeout`` for one message after the other: its timer is set once for many of them.

    A timer for each costs 13 µs, and a page has ninety messages.
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._since = 0.0
        self._task: asyncio.Task[Any] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_late = False

    async def __aenter__(self) -> None:
        loop = asyncio.get_running_loop()
        self._task, self._since = asyncio.current_task(), loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self._patience, self._look, loop)

    async def __aexit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        task, self._task = self._task, None
        if self._is_late and kind is asyncio.CancelledError and task is not None:
            self._is_late = False
            task.uncancel()
            raise TimeoutError

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel what waits for too long; else look again when it would have."""
        self._timer = None
        if self._task is None:
            return
        left = self._since + self._patience - loop.time()
        if left > 0:
            self._timer = loop.call_later(left, self._look, loop)
        else:
            self._is_late = True
            self._task.cancel()


def cut(receive: Receive) -> None:
    """End the connection that `receive` belongs to, whatever is still to be sent.

    ASGI has no word for it: closing waits until all is sent, which may be never. uvicorn's
    `receive` is a method of the connection.
    """
    receive.__self__.transport.abort()  # type: ignore[attr-defined]
