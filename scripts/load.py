"""A class on one server: many sessions that upload images of their own and switch layers.

    python -m scripts.load 1 10 40

Each session speaks the browser's own protocol (the WebSocket with its XSRF token, uploads, widget
states) to a real server on this machine. It uploads an image that no other session has, picks the
layers one after the other with a pause between clicks as a person makes them, and keeps every grid
that it is sent. Afterwards each grid is compared with what the library draws for that image.
"""

import asyncio
import base64
import io
import json
import os
import random
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import requests
from PIL import Image
from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

import hookviz
from hookviz.types import Model
from scripts.automatic_grid import automatic_grid
from scripts.servers import serve

CLICKS = 6
PAUSE = (1.0, 5.0)
"""Seconds between two clicks of one person, evenly spread."""

_MODELS = {"ShapesNet": "shapesnet", "ResNet-18": "resnet18"}
_PATIENCE = 60.0  # seconds after which a click has failed
_ALIKE = 0.995  # share of pixels: another number of threads may round a value the other way


@dataclass
class Shown:
    """One grid that a session was sent: for which layer, after how many seconds, and its PNG."""

    layer: str
    seconds: float
    png: bytes


@dataclass
class Outcome:
    """What one session saw."""

    image: bytes
    grids: list[Shown] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class Session:
    """One browser tab: its connection, and the widgets and the grid that it was last sent."""

    def __init__(self, address: str, socket: ClientConnection, token: str, query: str) -> None:
        self._address, self._socket, self._token = address, socket, token
        self._query = query
        self._states: dict[str, WidgetState] = {}
        self._id = ""
        self.widgets: dict[str, str] = {}  # a widget's id by its label
        self.grid = b""
        self.problem = ""

    async def run(self) -> None:
        """Run the page with the widgets as they are, until it has finished."""
        message = BackMsg()
        message.rerun_script.query_string = self._query
        message.rerun_script.widget_states.widgets.extend(self._states.values())
        await self._socket.send(message.SerializeToString())
        self.problem = ""
        while True:
            answer = await self._receive()
            kind = answer.WhichOneof("type")
            if kind == "new_session":
                self._id = answer.new_session.initialize.session_id or self._id
            elif kind == "delta":
                self._see(answer)
            elif kind == "script_finished":
                return

    async def choose(self, label: str, option: str) -> None:
        """Pick an option of a select box."""
        name = self.widgets[label]
        self._states[name] = WidgetState(id=name, string_value=option)
        await self.run()

    async def upload(self, image: bytes) -> None:
        """Change to uploads, and upload an image."""
        name = self.widgets["Image"]
        state = WidgetState(id=name)
        state.string_array_value.data.append("Upload")
        self._states[name] = state
        await self.run()
        message = BackMsg()
        message.file_urls_request.request_id = "1"
        message.file_urls_request.file_names.append("mine.png")
        message.file_urls_request.session_id = self._id
        await self._socket.send(message.SerializeToString())
        while (answer := await self._receive()).WhichOneof("type") != "file_urls_response":
            pass
        place = answer.file_urls_response.file_urls[0]
        headers = {"X-Xsrftoken": self._token, "Cookie": f"_streamlit_xsrf={self._token}"}
        files = {"file": ("mine.png", image, "image/png")}
        sent = await asyncio.to_thread(
            requests.put,
            self._address + place.upload_url,
            files=files,
            headers=headers,
            timeout=_PATIENCE,
        )
        sent.raise_for_status()
        name = self.widgets["An image file"]
        state = WidgetState(id=name)
        info = state.file_uploader_state_value.uploaded_file_info.add()
        info.file_id, info.name, info.size = place.file_id, "mine.png", len(image)
        info.file_urls.CopyFrom(place)
        self._states[name] = state
        await self.run()

    async def _receive(self) -> ForwardMsg:
        answer = ForwardMsg()
        data = await asyncio.wait_for(self._socket.recv(), _PATIENCE)
        answer.ParseFromString(data if isinstance(data, bytes) else data.encode())
        return answer

    def _see(self, answer: ForwardMsg) -> None:
        element = answer.delta.new_element
        kind = element.WhichOneof("type")
        if kind in ("selectbox", "button_group", "file_uploader"):
            widget = getattr(element, kind)
            self.widgets[widget.label] = widget.id
        elif kind == "alert" and element.alert.format == Alert.ERROR:
            self.problem = element.alert.body
        elif kind == "exception":
            self.problem = element.exception.message
        elif kind == "bidi_component" and element.bidi_component.component_name.endswith("mosaic"):
            data = json.loads(element.bidi_component.json)
            self.grid = base64.b64decode(data["picture"].partition(",")[2])


