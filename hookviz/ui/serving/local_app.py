"""Open the app on a person's own network, for `hookviz.exploring`.

The app's packages are imported when it starts: `hookviz.explore` is there without them, and says
what to install.
"""

import socket
import threading
import time
import warnings
import webbrowser
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

from torch import nn

from hookviz.errors import HookVizError, ModelError
from hookviz.language.saying import say
from hookviz.machine.installed import check_app
from hookviz.models import user_models
from hookviz.models.derived_models import copied
from hookviz.models.wrapping import wrap
from hookviz.types import Model

_START = 60.0  # seconds that the server may take to come up
_starting = threading.Lock()
_ports: list[int] = []  # of the one server that Streamlit lets a process have, once it runs


@dataclass(frozen=True, eq=False)
class Explorer:
    """Model in the app of this process; `close`, or leaving a ``with`` block, takes it off.

    The app itself serves all models of the process, and ends with it.

    Attributes:
        url: where to open it.
        model: what it shows: of a network of one's own a copy, so that it can go on training.
    """

    url: str
    model: Model

    def close(self) -> None:
        """Take the model off the app's list."""
        user_models.remove(self.model)

    def __enter__(self) -> "Explorer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_app(
    model: Model | nn.Module, *, port: int = 0, open_browser: bool = True, **options: Any
) -> Explorer:
    """Serve the app on a model from this process, as `hookviz.explore` says.

    A network of one's own is copied, as the app's threads answer while the caller trains it. One
    that can't be copied is shown itself, with a warning.

    Raises:
        ModelError: `model` is neither a module nor a `Model`.
        HookVizError: the app's packages are not installed, nothing can listen on that port, or the
            app is on another one already.
    """
    check_app()
    wrapped = wrap(model, **options)
    try:
        wrapped = copied(wrapped)
    except ModelError as error:
        shown = say("The app shows the network itself: leave it as it is while people look at it.")
        warnings.warn(f"{error} {shown}", stacklevel=3)
    with _starting:
        if not _ports:
            _ports.append(_start(port))
    if port not in (0, _ports[0]):
        raise HookVizError(f"The app of this process is on port {_ports[0]} already, not {port}.")
    user_models.add(wrapped)
    url = f"http://127.0.0.1:{_ports[0]}/?{urlencode({'model': wrapped.title})}"
    if open_browser:
        webbrowser.open(url)
    return Explorer(url, wrapped)


def _start(port: int) -> int:
    """Serve the app from a thread, and return its port."""
    import streamlit as st  # noqa: PLC0415 - the library does without these
    import uvicorn  # noqa: PLC0415
    from starlette.middleware import Middleware  # noqa: PLC0415

    from hookviz.ui.serving import (  # noqa: PLC0415
        connections,
        early_server,
        explorer_route,
        go_route,
        lifecycle,
        live_route,
    )
    from hookviz.ui.streamlit_internals import set_option  # noqa: PLC0415

    listener = socket.socket()
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise HookVizError(f"Port {port} can't be used: {error.strerror}. 0 is any.") from error
    set_option("runner.postScriptGC", False)  # Python's own is enough, and no click waits
    set_option("client.allowedOrigins", [])  # no page around it may send it messages
    app = st.App(
        early_server.SCRIPT,
        middleware=[Middleware(early_server.Front), *connections.MIDDLEWARE],
        lifespan=lifecycle.guest_lifespan,
        on_script_error=lifecycle.on_script_error,
        routes=[*explorer_route.routes(), live_route.route(), go_route.route()],
    )
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    deadline = time.monotonic() + _START
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise HookVizError("The app did not start; its log says why.")
        time.sleep(0.05)
    return int(listener.getsockname()[1])
