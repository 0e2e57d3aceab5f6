"""Run every example of the public API, where nothing but the library is installed.

``python -m tests.library_alone`` does; with ``--hide`` what only extras of pyproject.toml install
can't be imported.
"""

import doctest
import inspect
import io
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
NEEDS_A_PERSON = {"explore"}
NEEDS_MORE = {"lightning_callback", "linear_probe"}
"""Of these the example says in words which package it needs."""


def functions() -> dict[str, Any]:
    """Everything public that is called for what it does, by name."""
    import hookviz  # noqa: PLC0415 - once what is not there is hidden

    objects = {name: getattr(hookviz, name) for name in hookviz.__all__}
    public = {name: each for name, each in objects.items() if inspect.isroutine(each)}
    return public | {
        "Capture.inputs": hookviz.Capture.inputs,
        "Capture.likeliest": hookviz.Capture.likeliest,
        "Capture.predictions": hookviz.Capture.predictions,
        "Features.nearest": hookviz.Features.nearest,
        "Grid.figure": hookviz.Grid.figure,
        "Grid.png": hookviz.Grid.png,
    }


def example_of(name: str, documented: Any) -> doctest.DocTest:
    """Return a docstring's example, which may use ``hookviz`` and ``torch``."""
    import torch  # noqa: PLC0415 - as above

    import hookviz  # noqa: PLC0415 - as above

    text = inspect.getdoc(documented) or ""
    return doctest.DocTestParser().get_doctest(
        text, {"hookviz": hookviz, "torch": torch}, name, None, None
    )


def complaint(test: doctest.DocTest) -> str:
    """Run an example, and return what was not as it says; empty where all was."""
    said = io.StringIO()
    result = doctest.DocTestRunner(verbose=False).run(test, out=said.write)
    return said.getvalue() if result.failed else ""


def hide_extras() -> None:
    """Have what only extras install not be found."""
    from importlib.metadata import packages_distributions  # noqa: PLC0415 - for this alone

    from packaging.requirements import Requirement  # noqa: PLC0415 - as above

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    optional = {Requirement(line).name.lower() for lines in extras for line in lines}
    optional -= {Requirement(line).name.lower() for line in project["dependencies"]} | {"hookviz"}
    for module, owners in packages_distributions().items():
        if optional & {owner.lower() for owner in owners}:
            sys.modules[module] = None  # type: ignore[assignment]


def main() -> int:
    """Print what failed, and return 1 where something did."""
    if "--hide" in sys.argv:
        hide_extras()
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
