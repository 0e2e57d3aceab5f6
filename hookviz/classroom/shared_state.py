"""Decide what of a teacher's view is shared: known choices of the link, and no photograph."""

from dataclasses import dataclass
from functools import cache
from urllib.parse import parse_qsl, urlencode

from hookviz.classroom.link_parameters import OWN_IMAGES, PARAMETERS
from hookviz.errors import ClassroomError
from hookviz.language.saying import say
from hookviz.lenses.contract.running import list_lenses

LONGEST = 4_000
"""Letters of a link that is shared; the longest pinned view has 1,000."""
_MOST = 60  # choices
_LONGEST_VALUE = 1_200

OF_ONE = frozenset(each.name for each in PARAMETERS if not each.is_followed)
"""What a link holds of one person: their photograph, their language, their part in a class."""


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
    """Return the name of every parameter that is shared: the page's own, and each lens's."""
    lenses = {f"{lens.slug}-{each.name}" for lens in list_lenses() for each in lens.parameters}
    return frozenset(each.name for each in PARAMETERS if each.is_followed) | lenses


def read_state(query: str) -> SharedState:
    """Read what is shared of a link's query string, so that nothing else reaches a pupil's page.

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
    own = choices.get("image") in OWN_IMAGES
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
