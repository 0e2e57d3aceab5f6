"""Have Streamlit send whole messages where the page may have dropped its cached copies.

The page keeps large messages, and Streamlit sends a reference in their place. With each request the
page says which it has. It drops what no run of late has used when a run ends, and may have asked
for the next run before: then the reference leads to nothing, and Streamlit shows "Connection error"
(https://github.com/streamlit/streamlit/pull/11302 names the order of events, and leaves it open). A
file's upload asks for two runs at once, so it is no rare one. The page is safe where it knew that
the run before had begun when it asked; a request that came too soon to be sure of that is taken to
have no messages, and gets them whole.
"""

import time
from collections.abc import Callable
from math import inf

from starlette.types import Message, Receive, Send

from hookviz.ui.serving.messages import event_kind, rerun_request

_TRIP = 1.0  # seconds that a message may take to the page, and the page's next one back


class CachedMessages:
    """Filter that takes back what a request says is cached where the page may not have it."""

    def __init__(
        self, receive: Receive, send: Send, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Wrap both directions of a connection.

        Args:
            receive: what the page sends.
            send: to the page.
            clock: seconds that only grow.
        """
        self._receive, self._send, self._clock = receive, send, clock
        self._asked = 0  # requests whose runs have not begun, as far as is known
        self._began_at = -inf
        self._ended_at = -inf  # of the last run, while no other was asked for since

    async def receive(self) -> Message:
        """Return the next message of the page."""
        message = await self._receive()
        request = rerun_request(message)
        if request is None:
            return message
        is_sure = self._is_sure()
        self._asked, self._ended_at = self._asked + 1, inf
        if is_sure or not request.rerun_script.cached_message_hashes:
            return message
        del request.rerun_script.cached_message_hashes[:]
        return {**message, "bytes": request.SerializeToString()}

    async def send(self, message: Message) -> None:
        """Send a message to the page, and note whether a run begins or ends with it."""
        kind = event_kind(message)
        if kind == "new_session":
            self._asked, self._began_at = max(0, self._asked - 1), self._clock()
            self._ended_at = inf
        elif kind == "script_finished":
            self._ended_at = self._clock()
        await self._send(message)

    def _is_sure(self) -> bool:
        """Return whether the page knew of the begin of every run that was asked for."""
        now = self._clock()
        if now - self._ended_at >= _TRIP:  # of two requests Streamlit may make one run
            self._asked = 0
            return True
        is_long = now - self._began_at >= _TRIP and self._ended_at == inf
        return not self._asked and is_long
