"""Bundle the files of the explorer's client, and list its choices, words and colours.

There is no build step: a browser gets the modules that are checked and tested, bundled into one
script, and the style sheets in one sheet.
"""

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hookviz.drawing.colormaps import (
    ACCENT,
    INF_COLOUR,
    LEVELS,
    NAN_COLOUR,
    PROJECTED_SIGNED,
    palette_of,
)
from hookviz.explorer.subject import Colours
from hookviz.explorer.view import choices
from hookviz.language.catalogs import script_words, signs

CLIENT = Path(__file__).parent / "client"
"""The folder of the explorer's client."""

_IMPORT = re.compile(r'^import \{([^}]*)\} from "([./\w]+)";\n', re.MULTILINE)
_NAMED = re.compile(r"^export (?=(?:const|class|function|async function) (\w+))", re.MULTILINE)
_DEFAULT = "export default function"
# Whole lines of comments and types: a third of what each new page would be sent.
_COMMENT = re.compile(
    r"^[ \t]*(?://[^\n]*|/\*\*(?:(?!\*/).)*\*/[ \t]*)\n", re.MULTILINE | re.DOTALL
)
_SHEET = re.compile(r'^@import "([^"]+)";\n', re.MULTILINE)


def sheet(file: Path) -> str:
    """Return the text of a style sheet, with its imports inlined."""
    return _SHEET.sub(lambda match: sheet(file.parent / match[1]), file.read_text("utf-8"))


def bundle(*files: Path) -> str:
    """Put modules and those that they import into one script, each in the scope of a function.

    A module stands once, after those that it imports. What it exports are the fields of a constant,
    called by its folder and its name: ``client_tiles.inSprite``. Its default is the field ``main``.
    """
    modules: dict[Path, str] = {}
    for file in files:
        _collect(file.resolve(), modules)
    return "\n".join(modules.values())


def _collect(file: Path, modules: dict[Path, str]) -> None:
    """Add a module as a function's scope, behind the modules that it imports."""
    if file in modules:
        return
    text = _COMMENT.sub("", file.read_text("utf-8"))
    for _, path in _IMPORT.findall(text):
        _collect(_beside(file, path), modules)

    def import_line(match: re.Match[str]) -> str:
        names = match[1].strip().replace(" as ", ": ")
        return f"const {{ {names} }} = {scope(_beside(file, match[2]))};\n"

    exported = _NAMED.findall(text)
    body = _NAMED.sub("", _IMPORT.sub(import_line, text))
    if _DEFAULT in body:
        body = body.replace(_DEFAULT, "const main = function")
        exported.append("main")
    assert not re.search("^(import|export) ", body, re.MULTILINE), f"{file.name} can't be bundled"
    modules[file] = (
        f"const {scope(file)} = (() => {{\n{body}\nreturn {{ {', '.join(exported)} }};\n}})();\n"
    )


def _beside(file: Path, path: str) -> Path:
    """Return the file that a module names; no link is followed: a page has four hundred of them."""
    return Path(os.path.normpath(f"{file.parent}/{path}"))


def scope(file: Path) -> str:
    """Return the constant that a bundled module's exports are the fields of."""
    return f"{file.parent.name}_{file.stem}"


LIGHT = Colours("RdBu_r", "gray_r")
"""Colormaps of a light page: zero fades into its white."""
DARK = Colours("berlin", "inferno")
"""Colormaps of a dark page: zero fades into its black."""


def client_fields() -> list[dict[str, Any]]:
    """Return the fields of a view for the client: words, defaults and values of a link."""
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
    """Return a language for scripts: its HTML name, its decimal point, its sentences.

    Args:
        language: one of `hookviz.language.catalogs.languages`.
        folder: include only sentences of this folder's scripts.
    """
    return {
        "language": language.replace("_", "-"),
        "point": signs(language)[0],
        "words": dict(script_words(language, folder)),
    }


@cache
def colour_variables() -> Mapping[str, str]:
    """Return the CSS variables of the client's colours.

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
    """Return the style sheets of the stand-alone client, by their names in ``alone.js``."""
    sheets = {"alone": "alone.css", "tree": "tree_place.css"}
    return MappingProxyType({name: sheet(CLIENT / file) for name, file in sheets.items()})
