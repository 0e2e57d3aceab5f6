"""The app with classes that can be begun and joined without a page, for tests and `class_load`."""

import secrets
from pathlib import Path

import streamlit as st
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import hookviz.ui
from hookviz.classroom.classes import classes
from hookviz.classroom.question import Riddle, ask_riddle, read_question
from hookviz.errors import ClassroomError
from hookviz.ui.serving import class_route, connections, flow_control, lifecycle
from hookviz.ui.serving.visitors import client_address

flow_control.SEND_TIMEOUT = 2.0
class_route._PATIENCE = class_route._SILENCE = 1.0


async def begin(_request: Request) -> JSONResponse:
    """A new class: its code and the teacher's secret."""
    try:
        begun = classes().begin(secrets.token_hex(), secrets.token_hex())
    except ClassroomError as error:
        return JSONResponse({"error": str(error)}, 409)
    return JSONResponse({"code": begun.code, "token": begun.secret_for_the_teacher()})


async def admit(request: Request) -> JSONResponse:
    """A pass for whoever says that it is ``who``."""
    code, who = request.query_params["code"], request.query_params["who"]
    try:
        held = classes().find(code, who, client_address(request.scope))
        return JSONResponse({"code": code, "token": held.admit(who)})
    except ClassroomError as error:
        return JSONResponse({"error": str(error)}, 409)


async def ask(request: Request) -> JSONResponse:
    """A question to a class."""
    held = classes().by_code(request.query_params["code"])
    assert held is not None
    held.ask(read_question(request.query_params["words"], request.query_params.getlist("answer")))
    return JSONResponse({})


async def riddle(request: Request) -> JSONResponse:
    """A channel for a class to guess, of two names, the second of which is right."""
    held = classes().by_code(request.query_params["code"])
    assert held is not None
    pictures = ("data:,patch " * 2_000,) * 4
    where: dict[str, str | int] = {"layer": "stage3.first.conv", "channel": 7}
    made = Riddle(pictures, ("dots", "star"), 1, where, "data:,secret map")
    held.ask(ask_riddle(made), is_first=True)
    return JSONResponse({})


async def end(request: Request) -> JSONResponse:
    """End a class."""
    held = classes().by_code(request.query_params["code"])
    assert held is not None
    classes().end(held)
    return JSONResponse({})


async def probe(_request: Request) -> JSONResponse:
    """What there is in memory."""
    held = list(classes()._by_code.values())
    return JSONResponse(
        {
            "classes": len(held),
            "passes": sum(len(each._followers) for each in held),
            "seats": sum(each.seat is not None for one in held for each in one._followers.values()),
        }
    )


lifecycle.share_cores()
app = st.App(
    Path(hookviz.ui.__file__).with_name("main.py"),
    middleware=connections.MIDDLEWARE,
    lifespan=lifecycle.lifespan,
    on_script_error=lifecycle.on_script_error,
    routes=[
        *lifecycle.ROUTES,
        *(Route(f"/{each.__name__}", each) for each in (begin, admit, ask, riddle, end, probe)),
    ],
)
