"""The app on a person's own network, from a script or a notebook."""

import socket
import threading
import webbrowser
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any
from urllib.parse import urlencode

import streamlit as st
import uvicorn
from torch import nn

from hookviz import own
from hookviz.errors import HookVizError
from hookviz.loading import wrap
from hookviz.types import Model
from hookviz.ui import serving

_START = 60.0  # seconds that a server may take to come up


@dataclass(eq=False)
class Explorer:
    """A running app; `close` ends it, and so does leaving a ``with`` block.

    Attributes:
        url: where to open it.
        model: what it shows.
    """

    url: str
    model: Model
    _server: uvicorn.Server = field(repr=False)
    _thread: threading.Thread = field(repr=False)

    def close(self) -> None:
        """Stop the server and take the model off the app's list."""
        self._server.should_exit = True
        self._thread.join()
        own.remove(self.model)

    def __enter__(self) -> "Explorer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def explore(
    model: Model | nn.Module, *, port: int = 0, open_browser: bool = True, **options: Any
) -> Explorer:
    """Open the app on a model of your own, served by this process on this machine alone.

    Args:
        model: a module, which is wrapped, or a `Model`.
        port: where to listen; any free port by default.
        open_browser: open a browser on it.
        options: for `wrap`: ``preprocess``, ``categories``, ``name``.

    Raises:
        ModelError: `model` is neither.
        HookVizError: nothing can listen on that port.
    """
    wanted = model if isinstance(model, Model) else wrap(model, **options)
    listener = socket.socket()
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise HookVizError(f"Port {port} can't be used: {error.strerror}. 0 is any.") from error
    own.add(wanted)
    app = st.App(serving.SCRIPT, lifespan=serving.lifespan, on_script_error=serving.on_script_error)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    deadline = threading.Event()
    waited = 0.0
    while not server.started and thread.is_alive() and waited < _START:
        deadline.wait(0.05)
        waited += 0.05
    if not server.started:
        own.remove(wanted)
        raise HookVizError("The app did not start; its log says why.")
    query = urlencode({"model": wanted.title})
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/?{query}"
    if open_browser:
        webbrowser.open(url)
    return Explorer(url, wanted, server, thread)
