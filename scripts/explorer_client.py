"""Ask the explorer's questions as its client does, without a browser.

`scripts.visitor` gets what the page hands over: the route, the token and the subject.

async with arrive(address, {}) as tab:
    await tab.run()
    async with exploring(tab) as explorer:
        await explorer.show()
        await explorer.choose_layer("conv1")
"""

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from scripts.visitor import PATIENCE, Visitor

EXPLORER = "hookviz_explorer"
"""Name of the component that hands over where and about what is asked."""


class Told(NamedTuple):
    """One message of an answer: its facts, among them its ``kind``, and a file's bytes."""

    facts: dict[str, Any]
    data: bytes


class RefusedError(Exception):
    """Says with which status a question was refused, and why."""

    def __init__(self, status: int, says: str) -> None:
        super().__init__(f"{status}: {says}")
        self.status = status


class ExplorerClient:
    """Client of one tab: what is chosen, and what it was answered.

    Attributes:
        view: what is chosen, as the link's parameters.
        tiles: the picture of the tiles as they were answered last.
        asked: how many questions were asked.
    """

    def __init__(self, tab: Visitor) -> None:
        """Ask about what the tab's page hands over."""
        self._tab = tab
        self.view: dict[str, str] = {}
        self.tiles = b""
        self.asked = 0
        self._known: dict[str, Told] = {}
        self._is_closed = False
        self._lines: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def show(self) -> None:
        """Ask for all that stands on the screen in this view, and is not known yet."""
        self.tiles = b""
        facts, tiles = await asyncio.gather(self._know("layers"), self._know("tiles"))
        self.tiles = tiles.data
        listed = facts.facts["listed"]
        questions = [
            self._know("photograph", about=""),
            self._know("tree", about=listed),
            self._know("field", about=facts.facts["layer"]),
        ]
        channel = int(self.view.get("channel", -1))
        if channel in tiles.facts["order"]:
            rows, columns = tiles.facts["rows"], tiles.facts["columns"]
            row, column = map(int, self.view["cell"].split(",")[:2])
            cell = {"row": min(row, rows - 1), "column": min(column, columns - 1)}
            questions += [
                self._know("channel", channel=channel),
                self._know("excites", channel=channel),
                self._know("cell", channel=channel, **cell),
            ]
        await asyncio.gather(*questions)

    async def choose_layer(self, layer: str) -> None:
        """Choose another layer."""
        self.view["layer"] = layer
        await self.show()

    async def pick(self, channel: int, cell: tuple[int, int]) -> None:
        """Click a cell of a channel's tile, or another cell of the channel that is picked."""
        self.view |= {"channel": str(channel), "cell": f"{cell[0]},{cell[1]}"}
        await self.show()

    async def ask(self, name: str, **facts: Any) -> Told:
        """Ask a question and return its answer.

        Raises:
            RefusedError: there is none.
        """
        page = self._tab.facts[EXPLORER]
        body = {
            "subject": page["subject"],
            "view": self.view,
            "question": {"name": name, **facts},
        }
        self.asked += 1
        path = f"{page['path']}?{urlencode({'token': page['token'], 'lang': 'en'})}"
        status, text = await asyncio.wait_for(
            self._answered(path, json.dumps(body).encode()), PATIENCE
        )
        if status != 200:
            raise RefusedError(status, _words(text))
        messages = list(_messages(text))
        last = messages[-1]
        if last.facts["kind"] == "refused":
            raise RefusedError(last.facts["status"], last.facts["says"])
        return last

    async def _know(self, name: str, about: str | None = None, **facts: Any) -> Told:
        """Return an answer that is known, or ask; `about` is what of the view it depends on."""
        subject = self._tab.facts[EXPLORER]["subject"]
        view = {key: word for key, word in self.view.items() if key not in ("channel", "cell")}
        key = json.dumps([name, facts, subject, view if about is None else about])
        if key not in self._known:
            self._known[key] = await self.ask(name, **facts)
        return self._known[key]

    async def _answered(self, path: str, body: bytes) -> tuple[int, bytes]:
        """Send a request until it is not told to come again; return status and body."""
        status, headers, text = await self._post(path, body)
        while status == 429:  # more in a second than a person: the page's client comes again too
            await asyncio.sleep(float(headers["retry-after"]))
            status, headers, text = await self._post(path, body)
        return status, text

    async def _post(self, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """Send a request on a line that is free, or a new one; return status, headers, body."""
        address = urlsplit(self._tab.address)
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {address.netloc}\r\nOrigin: {self._tab.address}\r\n"
            f"Accept-Encoding: gzip\r\nContent-Type: application/json\r\n"
            f"Cookie: {'; '.join(f'{name}={value}' for name, value in self._tab.cookies.items())}"
            f"\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()
        while self._lines:
            line = self._lines.pop()
            with suppress(OSError, asyncio.IncompleteReadError):  # closed by now, as a browser sees
                return await self._exchange(line, head + body)
        line = await asyncio.open_connection(address.hostname, address.port, limit=1 << 22)
        return await self._exchange(line, head + body)

    async def _exchange(
        self, line: tuple[asyncio.StreamReader, asyncio.StreamWriter], request: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        reader, writer = line
        is_whole = False
        try:
            writer.write(request)
            answer = await reader.readuntil(b"\r\n\r\n")
            first, *lines = answer.decode("latin-1").split("\r\n")
            headers = {
                name.strip().lower(): value.strip()
                for name, _, value in (each.partition(":") for each in lines)
            }
            if "chunked" in headers.get("transfer-encoding", ""):
                body = b""
                while size := int(await reader.readuntil(b"\r\n"), 16):
                    body += (await reader.readexactly(size + 2))[:-2]
                await reader.readexactly(2)
            else:
                body = await reader.readexactly(int(headers.get("content-length", 0)))
            is_whole = headers.get("connection") != "close"
            return int(first.split()[1]), headers, body
        finally:
            if is_whole and not self._is_closed:
                self._lines.append(line)
            else:
                writer.close()

    def close(self) -> None:
        """Close the lines; one that is in use closes after its answer."""
        self._is_closed = True
        for _, writer in self._lines:
            writer.close()


def _words(body: bytes) -> str:
    """Return why the server refuses; nothing where it is a proxy that does."""
    try:
        return str(json.loads(body)["says"])
    except ValueError:
        return ""


def _messages(body: bytes) -> Iterator[Told]:
    at = 0
    while at < len(body):
        rest, length = struct.unpack_from("<II", body, at)
        yield Told(
            json.loads(body[at + 8 : at + 8 + length]), body[at + 8 + length : at + 4 + rest]
        )
        at += 4 + rest


@asynccontextmanager
async def exploring(tab: Visitor) -> AsyncIterator[ExplorerClient]:
    """Explore in a tab, for the block; its page has to have run."""
    explorer = ExplorerClient(tab)
    try:
        yield explorer
    finally:
        explorer.close()
