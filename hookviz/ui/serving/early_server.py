"""Answer while the page is still being loaded: a browser fetches its scripts in the meantime.

1. `Front` adds the headers of safety to every answer, and hides what is the machine's own.
2. `WaitForPage` lets what needs the page wait for it. The health check and the page's files are
   answered from the first moment on.
3. `EarlyFiles` names the scripts of the first page in its HTML. Streamlit's page comes without the
   files that draw its elements: the first run of ours is over when it learns which ones it needs,
   and each of them names more.

Nothing here imports torch.
"""

import asyncio
import logging
import os
import re
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hookviz.machine import memory
from hookviz.machine.memory import keep_freed_memory
from hookviz.serving import garbage
from hookviz.settings import settings

_CLOSED: Sequence[str] = ("/_stcore/metrics", "/_stcore/agent")
"""What Streamlit tells whoever asks of the machine, sessions and files."""

_INNER: Sequence[str] = ("/health/deep",)
"""What the machine and its cluster ask for, and no proxy passes on."""

_POLICY = {
    "default-src": "'self'",
    # the page's head, which has its words in it; components, which Streamlit makes blobs of; and
    # protobuf's whole numbers, which are WebAssembly
    "script-src": "'self' 'unsafe-inline' 'wasm-unsafe-eval' blob:",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "media-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "worker-src": "'self' blob:",
    "connect-src": "'self' data: blob:",
    "frame-src": "'none'",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'self'",
}
"""Where what a page loads may come from, and where it may send something: this server alone."""

_HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {where}" for name, where in _POLICY.items()),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
}
_ELEMENTS = ("BidiComponent", "Button", "ButtonGroup", "Checkbox", "Html", "ImageList", "Selectbox")
"""What the first page is made of; `tests/e2e/test_early_files.py` compares it with a browser's."""

_FOLDER = Path(st.__file__).parent / "static"
_IMPORT = re.compile(r'(?:from|import)\s*["`]\./([\w.-]+\.js)["`]')
_NAMED = re.compile(r'"\./static/js/([\w.-]+\.js)"')
_HEAD_ENDS = b"</head>"
SCRIPT = Path(__file__).parent.with_name("main.py")
"""The page's script."""

_PAGE = "hookviz.ui.page"  # with all that a first visitor sees
_FILES = ("/_stcore/", "/static/", "/component/", "/media/")  # Streamlit's own

_log = logging.getLogger("hookviz")


class Front:
    """ASGI middleware before all others."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap `app`."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, whose answer gets the headers, errors and files included."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        # By whole parts of the path, as Streamlit's routes are, and below any base path.
        path = scope["path"].rstrip("/") + "/"
        is_passed_on = any(name == b"x-forwarded-for" for name, _ in scope["headers"])
        shut = (*_CLOSED, *_INNER) if is_passed_on else _CLOSED
        closed = any(f"{each}/" in path for each in shut)
        app = PlainTextResponse("Not Found", 404) if closed else self._app
        await app(scope, receive, send_with_headers)


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


class _Loading:
    """The page's modules: not there, or there with what connections pass through."""

    def __init__(self) -> None:
        self.lifecycle: Any = None
        self.middleware: Sequence[Middleware] = ()
        self.done = asyncio.Event()

    async def run(self, stack: AsyncExitStack, app: Any) -> None:
        """Load the page, and have the lifespan of what was loaded begin in `stack`."""
        with garbage.put_off():
            self.lifecycle = await asyncio.to_thread(_import)
            self.middleware = import_module("hookviz.ui.serving.connections").MIDDLEWARE
            await stack.enter_async_context(self.lifecycle.lifespan(app))
        self.done.set()


_loading = _Loading()


class WaitForPage:
    """ASGI middleware that lets what needs the page wait until it is loaded."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap `app`."""
        self._app = app
        self._whole: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a file at once, and everything else through what the page's modules add."""
        if scope["type"] == "lifespan" or (not _loading.done.is_set() and _is_file(scope)):
            await self._app(scope, receive, send)
            return
        await _loading.done.wait()
        if self._whole is None:
            self._whole = _whole(self._app)
        await self._whole(scope, receive, send)


def _is_file(scope: Scope) -> bool:
    """Return whether a request is for a file of the page, or for the simple health check."""
    path = str(scope["path"])
    is_get = scope["type"] == "http" and scope["method"] == "GET"
    return is_get and (path == "/" or path.startswith(_FILES))


def _whole(app: ASGIApp) -> ASGIApp:
    whole = with_routes(_loading.lifecycle.ROUTES, app)
    for each in reversed(_loading.middleware):
        whole = each.cls(whole, *each.args, **each.kwargs)
    return whole


def with_routes(routes: Sequence[BaseRoute], app: ASGIApp) -> ASGIApp:
    """Return what answers at `routes`, a wrong method with 405, and passes all else to `app`.

    In the application itself Starlette would answer what a route refuses. These are before it.
    """
    return ExceptionMiddleware(Router(routes, default=app))


MIDDLEWARE = [Middleware(Front), Middleware(WaitForPage), Middleware(EarlyFiles)]
"""For `streamlit.App`; the first is the outermost."""


@asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[None]:
    """Serve at once, and load the page meanwhile; where that fails, the process ends."""
    chosen = settings()  # what a person set is wrong before anybody is served
    # Before the threads that make passes begin.
    keep_freed_memory(memory.own_memory(chosen.memory_mb, chosen.processes).reserve)
    async with AsyncExitStack() as stack:
        loading = asyncio.create_task(_loading.run(stack, app))
        loading.add_done_callback(_end_if_failed)
        yield
        loading.cancel()


def _import() -> Any:
    """Import the page, and give each run its threads before the first pass."""
    import_module(_PAGE)
    lifecycle = import_module("hookviz.ui.serving.lifecycle")
    lifecycle.share_cores()
    return lifecycle


def _end_if_failed(loading: "asyncio.Task[None]") -> None:
    if not loading.cancelled() and loading.exception() is not None:
        _log.critical("The page can't be loaded", exc_info=loading.exception())
        os.kill(os.getpid(), signal.SIGTERM)


def on_script_error(error: Exception) -> bool:
    """Log the traceback and show a short message: no traceback reaches the page."""
    return bool(_loading.lifecycle.on_script_error(error))
