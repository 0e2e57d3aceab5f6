"""The app with somebody ahead in its queue, who stays until told to go, for tests."""

import threading

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from hookviz.serving import capacity
from hookviz.ui.serving import connections, lifecycle

_go = threading.Event()


def _stay() -> None:
    with capacity.admission().turn("somebody"):
        _go.wait(120)


async def ahead(_request: Request) -> JSONResponse:
    """Somebody comes and takes the turn."""
    threading.Thread(target=_stay, daemon=True).start()
    return JSONResponse({})


async def go(_request: Request) -> JSONResponse:
    """They go."""
    _go.set()
    return JSONResponse({})


async def probe(_request: Request) -> JSONResponse:
    """How many wait and run, and the bytes that are kept."""
    admission = capacity.admission()
    return JSONResponse(
        {
            "waiting": admission.waiting,
            "running": admission.running,
            "used": capacity.activation_budget().used,
        }
    )


app = st.App(
    lifecycle.SCRIPT,
    middleware=connections.MIDDLEWARE,
    lifespan=lifecycle.lifespan,
    on_script_error=lifecycle.on_script_error,
    routes=[
        *lifecycle.ROUTES,
        Route("/ahead", ahead),
        Route("/go", go),
        Route("/probe", probe),
    ],
)
