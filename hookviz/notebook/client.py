"""Put together the widget's client: one script, its style sheets, and what it begins with."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from hookviz.explorer.client_files import (
    bundle,
    client_fields,
    client_sheets,
    client_words,
    colour_variables,
    scope,
)

_FOLDER = Path(__file__).parent
_FOLDERS = ("hookviz/notebook/", "hookviz/explorer/")  # whose sentences it says
_SCRIPT = _FOLDER / "widget.js"

# A saved notebook keeps a picture before the widget, which is there where the widget is not. A
# live widget stands for it: in JupyterLab and Notebook 7, whose elements these are.
BESIDE = (
    ".jp-OutputArea-child:has(+ .jp-OutputArea-child .hookviz-explorer) { display: none; }\n"
    ".hookviz-explorer { overflow: auto; resize: vertical; }\n"
    ".hookviz-notice { position: sticky; top: 0; z-index: 1001; margin: 0; padding: 0.6rem 1rem; "
    "color: #262730; background: #f7e5b0; }\n"
)
"""The style sheet of the page around."""


@cache
def script() -> str:
    """Return the client as one module, as anywidget has it."""
    return f"{bundle(_SCRIPT)}\nexport default {{ render: {scope(_SCRIPT)}.main }};\n"


def begun(language: str, height: int) -> Mapping[str, Any]:
    """Return what the client begins with.

    Args:
        language: which it speaks.
        height: pixels of it.
    """
    own, explorers = (client_words(language, folder) for folder in _FOLDERS)
    return {
        "fields": client_fields(),
        "language": {**own, "words": {**explorers["words"], **own["words"]}},
        "sheets": {**client_sheets(), "alone": _sheet(height)},
        "height": height,
    }


def _sheet(height: int) -> str:
    variables = {**colour_variables(), "--hv-window": f"{height}px"}
    host = "".join(f"{name}: {value};" for name, value in variables.items())
    own = (_FOLDER / "widget.css").read_text("utf-8")
    return f"{client_sheets()['alone']}{own}:host {{{host}}}\n"
