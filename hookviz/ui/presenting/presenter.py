"""Show the presenter's buttons on every page, make links for the class, and read slide files.

The browser keeps the list of slides; the server checks an imported file and keeps nothing of it.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import streamlit as st

from hookviz import shallow_json
from hookviz.errors import HookVizError, shorten
from hookviz.language.saying import say
from hookviz.serving.short_links import short_links
from hookviz.ui import streamlit_internals
from hookviz.ui.components.files import component, packed
from hookviz.ui.link import qr_code
from hookviz.ui.presenting.known_link import for_the_class, known_part, read_query
from hookviz.ui.serving import go_route

SHORT = 60
"""Letters of a link that can be typed from the wall, at most."""

VERSION = 1
MOST_SLIDES = 100
LONGEST_TITLE = 80
MOST_LETTERS = 500_000
"""Letters of a slide file; no list of slides needs as many."""

_KEY = "presenter"
_ANSWER = "_presenter-answer"  # no widget has this key, so no link can set it
_NAME = "hookviz-slides"  # of the version in a slide file


class ClassLink(NamedTuple):
    """Link with its QR code.

    Attributes:
        link: the URL.
        is_code: whether it has a short code, which expires.
        picture: the QR code, as the URL of an SVG picture.
    """

    link: str
    is_code: bool
    picture: str


def link_for(base: str, query: dict[str, str], owner: str) -> ClassLink:
    """Return the link for the class to a view.

    Args:
        base: the page's address.
        query: the view, as a query by name.
        owner: of the short code that a long link gets.
    """
    text = for_the_class(query)
    base = base.partition("?")[0].partition("#")[0]
    link = f"{base}?{text}" if text else base
    is_code = len(link) > SHORT
    if is_code:
        code = short_links().code_for(text, owner)
        link = f"{base.rstrip('/')}{go_route.PATH}/{code}"
    return ClassLink(link, is_code, qr_code(link))


class Slide(NamedTuple):
    """A view with a title, as the query string of its link."""

    title: str
    query: str


def read_slides(text: str) -> tuple[Slide, ...]:
    """Read the text of a slide file.

    Raises:
        HookVizError: it is no slide file, or the message's slide is malformed.
    """
    if len(text) > MOST_LETTERS:
        raise HookVizError(
            say("The file is too large: {limit:,} letters is the most.", limit=MOST_LETTERS)
        )
    try:
        content = shallow_json.parse(text)
    except ValueError:
        raise HookVizError(
            say("This is no file of slides: it is not written in JSON. Export makes one.")
        ) from None
    if not isinstance(content, dict) or not isinstance(content.get("slides"), list):
        raise HookVizError(say("This is no file of slides: it has no list of slides."))
    if content.get(_NAME) != VERSION:
        raise HookVizError(
            say(
                "This is no file of slides that this page can read: {key} is {value}, and has to "
                "be {version}.",
                key=_NAME,
                value=shorten(repr(content.get(_NAME)), 40),
                version=VERSION,
            )
        )
    slides = content["slides"]
    if not 1 <= len(slides) <= MOST_SLIDES:
        raise HookVizError(
            say(
                "The file has {count:,} slides. From 1 to {limit} can be read.",
                count=len(slides),
                limit=MOST_SLIDES,
            )
        )
    return tuple(_read_slide(slide, number) for number, slide in enumerate(slides, 1))


def _read_slide(slide: Any, number: int) -> Slide:
    """Read and check one slide.

    Raises:
        HookVizError: it is malformed.
    """
    if not isinstance(slide, dict) or set(slide) != {"title", "query"}:
        wrong = say("it needs a title and a query, and nothing else.")
    elif not all(isinstance(part, str) for part in slide.values()):
        wrong = say("its title and its query have to be texts.")
    elif re.search("[\ud800-\udfff]", slide["title"] + slide["query"]):  # no browser takes it
        wrong = say("it has letters that can't be written.")
    elif not 1 <= len(slide["title"].strip()) <= LONGEST_TITLE:
        wrong = say("its title needs from 1 to {limit} letters.", limit=LONGEST_TITLE)
    else:
        try:
            read_query(slide["query"])
        except HookVizError as error:
            wrong = str(error)
        else:
            return Slide(slide["title"].strip(), slide["query"].removeprefix("?"))
    raise HookVizError(say("Slide {number}: {problem}", number=number, problem=wrong))


def show_presenter(class_link: Callable[[], str]) -> None:
    """Show the buttons, the slide list and the link for the class over a corner of the page.

    Args:
        class_link: returns the link into the class that this session teaches; empty without one.
    """
    with st.container(key="hv-presenter"):
        _show(class_link)


@st.fragment  # a request runs nothing else of the page
def _show(class_link: Callable[[], str]) -> None:
    def handle(name: str, part: str, respond: Callable[[str, str], None]) -> None:
        sent = st.session_state[_KEY].get(name)
        if isinstance(sent, Mapping) and {part, "number"} <= set(sent):
            respond(str(sent[part]), str(sent["number"])[:80])

    # In the session: of two quick runs Streamlit sends the second alone.
    answer = st.session_state.get(_ANSWER)
    component("presenter")(
        key=_KEY,
        data=packed({"words": _words(), "version": VERSION, "answer": answer}),
        on_asked_change=lambda: handle("asked", "query", partial(_answer_link, class_link)),
        on_brought_change=lambda: handle("brought", "text", _answer_file),
    )


def _answer_link(class_link: Callable[[], str], query: str, number: str) -> None:
    """Answer with the link for the class, and its QR code."""
    answer: dict[str, Any] = {"number": number}
    about = ""
    try:
        if into := class_link():
            link = ClassLink(into, False, qr_code(into))
            about = say("Who opens this follows your screen.")
        else:
            owner = streamlit_internals.session_id() or ""
            link = link_for(str(st.context.url or ""), known_part(query), owner)
        if link.is_code:
            about = say("This short link holds for 12 hours. Small and large letters are the same.")
    except HookVizError as error:
        answer |= {"link": str(error), "picture": "", "about": ""}
    else:
        answer |= {"link": link.link, "picture": link.picture, "about": about}
    st.session_state[_ANSWER] = answer


def _answer_file(text: str, number: str) -> None:
    """Answer with the slides of a file, or why it can't be read."""
    answer: dict[str, Any] = {"number": number}
    try:
        answer["slides"] = [slide._asdict() for slide in read_slides(text)]
    except HookVizError as error:
        answer["fault"] = str(error)
    st.session_state[_ANSWER] = answer


