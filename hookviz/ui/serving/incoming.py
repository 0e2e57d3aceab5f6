"""What a page says over its connection and is told of its runs, and the patience to wait for it."""

import asyncio

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from starlette.types import Message, Receive
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState

_LONGEST = 1 << 11  # bytes of the messages that tell of a run's begin and end
_CLICKS = {"trigger_value", "string_trigger_value", "chat_input_value", "json_trigger_value"}


class Incoming:
    """The messages of a connection; giving up the wait for one loses none."""

    def __init__(self, receive: Receive) -> None:
        """Nothing is asked of `receive` before `within`."""
        self._receive = receive
        self._coming: asyncio.Future[Message] | None = None

    async def within(self, seconds: float | None = None) -> Message | None:
        """The next message; None where none comes in time, of which there is no end without."""
        if self._coming is None:
            self._coming = asyncio.ensure_future(self._receive())
        await asyncio.wait([self._coming], timeout=seconds)
        if not self._coming.done():
            return None
        come, self._coming = self._coming, None
        return come.result()

    async def next(self) -> Message:
        """The next message, however long it takes."""
        message = await self.within()
        assert message is not None
        return message

    def close(self) -> None:
        """Ask for nothing more."""
        if self._coming is not None:
            self._coming.cancel()


def read_request(message: Message) -> BackMsg | None:
    """The request to run the page; None where a message is something else."""
    request = BackMsg()
    try:
        request.ParseFromString(message.get("bytes") or b"")
    except DecodeError:
        return None
    return request if request.WhichOneof("type") == "rerun_script" else None


def of_whole_page(message: Message, request: BackMsg) -> Message:
    """The message with its request for a part of the page as one for all of it."""
    request.rerun_script.fragment_id = ""
    return {**message, "bytes": request.SerializeToString()}


def told_of(message: Message) -> str | None:
    """What a message tells the page, as Streamlit names it; None of a large one.

    Those of a run's begin (``"new_session"``) and end (``"script_finished"``) never are.
    """
    data: bytes = message.get("bytes") or b""
    if not data or len(data) >= _LONGEST:
        return None
    kind: str | None = ForwardMsg.FromString(data).WhichOneof("type")
    return kind


def is_click(state: WidgetState | None) -> bool:
    """Whether a widget's state is what happened once, such as a click, and not what is chosen."""
    kind = state.WhichOneof("value") if state is not None else None
    if kind not in _CLICKS:
        return False
    value = getattr(state, kind)
    return bool(value.ListFields() if hasattr(value, "ListFields") else value)
