"""Redirect a short link to this page, with the query string that its code stands for.

Where a class code or a login stands before the page, it stands before the view too: the code goes
along to the page, which opens the view once the session is let in.
"""

from html import escape
from urllib.parse import parse_qsl, urlencode

import streamlit as st
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from hookviz.language.saying import say
from hookviz.language.speaking import speaking
from hookviz.serving.short_links import short_links
from hookviz.ui.languages import language_of
from hookviz.ui.serving import visitors

PATH = "/hookviz/go"
ASKED = "go"
"""Link parameter with the code of a short link that came before the door."""

_HOME = "../../"  # the page, seen from a code, wherever a proxy has put it


async def _redirect(request: Request) -> Response:
    """Redirect to the view of a code, or answer 404 with a page that says that there is none."""
    headers = {"Cache-Control": "no-store"}
    code = request.path_params["code"]
    if visitors.has_door():
        return RedirectResponse(f"{_HOME}?{urlencode({ASKED: code})}", 303, headers)
    query = short_links().query_of(code)
    if query is not None:
        return RedirectResponse(f"{_HOME}?{query}", 303, headers)
    with speaking(language_of(request)):
        return HTMLResponse(_unknown_code_page(), 404, headers)


def _unknown_code_page() -> str:
    link = say("To the first page")
    return (
        '<!doctype html><meta charset="utf-8"><title>HookViz</title>'
        '<meta name="viewport" content="width=device-width">'
        '<body style="font: 1.2rem/1.5 sans-serif; max-width: 34rem; margin: 3rem auto; '
        f'padding: 0 1rem">{escape(_unknown())} <a href="{_HOME}">{escape(link)}</a>'
    )


def _unknown() -> str:
    return say(
        "This short link is not known here. It holds for 12 hours, and until the server is started "
        "again. Whoever showed it can show a new one."
    )


def open_short_link() -> None:
    """Open the view of the link's code, or say that there is none; for a session that is let in."""
    code = st.query_params.get(ASKED)
    if code is None:
        return
    query = short_links().query_of(code)
    if query is None:
        del st.query_params[ASKED]
        st.toast(_unknown(), icon=":material/link_off:", duration="infinite")
        return
    st.query_params.from_dict(dict(parse_qsl(query)))
    st.rerun()


def route() -> Route:
    """Return the route of the short links."""
    return Route(PATH + "/{code}", _redirect)
