"""Redirect a short link to this page, with the query string that its code stands for."""

from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from hookviz.language.saying import say
from hookviz.language.speaking import speaking
from hookviz.serving.short_links import short_links
from hookviz.ui.languages import language_of

PATH = "/hookviz/go"
_HOME = "../../"  # the page, seen from a code, wherever a proxy has put it


async def _redirect(request: Request) -> Response:
    """Redirect to the view of a code, or answer 404 with a page that says that there is none."""
    headers = {"Cache-Control": "no-store"}
    query = short_links().query_of(request.path_params["code"])
    if query is not None:
        return RedirectResponse(f"{_HOME}?{query}", 303, headers)
    with speaking(language_of(request)):
        return HTMLResponse(_unknown_code_page(), 404, headers)


def _unknown_code_page() -> str:
    text = say(
        "This short link is not known here. It holds for 12 hours, and until the server is started "
        "again. Whoever showed it can show a new one."
    )
    link = say("To the first page")
    return (
        '<!doctype html><meta charset="utf-8"><title>HookViz</title>'
        '<meta name="viewport" content="width=device-width">'
        '<body style="font: 1.2rem/1.5 sans-serif; max-width: 34rem; margin: 3rem auto; '
        f'padding: 0 1rem">{escape(text)} <a href="{_HOME}">{escape(link)}</a>'
    )


def route() -> Route:
    """Return the route of the short links."""
    return Route(PATH + "/{code}", _redirect)
