"""A click that ends a run of the page which takes long, wherever on the page it is.

Streamlit lets a click in a part that runs alone wait for the end of the run before, be that a
minute in the queue. A click in the rest of the page ends it. So in a long run the request for a
part becomes one for the page, which draws the part too.
"""

import time

from starlette.types import Message, Receive, Send

from hookviz.ui.serving.incoming import of_whole_page, read_request, told_of

_LONG = 0.3  # seconds after which a person who clicks does not mean to wait


class Interruption:
    """Stands between one connection's page and Streamlit."""

    def __init__(self, receive: Receive, send: Send, *, long: float = _LONG) -> None:
        """No run is known of yet.

        Args:
            receive: what the page says.
            send: to the page.
            long: seconds that a run may take before a click ends it.
        """
        self._receive, self._send, self._long = receive, send, long
        self._running_since: float | None = None

    async def receive(self) -> Message:
        """The next message of the page."""
        message = await self._receive()
        since = self._running_since
        if since is None or time.monotonic() - since < self._long:
            return message
        request = read_request(message)
        if request is None or not request.rerun_script.fragment_id:
            return message
        return of_whole_page(message, request)

    async def send(self, message: Message) -> None:
        """Send a message to the page, and note what it tells of a run."""
        kind = told_of(message)
        if kind == "new_session":
            self._running_since = time.monotonic()
        elif kind == "script_finished":
            self._running_since = None
        await self._send(message)
