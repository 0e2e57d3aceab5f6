"""The app with a window into its memory and its queue, for tests.

It has a lens of a test's own, which grows, and finds weights where a test says.
"""

import threading
from pathlib import Path

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import hookviz.lenses
from hookviz.models import catalog
from hookviz.serving import capacity
from hookviz.serving.kept_photographs import kept_photographs
from hookviz.ui.serving import connections, early_server, lifecycle

_FOLDER = str(Path(__file__).parent / "lenses")
if _FOLDER not in hookviz.lenses.__path__:
    hookviz.lenses.__path__.append(_FOLDER)

_go = threading.Event()


async def probe(_request: Request) -> JSONResponse:
    """How many wait and run, and the bytes of activations that all sessions hold now.

    What all share of a sample and what is kept of pages that have gone does not count.
    """
    fair_queue = capacity.queue()
    return JSONResponse(
        {
            "waiting": fair_queue.waiting,
            "running": fair_queue.running,
            "used": capacity.activation_budget().used
            - capacity.sample_activations().used
            - kept_photographs().used,
        }
    )


def _stay() -> None:
    with capacity.queue().turn(object()):
        _go.wait(120)


async def ahead(_request: Request) -> JSONResponse:
    """As many people come as are served at once, and take the turns until told to go."""
    _go.clear()
    for _ in range(capacity.run_plan().runs):
        threading.Thread(target=_stay, daemon=True).start()
    return JSONResponse({"runs": capacity.run_plan().runs})


async def go(_request: Request) -> JSONResponse:
    """They go."""
    _go.set()
    return JSONResponse({})


async def weights(request: Request) -> JSONResponse:
    """From now on all weights are at ``url``.

    The hash in a file's name can't be met by weights made on the spot, so their name is another.
    """
    url = request.query_params["url"]
    catalog.weights_url = lambda _name: url  # type: ignore[assignment]
    return JSONResponse({})


app = st.App(
    early_server.SCRIPT,
    middleware=connections.MIDDLEWARE,
    lifespan=lifecycle.lifespan,
    on_script_error=lifecycle.on_script_error,
    routes=[
        *lifecycle.ROUTES,
        *(Route(f"/{each.__name__}", each) for each in (probe, ahead, go, weights)),
    ],
)
