"""Write docs/api.md, a line for every public name: ``python -m scripts.api_page``.

On the site the reference with whole docstrings takes its place, see `scripts.docs_site`.
"""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hookviz
from hookviz.hooking.edits import Edit

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "api.md"

_HEAD = """\
# Reference

Every public name of `hookviz`, with its arguments and the first line of its docstring.
`help(hookviz.capture)` prints the rest: shapes, errors and an example.
`python -m scripts.api_page` writes this page.
"""


def page() -> str:
    """Return the page's text."""
    public = {name: getattr(hookviz, name) for name in hookviz.__all__ if name != "__version__"}
    functions = {name: each for name, each in public.items() if inspect.isroutine(each)}
    classes = {name: each for name, each in public.items() if name not in functions}
    errors = {name: each for name, each in classes.items() if issubclass(each, Exception)}
    others = {name: each for name, each in classes.items() if name not in errors}
    edits = {
        f"edits.{name}": each
        for name, each in inspect.getmembers(hookviz.edits, inspect.isfunction)
        if inspect.signature(each).return_annotation is Edit
    }
    parts: Mapping[str, Mapping[str, Any]] = {
        "Functions": functions,
        "Edits": edits,
        "Classes": others,
        "Errors": errors,
    }
    return _HEAD + "".join(_table(title, objects) for title, objects in parts.items())


def _table(title: str, objects: Mapping[str, Any]) -> str:
    rows = [_row(name, each) for name, each in objects.items()]
    return "\n".join([f"\n## {title}\n", "| name | in short |", "|---|---|", *rows, ""])


def _row(name: str, documented: Any) -> str:
    """Return the name, which leads to its source, and the first line of its docstring."""
    source = inspect.getsourcefile(inspect.unwrap(documented)) or ""
    place = Path(source).relative_to(ROOT).as_posix()
    arguments = "" if inspect.isclass(documented) else f"({_arguments(documented)})"
    first = (inspect.getdoc(documented) or "").partition("\n")[0]
    words = first.replace("``", "`").replace("|", r"\|")
    return f"| [`{name}{arguments}`](../{place}) | {words} |"


def _arguments(function: Any) -> str:
    """Return the names of a function's arguments; those behind the star go by name alone."""
    found = [*inspect.signature(function).parameters.values()]
    names = [f"**{each.name}" if each.kind is each.VAR_KEYWORD else each.name for each in found]
    by_name = [at for at, each in enumerate(found) if each.kind is each.KEYWORD_ONLY]
    return ", ".join([*names[: by_name[0]], "*", *names[by_name[0] :]] if by_name else names)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
