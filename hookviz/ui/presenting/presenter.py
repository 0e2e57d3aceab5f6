"""Show the presenter's buttons on every page, and answer what they ask the server."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import streamlit as st

from hookviz.errors import HookVizError
from hookviz.language.saying import say
from hookviz.ui import streamlit_internals
from hookviz.ui.components.files import component, packed
from hookviz.ui.presenting.class_link import ClassLink, link_for, link_into_class
from hookviz.ui.presenting.known_link import known_part
from hookviz.ui.presenting.slide_file import VERSION, read_slides

_ANSWER = "_presenter-answer"  # a key that no widget has can't be set from outside


_KEY = "presenter"


def _presenter(
    words: Mapping[str, Any],
    version: int,
    answer: Mapping[str, Any] | None,
    on_asked: Callable[[str, str], None],
    on_brought: Callable[[str, str], None],
) -> None:
    """Show the buttons, the slide list and the link for the class.

    Args:
        words: what is written on them, by what it is for.
        version: of the files of slides that are exported.
        answer: to what was asked last, with its ``number``: a link, slides, or a ``fault``.
        on_asked: gets a link's query string and a number, to make a link for the class of it.
        on_brought: gets the text of a file and a number, where slides are imported.
    """

    def handle(name: str, part: str, act: Callable[[str, str], None]) -> None:
        sent = st.session_state[_KEY].get(name)
        if isinstance(sent, Mapping) and {part, "number"} <= set(sent):
            act(str(sent[part]), str(sent["number"])[:80])

    component("presenter")(
        key=_KEY,
        data=packed({"words": dict(words), "version": version, "answer": answer}),
        on_asked_change=lambda: handle("asked", "query", on_asked),
        on_brought_change=lambda: handle("brought", "text", on_brought),
    )


def show_presenter(class_link: Callable[[], str]) -> None:
    """Show the buttons over a corner of the page.

    Args:
        class_link: gives the link into the class that this session teaches; empty for none.
    """
    with st.container(key="hv-presenter"):
        _show(class_link)


@st.fragment
def _show(class_link: Callable[[], str]) -> None:
    """Show them as a fragment, so that what they ask for runs nothing else of the page."""
    answer_link = partial(_answer_link, class_link)
    # Kept for the runs after this one: Streamlit sends of two that are quick the second alone.
    _presenter(_words(), VERSION, st.session_state.get(_ANSWER), answer_link, _answer_file)


def _answer_link(class_link: Callable[[], str], query: str, number: str) -> None:
    """Answer with the link for the class, and its QR code."""
    answer: dict[str, Any] = {"number": number}
    about = ""
    try:
        if into := class_link():
            shown = link_into_class(into)
            about = say("Who opens this follows your screen.")
        else:
            shown = _link_to_view(query)
        if shown.is_code:
            about = say("This short link holds for 12 hours. Small and large letters are the same.")
    except HookVizError as error:
        answer |= {"link": str(error), "picture": "", "about": ""}
    else:
        answer |= {"link": shown.link, "picture": shown.picture, "about": about}
    st.session_state[_ANSWER] = answer


def _link_to_view(query: str) -> ClassLink:
    owner = streamlit_internals.session_id() or ""
    return link_for(str(st.context.url or ""), known_part(query), owner)


def _answer_file(text: str, number: str) -> None:
    """Answer with the slides in a file, or with what is wrong with it."""
    answer: dict[str, Any] = {"number": number}
    try:
        answer["slides"] = [slide._asdict() for slide in read_slides(text)]
    except HookVizError as error:
        answer["fault"] = str(error)
    st.session_state[_ANSWER] = answer


def _words() -> dict[str, Any]:
    """Return the words on the buttons; names in braces are filled in by the browser."""
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