def _words() -> dict[str, Any]:
    """Return the words on the buttons; the browser fills in names in braces."""
    number, title = "{number}", "{title}"
    return {
        "short": {
            "start": say("Present"),
            "slides": say("Slides"),
            "code": say("Link"),
            "ring": say("Ring"),
            "leave": say("Leave"),
        },
        "told": {
            "slides": say("Page Down: next slide"),
            "steps": say("N, →: next step"),
            "layers": say("N: next layer"),
            "tiles": say("arrows: tiles"),
        },
        "start": say("Present this view (F)"),
        "slides": say("Slides"),
        "earlier": say("Back (Page Up)"),
        "later": say("Next (Page Down)"),
        "code": say("Link and QR code for the class (Q)"),
        "ring": say("Ring around the pointer (R)"),
        "leave": say("Leave the presenter's view (Esc)"),
        "close": say("Close"),
        "add": say("Add this view"),
        "export": say("Export"),
        "import": say("Import"),
        "empty": say("Remove all"),
        "undo": say("Undo"),
        "title": say("Slides"),
        "none": say(
            "No slides yet. Add the view on the screen, go to another one, add that as well. They "
            "are kept in this browser; a file takes them to another one."
        ),
        "keys": say(
            "F presents, Shift+F where two views are compared. Page Down and Page Up go through "
            "the slides, or without slides through the layers. N, P and the arrows do what they "
            "do on the page. R shows a ring around the pointer, Q the link for the class, L this "
            "list. Esc leaves."
        ),
        "class": say("For the class"),
        "making": say("Making the link…"),
        "picture": say("QR code of the link below it"),
        "bar": say("Presenting"),
        "go": say("Show slide {number}: {title}", number=number, title=title),
        "name": say("Title of slide {number}", number=number),
        "up": say("Move slide {number} up", number=number),
        "down": say("Move slide {number} down", number=number),
        "remove": say("Remove slide {number}", number=number),
        "at": say("{number} of {count} · {title}", number=number, count="{count}", title=title),
        "count": say("{count} slides", count="{count}"),
    }
