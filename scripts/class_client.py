"""Join a class without a browser: `CLASS_APP` begins classes and lets pupils in.

async with sit(address, code, token) as seat:
    await seat.until("state")
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import requests
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from scripts.visitor import PATIENCE

CLASS_APP = (
    *(sys.executable, "-m", "streamlit", "run", "tests/e2e/class_app.py"),
    *("--server.port", "PORT", "--server.address", "127.0.0.1"),
)
"""A server whose classes can be begun by requests."""


class ClassSeat:
    """One screen's connection to a class.

    Attributes:
        view: all that was said of it so far, the newest of each.
        frames: of the teacher's camera, as they came.
    """

    def __init__(self, opened: ClientConnection) -> None:
        """Speak over a connection that is open."""
        self.socket = opened
        self.view: dict[str, Any] = {}
        self.frames: list[bytes] = []

    async def say(self, **message: Any) -> None:
        """Send a message."""
        await self.socket.send(json.dumps(message))

    async def hear(self) -> dict[str, Any]:
        """Wait for the next news, which are in the view too."""
        heard = await asyncio.wait_for(self.socket.recv(), PATIENCE)
        if isinstance(heard, bytes):
            self.frames.append(heard)
            return {}
        news: dict[str, Any] = json.loads(heard)
        self.view |= news
        return news

    async def until(self, **wanted: Any) -> None:
        """Wait until the view says this."""
        while self.view | wanted != self.view:
            await self.hear()

    async def shows(self, query: str) -> None:
        """Wait until the state is this."""
        while (self.view.get("state") or {}).get("query") != query:
            await self.hear()

    async def end(self) -> int:
        """Return the code with which it is closed, 1006 without one, after all that is said."""
        try:
            while True:
                await self.hear()
        except ConnectionClosed as closed:
            return closed.rcvd.code if closed.rcvd else 1006


def asked(address: str, path: str, **query: Any) -> dict[str, str]:
    """Return what the server of `CLASS_APP` answers to a request of a test."""
    answer = requests.get(f"{address}/{path}", params=query, timeout=PATIENCE)
    found: dict[str, str] = answer.json()
    return found


@asynccontextmanager
async def knock(address: str, *, origin: str = "") -> AsyncIterator[ClassSeat]:
    """Open a connection that has said nothing yet, for the block."""
    async with connect(
        address.replace("http", "ws", 1) + "/hookviz/class",
        origin=origin or address,  # type: ignore[arg-type]
        open_timeout=PATIENCE,
        compression=None,
    ) as opened:
        yield ClassSeat(opened)


@asynccontextmanager
async def sit(address: str, code: str, token: str, before: str = "") -> AsyncIterator[ClassSeat]:
    """Take a seat in a class, for the block."""
    async with knock(address) as seat:
        await seat.say(code=code, token=token, before=before)
        yield seat
