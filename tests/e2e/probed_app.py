"""The app with a window into its memory, for tests."""

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from hookviz.ui import resources, serving


async def probe(_request: Request) -> JSONResponse:
    """Bytes of activations that all sessions hold now."""
    return JSONResponse({"used": resources.activations().used})


app = st.App(
    serving.SCRIPT,
    lifespan=serving.lifespan,
    on_script_error=serving.on_script_error,
    routes=[Route("/probe", probe)],
)
