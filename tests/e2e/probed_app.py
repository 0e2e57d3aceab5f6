"""The app with a window into its memory, and with weights of a test's own, for tests."""

import os

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from hookviz.models import catalog
from hookviz.serving import capacity
from hookviz.ui.serving import lifecycle

if "PROBE_WEIGHTS" in os.environ:
    # The hash in a file's name can't be met by weights made on the spot, so their name is another.
    catalog.weights_url = lambda _name: os.environ["PROBE_WEIGHTS"]  # type: ignore[assignment]


async def probe(_request: Request) -> JSONResponse:
    """Bytes of activations that all sessions hold now."""
    return JSONResponse({"used": capacity.activation_budget().used})


app = st.App(
    lifecycle.SCRIPT,
    lifespan=lifecycle.lifespan,
    on_script_error=lifecycle.on_script_error,
    routes=[Route("/probe", probe)],
)
