"""Bundle the client's modules into one script, and its style sheets into one sheet.

Nothing is built: the modules that are checked and tested are the text that a browser gets.
"""

import os
import re
from pathlib import Path

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
    """Return the text of a style sheet, with those that it imports in their place."""
    return _SHEET.sub(lambda found: sheet(file.parent / found[1]), file.read_text("utf-8"))


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

    def taken(found: re.Match[str]) -> str:
        names = found[1].strip().replace(" as ", ": ")
        return f"const {{ {names} }} = {scope(_beside(file, found[2]))};\n"

    exported = _NAMED.findall(text)
    body = _NAMED.sub("", _IMPORT.sub(taken, text))
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
