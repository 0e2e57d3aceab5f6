"""Have a browser fetch at once what Streamlit's page would fetch when the first element arrives.

Streamlit's page comes without the files that draw its elements. The first run of ours is over when
it learns which ones it needs, and each of them names more.
"""

import re
from functools import cache
from pathlib import Path

import streamlit as st
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ELEMENTS = ("BidiComponent", "Button", "ButtonGroup", "Checkbox", "Html", "ImageList", "Selectbox")
"""What the first page is made of; `tests/e2e/test_early_files.py` compares it with a browser's."""

_FOLDER = Path(st.__file__).parent / "static"
_IMPORT = re.compile(r'(?:from|import)\s*["`]\./([\w.-]+\.js)["`]')
_NAMED = re.compile(r'"\./static/js/([\w.-]+\.js)"')
_HEAD_ENDS = b"</head>"


@cache
def early_links() -> bytes:
    """Return as HTML the links to all files of scripts that the first page needs beside its own."""
    folder = _FOLDER / "static" / "js"
    known = set(_NAMED.findall((_FOLDER / "index.html").read_text("utf-8")))
    wanted = [file.name for name in _ELEMENTS for file in sorted(folder.glob(f"{name}.*.js"))]
    early: list[str] = []
    for name in wanted:  # which grows
        if name not in known:
            known.add(name)
            early.append(name)
            wanted += _IMPORT.findall((folder / name).read_text("utf-8"))
    lines = (
        f'<link rel="modulepreload" crossorigin fetchpriority="low" href="./static/js/{name}">'
        for name in early
    )
    return "".join(lines).encode()


class EarlyFiles:
    """ASGI middleware that names these files in the page's HTML."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap `app`."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the page with the links in it, and everything else as it is."""
        if scope["type"] == "http" and scope["method"] == "GET" and scope["path"] == "/":
            send = _WithLinks(send).send
        await self._app(scope, receive, send)


class _WithLinks:
    """Response on its way, which is held until all of it is there."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None
        self._body = b""

    async def send(self, message: Message) -> None:
        """Send what comes, the whole page with its links."""
        if message["type"] == "http.response.start" and _is_page(message):
            self._start = message
        elif message["type"] == "http.response.body" and self._start is not None:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._send_page(self._start)
        else:
            await self._send(message)

    async def _send_page(self, start: Message) -> None:
        body = self._body.replace(_HEAD_ENDS, early_links() + _HEAD_ENDS, 1)
        # Of another text: what names a version of it or its length is not ours.
        others = (b"content-length", b"etag", b"last-modified", b"accept-ranges")
        kept = [(name, value) for name, value in start["headers"] if name.lower() not in others]
        headers = [*kept, (b"content-length", str(len(body)).encode())]
        await self._send({**start, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})


def _is_page(start: Message) -> bool:
    """Return whether a response is the page as text."""
    headers = {name.lower(): value for name, value in start["headers"]}
    kind = headers.get(b"content-type", b"")
    return (
        start["status"] == 200
        and kind.startswith(b"text/html")
        and b"content-encoding" not in headers
    )
