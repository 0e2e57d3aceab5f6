"""Read the messages between a page and Streamlit: rerun requests, and what the page is told.

`MessageReader` waits for them with a time limit.
"""

import asyncio

from starlette.types import Message, Receive

from hookviz.ui.streamlit_internals import BackMsg, DecodeError, ForwardMsg, WidgetState

_LONGEST = 1 << 11  # bytes of the messages that tell of a run's begin and end
_TRIGGERS = {"trigger_value", "string_trigger_value", "chat_input_value", "json_trigger_value"}


class MessageReader:
    """Reader of one connection's messages; giving up the wait for one loses none."""

    def __init__(self, receive: Receive) -> None:
        """Wrap `receive`, which is not called before the first read."""
        self._receive = receive
        self._pending: asyncio.Future[Message] | None = None

    async def within(self, seconds: float | None = None) -> Message | None:
        """Return the next message, or None where none comes in time; without a time, wait on."""
        if self._pending is None:
            self._pending = asyncio.ensure_future(self._receive())
        await asyncio.wait([self._pending], timeout=seconds)
        if not self._pending.done():
            return None
        received, self._pending = self._pending, None
        return received.result()

    async def next(self) -> Message:
        """Return the next message, however long it takes."""
        message = await self.within()
        assert message is not None
        return message

    def close(self) -> None:
        """Cancel the wait for a message, if there is one."""
        if self._pending is not None:
            self._pending.cancel()


def rerun_request(message: Message) -> BackMsg | None:
    """Return the request to run the page in a message; None where it is something else."""
    request = BackMsg()
    try:
        request.ParseFromString(message.get("bytes") or b"")
    except DecodeError:
        return None
    return request if request.WhichOneof("type") == "rerun_script" else None


def as_full_rerun(message: Message, request: BackMsg) -> Message:
    """Return the message with its request for a fragment made one for the whole page."""
    request.rerun_script.fragment_id = ""
    return {**message, "bytes": request.SerializeToString()}


def event_kind(message: Message) -> str | None:
    """Return Streamlit's name for what a message tells the page; None for a large one.

    Those of a run's begin (``"new_session"``) and end (``"script_finished"``) never are large.
    """
    data: bytes = message.get("bytes") or b""
    if not data or len(data) >= _LONGEST:
        return None
    kind: str | None = ForwardMsg.FromString(data).WhichOneof("type")
    return kind


def is_trigger(state: WidgetState | None) -> bool:
    """Return whether a widget's state happened once, as a click does, and is not a value it keeps.

    Streamlit calls these values triggers.
    """
    kind = state.WhichOneof("value") if state is not None else None
    if kind not in _TRIGGERS:
        return False
    value = getattr(state, kind)
    return bool(value.ListFields() if hasattr(value, "ListFields") else value)
