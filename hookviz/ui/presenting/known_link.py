"""Read and write links to a view: parameters of this page alone, of limited length."""

from collections.abc import Mapping
from functools import cache
from urllib.parse import parse_qsl, urlencode

from hookviz.classroom.link_parameters import OWN_FILES, PARAMETERS, known_choices
from hookviz.errors import HookVizError, nearest_names, shorten
from hookviz.images.samples import samples
from hookviz.language.saying import say

LONGEST_VALUE = 1000
"""Letters of one parameter; a pinned view and silenced channels have the same limit."""

LONGEST = 4000
"""Letters of a link."""

_NOT_FOR_OTHERS = {each.name for each in PARAMETERS if not each.is_for_others}


@cache
def parameters() -> frozenset[str]:
    """Return the parameters of a link to this page: of the view and of every lens."""
    return known_choices() | {each.name for each in PARAMETERS if each.is_in_slides}


def read_query(query: str) -> dict[str, str]:
    """Read a link's query string by name.

    Raises:
        HookVizError: it is too long, or has an unknown parameter.
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
            raise HookVizError(_unknown_parameter(name))
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
    """Read a query string by name, without its unknown parameters.

    Raises:
        HookVizError: it is too long.
    """
    pairs = parse_qsl(query.removeprefix("?")[: 10 * LONGEST])
    known = [(name, value) for name, value in pairs if name in parameters()]
    return read_query(urlencode(known))


def for_the_class(query: Mapping[str, str]) -> str:
    """Write a view as a query string for others.

    It leaves out defaults, the presenter's view and images of the session's own.
    """
    left_out = {*_NOT_FOR_OTHERS, *(["image"] if query.get("image") in OWN_FILES else [])}
    defaults = {each.name: each.default for each in PARAMETERS if each.default is not None}
    defaults["sample"] = samples()[0].name
    view = {
        name: value
        for name, value in query.items()
        if name in parameters() and name not in left_out and defaults.get(name) != value
    }
    return urlencode(view, safe=",.:/")


def _unknown_parameter(name: str) -> str:
    near = nearest_names(name, parameters(), count=1)
    if near:
        return say(
            "The link has {name}, which this page does not know. The nearest that it knows is "
            "{suggestion}.",
            name=repr(shorten(name, 40)),
            suggestion=near[0],
        )
    return say("The link has {name}, which this page does not know.", name=repr(shorten(name, 40)))
