"""Turn a request to run one fragment into one for the whole page, where the fragment won't do.

Two cases, a filter on one connection's messages for each:

- What changes within one task of the browser the page tells in one request, and that names one
  fragment: the first that asked, whatever else changed (Streamlit says so in the browser's
  console). Where the browser is busy, a click and the closing of the menu beside it come within one
  task, and only the menu was drawn.
- Streamlit lets a click in a fragment wait for the end of the run before, be that a minute in the
  queue. A click in the rest of the page ends it.
"""

import time
from hashlib import blake2b

from starlette.types import Message, Receive, Send

from hookviz.ui.serving.messages import as_full_rerun, event_kind, is_trigger, rerun_request
from hookviz.ui.streamlit_internals import WidgetState

_LONG = 0.3  # seconds after which a person who clicks does not mean to wait


class SeveralChanges:
    """Filter that runs the whole page where one request tells of changes in several widgets."""

    def __init__(self, receive: Receive) -> None:
        """Wrap `receive`, which gives what the page sends."""
        self._receive = receive
        self._digests: dict[str, bytes] = {}

    async def receive(self) -> Message:
        """Return the next message of the page."""
        message = await self._receive()
        request = rerun_request(message)
        if request is None:
            return message
        states = {state.id: state for state in request.rerun_script.widget_states.widgets}
        before, self._digests = (
            self._digests,
            {name: _digest(state) for name, state in states.items()},
        )
        changes = sum(
            _is_change(state, before.get(name), self._digests[name])
            for name, state in states.items()
        )
        if changes < 2 or not request.rerun_script.fragment_id:
            return message
        return as_full_rerun(message, request)


def _is_change(state: WidgetState, before: bytes | None, now: bytes) -> bool:
    """Return whether a person has changed it; a widget that is new tells its first choice too."""
    if is_trigger(state):
        return True
    if before is None:
        return bool(state.bool_value)  # such as a menu that is opened
    return now != before


def _digest(state: WidgetState) -> bytes:
    return blake2b(state.SerializeToString(deterministic=True), digest_size=16).digest()


class LongRuns:
    """Filter that runs the whole page where a click comes during a run that takes long."""

    def __init__(self, receive: Receive, send: Send, *, long: float = _LONG) -> None:
        """Wrap both directions of a connection.

        Args:
            receive: what the page sends.
            send: to the page.
            long: seconds that a run may take before a click ends it.
        """
        self._receive, self._send, self._long = receive, send, long
        self._running_since: float | None = None

    async def receive(self) -> Message:
        """Return the next message of the page."""
        message = await self._receive()
        since = self._running_since
        if since is None or time.monotonic() - since < self._long:
            return message
        request = rerun_request(message)
        if request is None or not request.rerun_script.fragment_id:
            return message
        return as_full_rerun(message, request)

    async def send(self, message: Message) -> None:
        """Send a message to the page, and note whether a run begins or ends with it."""
        kind = event_kind(message)
        if kind == "new_session":
            self._running_since = time.monotonic()
        elif kind == "script_finished":
            self._running_since = None
        await self._send(message)
