"""Decide what of a teacher's view is shared: known choices of the link, and no photograph."""

from dataclasses import dataclass
from functools import cache
from urllib.parse import parse_qsl, urlencode

from hookviz.errors import ClassroomError
from hookviz.language.saying import say
from hookviz.lenses.contract.running import list_lenses

LONGEST = 4_000
"""Letters of a link that is shared; the longest pinned view has 1,000."""
_MOST = 60  # choices
_LONGEST_VALUE = 1_200

# fmt: off
CHOICES = frozenset((
    "a", "after", "answers", "cell", "channel", "colours", "compare", "family", "layer",
    "layers", "lens", "lesson", "made", "model", "origin", "output", "patches", "sample",
    "scale", "silenced", "size", "sort", "step", "top", "weights", "whole",
))
# fmt: on
"""The page's own choices that a link holds, but for those that everybody makes for themselves."""

OF_ONE = frozenset({"image", "upload", "lang", "present", "follow", "class"})
"""What a link holds of one person: their photograph, their language, their part in a class."""

_PHOTOGRAPHS = ("Upload", "Camera", "Live")


@dataclass(frozen=True, slots=True)
class SharedState:
    """What the teacher looks at, as pupils' screens get it.

    Attributes:
        query: the link's choices, in order, as a query string.
        sample: whether the image is one of the samples; else pupils keep the image that they have.
    """

    query: str = ""
    sample: bool = True


@cache
def known_choices() -> frozenset[str]:
    """List the link's choices that are shared: the page's own, and each lens's parameters."""
    lenses = {f"{lens.slug}-{each.name}" for lens in list_lenses() for each in lens.parameters}
    return CHOICES | lenses


def read_state(query: str) -> SharedState:
    """Read what is shared of a link's query string.

    What is of the teacher alone, and what is no choice of the page, is left out.

    Raises:
        ClassroomError: it is too long, or no query string.
    """
    if len(query) > LONGEST:
        raise ClassroomError(
            say(
                "A link of {count:,} letters can't be shared with a class; {limit:,} is the most.",
                count=len(query),
                limit=LONGEST,
            )
        )
    try:
        pairs = parse_qsl(query.removeprefix("?"), max_num_fields=_MOST, errors="strict")
    except (ValueError, UnicodeError) as error:
        raise ClassroomError(say("This is no link that a class can follow.")) from error
    choices = dict(pairs)  # of several of one name the last counts, as on the page
    own = choices.get("image") in _PHOTOGRAPHS
    known = known_choices()
    shared = {
        name: value
        for name, value in choices.items()
        if name in known and len(value) <= _LONGEST_VALUE and value.isprintable()
    }
    if own:
        shared.pop("sample", None)
    if "upload" in dict(parse_qsl(shared.get("a", ""))):  # a photograph that is pinned
        del shared["a"]
        shared.pop("compare", None)
    return SharedState(urlencode(sorted(shared.items())), sample=not own)
