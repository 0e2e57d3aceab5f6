"""The examples in the docstrings of the public API run, and every public function has one."""

import dataclasses
import doctest
import inspect
import io
from pathlib import Path
from typing import Any

import pytest
import torch

import hookviz

ROOT = Path(__file__).parent.parent
NEEDS_A_PERSON = {"explore"}


def functions() -> dict[str, Any]:
    """Everything public that is called for what it does, by name."""
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
    text = inspect.getdoc(documented) or ""
    return doctest.DocTestParser().get_doctest(
        text, {"hookviz": hookviz, "torch": torch}, name, None, None
    )


@pytest.mark.parametrize("name", ["hookviz", *functions()])
def test_the_example_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    test = example_of(name, hookviz if name == "hookviz" else functions()[name])
    assert 1 <= len(test.examples) <= 6
    skipped = [doctest.SKIP in example.options for example in test.examples]
    assert all(skipped) if name in NEEDS_A_PERSON else not any(skipped)
    said = io.StringIO()
    result = doctest.DocTestRunner(verbose=False).run(test, out=said.write)
    assert result.failed == 0, said.getvalue()


def test_nothing_public_is_left_out() -> None:
    known = set(functions())
    for name in set(hookviz.__all__) - {"__version__"} - known:
        kind = getattr(hookviz, name)
        assert dataclasses.is_dataclass(kind) or issubclass(kind, hookviz.HookVizError), name
    assert {"capture", "make_grid", "run_lens"} <= known
