"""Widgets of several parts of the page that change at once.

What changes within one task of the browser the page tells in one request, and that names one part
to run alone: the first that asked, whatever else changed (Streamlit says so in the browser's
console). Where the browser is busy, a click and the closing of the menu beside it come within one
task, and only the menu was drawn. So a request that tells of several changes becomes one for the
page, which draws all parts.
"""

from hashlib import blake2b

from starlette.types import Message, Receive
from streamlit.proto.WidgetStates_pb2 import WidgetState

from hookviz.ui.serving.incoming import is_click, of_whole_page, read_request


class ChangedTogether:
    """Stands between one connection's page and Streamlit."""

    def __init__(self, receive: Receive) -> None:
        """Nothing was chosen yet.

        Args:
            receive: what the page says.
        """
        self._receive = receive
        self._known: dict[str, bytes] = {}

    async def receive(self) -> Message:
        """The next message of the page."""
        message = await self._receive()
        request = read_request(message)
        if request is None:
            return message
        states = {each.id: each for each in request.rerun_script.widget_states.widgets}
        known, self._known = self._known, {name: _digest(each) for name, each in states.items()}
        changes = sum(
            _is_change(each, known.get(name), self._known[name]) for name, each in states.items()
        )
        if changes < 2 or not request.rerun_script.fragment_id:
            return message
        return of_whole_page(message, request)


def _is_change(state: WidgetState, before: bytes | None, now: bytes) -> bool:
    """Whether a person has changed it; a widget that is new tells its first choice too."""
    if is_click(state):
        return True
    if before is None:
        return bool(state.bool_value)  # such as a menu that is opened
    return now != before


def _digest(state: WidgetState) -> bytes:
    return blake2b(state.SerializeToString(deterministic=True), digest_size=16).digest()
