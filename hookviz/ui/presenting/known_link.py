"""Read and write links to a view: this page's own parameters, and no more than fit."""

from collections.abc import Mapping
from functools import cache
from urllib.parse import parse_qsl, urlencode

from hookviz.classroom.link_parameters import OWN_FILES, PARAMETERS, known_choices
from hookviz.errors import HookVizError, nearest_names, shorten
from hookviz.images.samples import samples
from hookviz.language.saying import say

LONGEST_VALUE = 1000
"""Letters of one parameter; a pinned view and silent channels have the same bound."""

LONGEST = 4000
"""Letters of a whole link, as it is written."""

_NOT_FOR_OTHERS = {each.name for each in PARAMETERS if not each.is_for_others}


@cache
def parameters() -> frozenset[str]:
    """Return the names that a link to this page can have: of the view, and of every lens."""
    return known_choices() | {each.name for each in PARAMETERS if each.is_in_slides}


def read_query(query: str) -> dict[str, str]:
    """Read a link's query string by name, and refuse what this page does not know.

    Raises:
        HookVizError: it is too long, or names what this page has not.
    """
    if len(query) > LONGEST:
        raise HookVizError(
            say(
                "The link has {count:,} letters, and {limit:,} is the most.",
                count=len(query),
                limit=LONGEST,
            )
        )
    values = dict(parse_qsl(query.removeprefix("?"), keep_blank_values=True))
    for name, value in values.items():
        if name not in parameters():
            raise HookVizError(_unknown(name))
        if len(value) > LONGEST_VALUE:
            raise HookVizError(
                say(
                    "What the link says of {name} has {count:,} letters, and {limit:,} is the "
                    "most.",
                    name=name,
                    count=len(value),
                    limit=LONGEST_VALUE,
                )
            )
    return values


def known_part(query: str) -> dict[str, str]:
    """Read what a query string says of this page, and leave out what the page does not know.

    Raises:
        HookVizError: it is too long.
    """
    pairs = parse_qsl(query.removeprefix("?")[: 10 * LONGEST])
    kept = [(name, value) for name, value in pairs if name in parameters()]
    return read_query(urlencode(kept))


def for_the_class(query: Mapping[str, str]) -> str:
    """Write the shortest query string that shows others the same, without defaults.

    Left out are also the presenter's view and images of one's own, which are in no link.
    """
    left = {*_NOT_FOR_OTHERS, *(["image"] if query.get("image") in OWN_FILES else [])}
    usual = _usual()
    kept = {
        name: value
        for name, value in query.items()
        if name in parameters() and name not in left and usual.get(name) != value
    }
    return urlencode(kept, safe=",.:/")


@cache
def _usual() -> dict[str, str]:
    """Return what the page shows where a link does not say, by parameter."""
    defaults = {each.name: each.default for each in PARAMETERS if each.default is not None}
    return {**defaults, "sample": samples()[0].name}


def _unknown(name: str) -> str:
    near = nearest_names(name, parameters(), count=1)
    if near:
        return say(
            "The link has {name}, which this page does not know. The nearest that it knows is "
            "{suggestion}.",
            name=repr(shorten(name, 40)),
            suggestion=near[0],
        )
    return say("The link has {name}, which this page does not know.", name=repr(shorten(name, 40)))
