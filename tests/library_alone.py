"""Run every example of the public API, where nothing but the library is installed.

``python -m tests.library_alone`` does, also where there is no pytest.
"""

import doctest
import inspect
import io
import sys
from pathlib import Path
from typing import Any

import torch

import hookviz

ROOT = Path(__file__).parent.parent
EDITS = ("zero", "scale", "add", "replace", "keep")
NEEDS_A_PERSON = {"explore"}
NEEDS_MORE = {"lightning_callback", "linear_probe", "save_live_page"}
"""Of these the example says in words which package it needs."""


def functions() -> dict[str, Any]:
    """Everything public that is called for what it does, by name."""
    objects = {name: getattr(hookviz, name) for name in hookviz.__all__}
    public = {name: each for name, each in objects.items() if inspect.isroutine(each)}
    return public | {
        "Capture.inputs": hookviz.Capture.inputs,
        "Capture.likeliest": hookviz.Capture.likeliest,
        "Capture.predictions": hookviz.Capture.predictions,
        "Features.nearest": hookviz.Features.nearest,
        "Grid.draw": hookviz.Grid.draw,
        "Grid.figure": hookviz.Grid.figure,
        "Grid.png": hookviz.Grid.png,
        **{f"edits.{name}": getattr(hookviz.edits, name) for name in EDITS},
    }


def example_of(name: str, documented: Any) -> doctest.DocTest:
    """Return a docstring's example, which may use ``hookviz`` and ``torch``."""
    text = inspect.getdoc(documented) or ""
    return doctest.DocTestParser().get_doctest(
        text, {"hookviz": hookviz, "torch": torch}, name, None, None
    )


def complaint(test: doctest.DocTest) -> str:
    """Run an example, and return what was not as it says; empty where all was."""
    said = io.StringIO()
    result = doctest.DocTestRunner(verbose=False).run(test, out=said.write)
    return said.getvalue() if result.failed else ""


def main() -> int:
    """Print what failed, and return 1 where something did."""
    failed = []
    for name, documented in functions().items():
        said = complaint(example_of(name, documented))
        as_told = name in NEEDS_MORE and "hookviz.errors.HookVizError: " in said
        if said and not as_told:
            failed.append(name)
            print(said)  # noqa: T201 - this is a program
    print(f"{len(functions())} functions, {len(failed)} failed", *failed)  # noqa: T201 - as above
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
