"""The app with a window into its memory, for tests.

It has a lens of a test's own, which grows, and finds weights where a test says.
"""

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


async def probe(_request: Request) -> JSONResponse:
    """The bytes of activations that all sessions hold now.

    What all share of a sample and what is kept of pages that have gone does not count.
    """
    shared = capacity.sample_activations().used + kept_photographs().used
    return JSONResponse({"used": capacity.activation_budget().used - shared})


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
        *(Route(f"/{each.__name__}", each) for each in (probe, weights)),
    ],
)
