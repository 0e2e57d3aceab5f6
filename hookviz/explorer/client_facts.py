"""Give the explorer's client what it begins with: choices, words, colours and style sheets."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from hookviz.drawing.colormaps import (
    ACCENT,
    INF_COLOUR,
    LEVELS,
    NAN_COLOUR,
    PROJECTED_SIGNED,
)
from hookviz.drawing.palette import palette_of
from hookviz.explorer.client_files import CLIENT, sheet
from hookviz.explorer.subject import Colours
from hookviz.explorer.view import choices
from hookviz.language.catalogs import script_words, signs

LIGHT = Colours("RdBu_r", "gray_r")
"""Colormaps of a light page: zero fades into its white."""
DARK = Colours("berlin", "inferno")
"""Colormaps of a dark page: zero fades into its black."""


def client_fields() -> list[dict[str, Any]]:
    """Return what can be chosen, as the client reads it: words, defaults and values of a link."""
    return [
        {
            "word": choice.word,
            "default": choice.default,
            "values": choice.values and list(choice.values),
            "isPage": choice.is_page,
        }
        for choice in choices().values()
    ]


def client_words(language: str, folder: str = "") -> dict[str, Any]:
    """Return a language as scripts speak it: how HTML calls it, its decimal point, its sentences.

    Args:
        language: one of `hookviz.language.catalogs.languages`.
        folder: leave out sentences that no script of this folder says.
    """
    return {
        "language": language.replace("_", "-"),
        "point": signs(language)[0],
        "words": dict(script_words(language, folder)),
    }


@cache
def colour_variables() -> Mapping[str, str]:
    """Return the CSS variables that the client paints with.

    ``--hv-NAME`` is a diverging colormap level by level, ``--hv-NAME-below`` and
    ``--hv-NAME-above`` are its blue and its red, for bars.
    """
    variables = {"accent": ACCENT, "nan": NAN_COLOUR, "inf": INF_COLOUR}
    for name in (LIGHT.diverging, DARK.diverging, PROJECTED_SIGNED):
        colours = [f"#{bytes(colour).hex()}" for colour in palette_of(name)[:LEVELS, :3]]
        variables[name] = " ".join(colours)
        variables[f"{name}-below"] = colours[LEVELS // 8]
        variables[f"{name}-above"] = colours[LEVELS - 1 - LEVELS // 8]
    return MappingProxyType({f"--hv-{name}": value for name, value in variables.items()})


@cache
def client_sheets() -> Mapping[str, str]:
    """Return the style sheets of the client that stands alone, by what ``alone.js`` calls them."""
    sheets = {"alone": "alone.css", "tree": "tree_place.css"}
    return MappingProxyType({name: sheet(CLIENT / file) for name, file in sheets.items()})
