"""Send a stream of frames without a browser: `scripts.visitor` gets the token.

async with arrive(address, {"live": "1"}) as tab:
    await tab.run()
    async with live(address, tab) as stream:
        answer = await stream.ask(1, jpeg)
"""

import asyncio
import json
import socket
import struct
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from websockets.asyncio.client import ClientConnection, connect

from scripts.visitor import PATIENCE, Visitor

LIVE_APP = (
    *(sys.executable, "-m", "streamlit", "run", "tests/e2e/live_app.py"),
    *("--server.port", "PORT", "--server.address", "127.0.0.1"),
)
"""A server whose page offers each visitor a stream."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to one frame: the facts, and the pictures that came with them."""

    facts: dict[str, Any]
    blobs: tuple[bytes, ...]


def read_answer(data: bytes) -> Answer:
    """Parse an answer into its parts."""
    (length,) = struct.unpack_from("<I", data)
    facts = json.loads(data[4 : 4 + length])
    blobs, at = [], 4 + length
    for size in facts["blobs"]:
        blobs.append(data[at : at + size])
        at += size
    assert at == len(data)
    return Answer(facts, tuple(blobs))


class LiveStream:
    """One connection that sends frames and gets answers."""

    def __init__(self, opened: ClientConnection) -> None:
        """Speak over a connection that is open."""
        self.socket = opened

    async def send(self, number: int, data: bytes) -> None:
        """Send a frame, without waiting for its answer."""
        await self.socket.send(struct.pack("<I", number) + data)

    async def wish(self, **options: Any) -> None:
        """Send which channel and cell are picked."""
        await self.socket.send(json.dumps(options))

    async def hear(self) -> Answer | dict[str, str]:
        """Return the next answer, or what was said in its place."""
        data = await asyncio.wait_for(self.socket.recv(), PATIENCE)
        return read_answer(data) if isinstance(data, bytes) else json.loads(data)

    async def ask(self, number: int, data: bytes) -> Answer:
        """Send a frame and return its answer."""
        await self.send(number, data)
        heard = await self.hear()
        assert isinstance(heard, Answer), heard
        return heard


def token_of(tab: Visitor) -> str:
    """Return the token that the page of a tab offers."""
    return next(text[6:] for text in reversed(tab.texts) if text.startswith("token:"))


@asynccontextmanager
async def live(
    address: str,
    tab: Visitor,
    *,
    token: str = "",
    cookie: str | None = None,
    origin: str = "",
    language: str = "en",
    line: socket.socket | None = None,
) -> AsyncIterator[LiveStream]:
    """Open the stream of a tab, for the block.

    Args:
        address: of the server.
        tab: whose cookies and token it comes with.
        token: another one.
        cookie: what the request says its cookies are, in place of the tab's.
        origin: whose page it comes from, in place of the server's.
        language: in which it wants to be told why it ends.
        line: a connection to the server that is there already.
    """
    own = "; ".join(f"{name}={value}" for name, value in tab.cookies.items())
    async with connect(
        address.replace("http", "ws", 1)
        + "/hookviz/live?"
        + urlencode({"token": token or token_of(tab), "lang": language}),
        additional_headers={"Cookie": own if cookie is None else cookie},
        origin=origin or address,  # type: ignore[arg-type]
        max_size=None,
        open_timeout=PATIENCE,
        compression=None,
        sock=line,
    ) as opened:
        yield LiveStream(opened)