async def visit(address: str, model: str, layers: list[str], image: bytes, late: float) -> Outcome:
    """One person's visit: an upload, then one layer after the other."""
    outcome = Outcome(image)
    await asyncio.sleep(late)
    health = f"{address}/_stcore/health"
    answer = await asyncio.to_thread(requests.get, health, timeout=_PATIENCE)
    token = str(answer.cookies["_streamlit_xsrf"])
    query = urlencode({"model": model} | ({"weights": "random"} if model != "ShapesNet" else {}))
    try:
        async with connect(
            address.replace("http", "ws", 1) + "/_stcore/stream",
            subprotocols=["streamlit", token],  # type: ignore[list-item]
            additional_headers={"Cookie": f"_streamlit_xsrf={token}"},
            origin=address,  # type: ignore[arg-type]
            max_size=None,
        ) as socket:
            session = Session(address, socket, token, query)
            await session.run()
            await session.upload(image)
            for layer in layers:
                await asyncio.sleep(random.uniform(*PAUSE))  # noqa: S311 - a person's pause
                session.grid = b""
                started = time.perf_counter()
                await session.choose("Layer", layer)
                outcome.grids.append(Shown(layer, time.perf_counter() - started, session.grid))
                if session.problem:
                    outcome.errors.append(session.problem)
    except (OSError, TimeoutError, KeyError, requests.RequestException) as error:
        outcome.errors.append(f"{type(error).__name__}: {error}")
    return outcome


def picture(number: int) -> bytes:
    """An image that belongs to one session alone."""
    rng = np.random.default_rng(number)
    coarse = Image.fromarray(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8))
    file = io.BytesIO()
    coarse.resize((240, 180), Image.Resampling.BICUBIC).save(file, "PNG")
    return file.getvalue()


def is_own(model: Model, outcome: Outcome, shown: Shown) -> bool:
    """Whether a grid is the one of the session's own image."""
    if not shown.png:
        return False
    found = hookviz.capture(model, outcome.image, shown.layer)[shown.layer]
    expected = _pixels(automatic_grid(found).png())
    pixels = _pixels(shown.png)
    return pixels.shape == expected.shape and bool((pixels == expected).mean() > _ALIKE)


def _pixels(png: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    with Image.open(io.BytesIO(png)) as opened:
        return np.asarray(opened)


async def _class(address: str, model: str, layers: list[str], count: int) -> list[Outcome]:
    visits = []
    for number in range(count):
        order = random.Random(number).sample(layers, len(layers))  # noqa: S311
        chosen = [order[turn % len(order)] for turn in range(CLICKS)]
        late = number * PAUSE[1] / count
        visits.append(visit(address, model, chosen, picture(number), late))
    return await asyncio.gather(*visits)


def resident() -> float:
    """Megabytes that the server has in memory: a child process of this one. Linux only."""
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            text = status.read_text()
            command = (status.parent / "cmdline").read_text()
        except OSError:
            continue  # it has just ended
        facts = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
        if facts.get("PPid", "").strip() == str(os.getpid()) and "streamlit" in command:
            return int(facts["VmRSS"].split()[0]) / 1000
    return float("nan")


def measure(title: str, count: int) -> str:
    """One row of the table: so many people with one model on a server of their own."""
    model = hookviz.load_model(_MODELS[title], "pretrained" if title == "ShapesNet" else "random")
    layers = [layer.name for layer in hookviz.list_layers(model)]
    with serve() as address:
        asyncio.run(_class(address, title, layers, 1))  # a first visitor, and not counted
        before, started = resident(), time.perf_counter()
        outcomes = asyncio.run(_class(address, title, layers, count))
        lasted, after = time.perf_counter() - started, resident()
    grids = [(outcome, shown) for outcome in outcomes for shown in outcome.grids]
    wrong = sum(not is_own(model, *one) for one in grids)
    errors = [error for outcome in outcomes for error in outcome.errors]
    taken = [shown.seconds for _, shown in grids] or [float("nan")]
    late = sorted(taken)[max(0, round(0.95 * len(taken)) - 1)]
    for error in sorted(set(errors))[:3]:
        print(f"  {errors.count(error)} × {error}", file=sys.stderr)
    return (
        f"| {title} | {count} | {len(grids)} | {wrong} | {len(errors)} "
        f"| {statistics.median(taken):.2f} | {late:.2f} | {len(grids) / lasted:.1f} "
        f"| {(after - before) / count:.1f} |"
    )


def main() -> None:
    """Print a row for each number of sessions and each model."""
    counts = [int(text) for text in sys.argv[1:]] or [1, 10, 40]
    if max(counts) > 200:
        sys.exit("At most 200 sessions: this is for a machine of one's own.")
    print("| model | sessions | clicks | wrong | errors | p50 s | p95 s | clicks/s | MB/session |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for title in _MODELS:
        for count in counts:
            print(measure(title, count), flush=True)


if __name__ == "__main__":
    main()
