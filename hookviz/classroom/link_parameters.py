"""List the parameters of the page's link, and read what a teacher's link shares with a class.

What is chosen of the explorer and its subject is declared in `hookviz.explorer.view`; beside it
stands what the page around it chooses. The parameters of lenses, ``SLUG-NAME``, stand beside them:
everybody gets those.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from hookviz.errors import ClassroomError
from hookviz.explorer.view import choices
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.running import list_lenses


class LinkParameter(NamedTuple):
    """Parameter of the page's link.

    Attributes:
        name: as it stands in the link.
        default: what the page shows without it; None where that depends on something else.
        is_held: whether code alone writes it, and no widget binds it.
        is_followed: whether a class follows its teacher's; the others are each person's own.
        is_in_slides: whether a kept slide or a link may have it.
        is_for_others: whether a link for other people may have it.
    """

    name: str
    default: str | None = None
    is_held: bool = False
    is_followed: bool = True
    is_in_slides: bool = True
    is_for_others: bool = True


PARAMETERS = (
    *(
        LinkParameter(
            each.word,
            each.default,
            is_held=True,
            is_followed=each.is_followed,
            is_for_others=each.is_for_others,
        )
        for each in choices().values()
    ),
    LinkParameter("lang", is_held=True, is_followed=False),
    LinkParameter("lens", "", is_held=True),
    LinkParameter("lesson", is_held=True),
    LinkParameter("like", is_held=True),
    LinkParameter("means", is_held=True),
    LinkParameter("mirror", is_held=True, is_followed=False),
    LinkParameter("moved", is_held=True),
    LinkParameter("present", is_followed=False, is_for_others=False),
    LinkParameter("region", is_held=True),
    LinkParameter("step", is_held=True),
    LinkParameter("target", is_held=True),
    *(
        LinkParameter(
            part, is_held=True, is_followed=False, is_in_slides=False, is_for_others=False
        )
        for part in ("class", "follow")
    ),
)

OWN_FILES = (mark("Upload"), mark("Camera"))
"""Values of ``image`` for a picture of one's own, which no link carries.

*Live* is not among them: a link to it opens the camera of whoever follows the link.
"""

LIVE = mark("Live")
OWN_IMAGES = (*OWN_FILES, LIVE)
"""Values of ``image`` for what nobody else sees: a class keeps its sample meanwhile."""


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
