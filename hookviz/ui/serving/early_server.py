"""Answer while the page is still being loaded: a browser fetches its scripts in the meantime.

Nothing here imports torch. What needs the page waits for it; the health check and the files of the
page are answered from the first moment on.
"""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import BaseRoute, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from hookviz.machine import memory
from hookviz.machine.memory import keep_freed_memory
from hookviz.machine.torch_loading import import_torchvision
from hookviz.serving import garbage
from hookviz.settings import settings
from hookviz.ui.serving.early_files import EarlyFiles
from hookviz.ui.serving.front import Front

SCRIPT = Path(__file__).parent.with_name("main.py")
"""The page's script."""

_PAGE = "hookviz.ui.page"  # with all that a first visitor sees
_FILES = ("/_stcore/", "/static/", "/component/", "/media/")  # Streamlit's own

_log = logging.getLogger("hookviz")


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
    import_torchvision()
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
