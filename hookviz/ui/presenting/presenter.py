"""Show the presenter's buttons on every page, and answer what they ask the server."""

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

_ANSWER = "_presenter-answer"  # a key that no widget has can't be set from outside


_KEY = "presenter"


SHORT = 60
"""Letters of a link that is short enough to be typed from the wall without a QR code."""


class ClassLink(NamedTuple):
    """Link with its QR code.

    Attributes:
        link: a whole URL.
        is_code: whether it has a short code, which holds for a while.
        picture: the QR code, as a URL of an SVG picture.
    """

    link: str
    is_code: bool
    picture: str


def link_for(base: str, query: dict[str, str], owner: str) -> ClassLink:
    """Return the link to what a query string says, under the page's own address `base`."""
    said = for_the_class(query)
    base = base.partition("?")[0].partition("#")[0]
    link = f"{base}?{said}" if said else base
    is_code = len(link) > SHORT
    if is_code:
        code = short_links().code_for(said, owner)
        link = f"{base.rstrip('/')}{go_route.PATH}/{code}"
    return ClassLink(link, is_code, qr_code(link))


def link_into_class(link: str) -> ClassLink:
    """Return the link by which pupils follow, as it is."""
    return ClassLink(link, False, qr_code(link))


VERSION = 1
MOST_SLIDES = 100
LONGEST_TITLE = 80
MOST_LETTERS = 500_000
"""More than any list of slides takes."""

_NAME = "hookviz-slides"  # says in the file what it is, and of which version


class Slide(NamedTuple):
    """View that was kept: its title, and what stands after the question mark of its link."""

    title: str
    query: str


def read_slides(text: str) -> tuple[Slide, ...]:
    """Read the slides in the text of a file.

    Raises:
        HookVizError: it is no such file; the message says which slide, and what is wrong with it.
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
    return tuple(_read(slide, number) for number, slide in enumerate(slides, 1))


def _read(slide: Any, number: int) -> Slide:
    """Read and check one slide.

    Raises:
        HookVizError: it is none.
    """
    if not isinstance(slide, dict) or set(slide) != {"title", "query"}:
        wrong = say("it needs a title and a query, and nothing else.")
    elif not all(isinstance(part, str) for part in slide.values()):
        wrong = say("its title and its query have to be texts.")
    elif not _is_whole(slide["title"] + slide["query"]):
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


def _is_whole(text: str) -> bool:
    """Return whether a text can be sent to a browser: JSON can have half a letter of two."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


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
