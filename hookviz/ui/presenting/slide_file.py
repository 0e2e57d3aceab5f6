"""Check a file of slides: views of the page in order, each a title and a query string.

The list itself is kept by the browser. A file comes here to be checked, and nothing of it stays.
"""

from typing import Any, NamedTuple

from hookviz import shallow_json
from hookviz.errors import HookVizError, shorten
from hookviz.language.saying import say
from hookviz.ui.presenting.known_link import read_query

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
