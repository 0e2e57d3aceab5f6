"""Run one browser tab on a real server, in the browser's own protocol and without its screen.

It speaks the WebSocket with its XSRF token, uploads as a form does, sends the states of widgets,
and keeps what the page shows: the widgets, the grid, and every failure at whatever moment.
"""

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode

import requests
from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

PATIENCE = 60.0
"""Seconds after which a click has failed."""

_TOKEN = "_streamlit_xsrf"  # noqa: S105 - a cookie's name
_KEPT_RUNS = 2  # for which a browser keeps messages that the server then need not send again


class Visitor:
    """One tab: what it was sent, and what can be done in it.

    Attributes:
        address: of the server.
        cookies: what the server and the proxy before it have set, by name.
        widgets: a widget's id by its label.
        options: what a select box offers, by its label.
        problems: every error that the page showed, in the order of their coming.
        query: what the link says.
        sent: the kinds of elements that came, components of ours by name.
        texts: what stands on the page as plain text, in the order of its coming.
        runs: how many runs of the page have ended.
        facts: what the bar of a class and the explorer were given, by the component's name.
    """

    def __init__(
        self,
        address: str,
        socket: ClientConnection,
        cookies: Mapping[str, str],
        query: Mapping[str, str],
    ) -> None:
        self.address, self._socket, self.cookies = address, socket, cookies
        self.query = urlencode(query)
        self._states: dict[str, WidgetState] = {}
        self._session_id = ""
        self._parts: dict[str, str] = {}  # the fragment that a widget or a component is in, by name
        self._kept: dict[str, tuple[int, ForwardMsg]] = {}  # messages by hash, with their last run
        self.widgets: dict[str, str] = {}
        self.options: dict[str, list[str]] = {}
        self.problems: list[str] = []
        self.sent: list[str] = []
        self.texts: list[str] = []
        self.runs = 0
        self.facts: dict[str, Any] = {}

    async def go_back(self) -> None:
        """Run the page by its link alone, as after the browser's Back."""
        self._states.clear()
        await self.run(by_link=True)

    async def go_to(self, **words: str) -> None:
        """Go to another view by the link, whose words change; an empty one takes its word out."""
        link = dict(parse_qsl(self.query)) | words
        self.query = urlencode({name: text for name, text in link.items() if text})
        await self.run(by_link=True)

    async def run(self, *events: WidgetState, part: str = "", by_link: bool = False) -> None:
        """Run the page with the widgets as they are, and these events, until it has finished.

        Of the page it is only the fragment of that id which runs, where one is given; `by_link` it
        shows what the link says, whatever was chosen before.
        """
        message = BackMsg()
        message.rerun_script.is_history_navigation = by_link
        message.rerun_script.fragment_id = part
        message.rerun_script.query_string = self.query
        message.rerun_script.widget_states.widgets.extend([*self._states.values(), *events])
        self._kept = {
            name: kept for name, kept in self._kept.items() if kept[0] > self.runs - _KEPT_RUNS
        }
        message.rerun_script.cached_message_hashes.extend(self._kept)
        await self._socket.send(message.SerializeToString())
        while True:
            answer = await self._receive()
            kind = answer.WhichOneof("type")
            if kind == "new_session":
                self._session_id = answer.new_session.initialize.session_id or self._session_id
            elif kind == "page_info_changed":  # what the page itself wrote into the link
                self.query = answer.page_info_changed.query_string
            elif kind == "delta":
                self._see(answer)
            elif kind == "script_finished":
                self.runs += 1
                if answer.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                    return

    async def choose(self, label: str, option: str) -> None:
        """Pick an option of a select box; of layers, which have a number too, by its name alone."""
        name = self._widget(label)
        listed = self.options.get(label, [])
        option = next((each for each in listed if each.endswith(f" · {option}")), option)
        self._states[name] = WidgetState(id=name, string_value=option)
        await self.run(part=self._parts.get(label, ""))

    async def press(self, label: str) -> None:
        """Press a button."""
        state = WidgetState(id=self._widget(label), trigger_value=True)
        await self.run(state, part=self._parts[label])

    async def upload(self, image: bytes) -> None:
        """Change to uploads, and upload an image."""
        name = self._widget("Image")
        state = WidgetState(id=name)
        state.string_array_value.data.append("Upload")
        self._states[name] = state
        await self.run()
        await self.give("An image file", "mine.png", image)

    async def give(self, label: str, file_name: str, data: bytes) -> None:
        """Upload a file in the uploader of that label.

        Raises:
            requests.RequestException: the server does not take it.
        """
        message = BackMsg()
        message.file_urls_request.request_id = "1"
        message.file_urls_request.file_names.append(file_name)
        message.file_urls_request.session_id = self._session_id
        await self._socket.send(message.SerializeToString())
        while (answer := await self._receive()).WhichOneof("type") != "file_urls_response":
            pass
        place = answer.file_urls_response.file_urls[0]
        headers = {"X-Xsrftoken": self.cookies[_TOKEN]}
        files = {"file": (file_name, data, "application/octet-stream")}
        sent = await asyncio.to_thread(
            requests.put,
            self.address + place.upload_url,
            files=files,
            headers=headers,
            cookies=dict(self.cookies),
            timeout=PATIENCE,
        )
        sent.raise_for_status()
        name = self._widget(label)
        state = WidgetState(id=name)
        info = state.file_uploader_state_value.uploaded_file_info.add()
        info.file_id, info.name, info.size = place.file_id, file_name, len(data)
        info.file_urls.CopyFrom(place)
        self._states[name] = state
        await self.run()

    async def send(self, message: BackMsg) -> None:
        """Send a message that no page sends."""
        await self._socket.send(message.SerializeToString())

    def _widget(self, label: str) -> str:
        if label not in self.widgets:
            raise LookupError(f"the page has no {label!r}")
        return self.widgets[label]

    async def _receive(self) -> ForwardMsg:
        answer = ForwardMsg()
        data = await asyncio.wait_for(self._socket.recv(), PATIENCE)
        answer.ParseFromString(data if isinstance(data, bytes) else data.encode())
        if answer.WhichOneof("type") == "ref_hash":
            answer = self._kept[answer.ref_hash][1]
        if answer.metadata.cacheable:
            self._kept[answer.hash] = (self.runs, answer)
        return answer

    def _see(self, answer: ForwardMsg) -> None:
        element = answer.delta.new_element
        kind = str(element.WhichOneof("type"))
        if kind in ("selectbox", "button", "button_group", "file_uploader"):
            widget = getattr(element, kind)
            self.widgets[widget.label] = widget.id
            self._parts[widget.label] = answer.delta.fragment_id
            if kind == "selectbox":
                self.options[widget.label] = list(widget.options)
        elif kind == "alert" and element.alert.format == Alert.ERROR:
            self.problems.append(element.alert.body)
        elif kind == "text":
            self.texts.append(element.text.body)
        elif kind == "exception":
            self.problems.append(element.exception.message)
        elif kind == "bidi_component":
            component = element.bidi_component
            kind = component.component_name.rpartition(".")[2]
            self.widgets[kind], self._parts[kind] = component.id, answer.delta.fragment_id
            if kind in ("hookviz_follower", "hookviz_explorer"):
                self.facts[kind], _ = unpacked(component.bytes)
        self.sent.append(kind)


def unpacked(data: bytes) -> tuple[dict[str, Any], bytes]:
    """Read a component's facts and picture as `hookviz.ui.components.files.packed` wrote them."""
    (length,) = struct.unpack_from("<I", data)
    facts: dict[str, Any] = json.loads(data[4 : 4 + length])
    return facts, data[4 + length :]


@asynccontextmanager
async def arrive(address: str, query: Mapping[str, str]) -> AsyncIterator[Visitor]:
    """Open the page by a link in a new tab, for the block; nothing has run yet.

    Raises:
        OSError: no server answers there.
    """
    health = f"{address}/_stcore/health"
    answer = await asyncio.to_thread(requests.get, health, timeout=PATIENCE)
    cookies = {each.name: each.value or "" for each in answer.cookies}
    async with connect(
        address.replace("http", "ws", 1) + "/_stcore/stream",
        subprotocols=["streamlit", cookies[_TOKEN]],  # type: ignore[list-item]
        additional_headers={"Cookie": "; ".join(f"{name}={cookies[name]}" for name in cookies)},
        origin=address,  # type: ignore[arg-type]
        max_size=None,
        open_timeout=PATIENCE,
    ) as socket:
        yield Visitor(address, socket, cookies, query)
