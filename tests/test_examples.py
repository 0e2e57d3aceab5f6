"""The examples in the docstrings of the public API run, and every public function has one."""

import doctest

import pytest

import hookviz
from tests.library_alone import NEEDS_A_PERSON, NEEDS_MORE, ROOT, complaint, example_of, functions


def test_every_public_function_has_an_example_that_is_run() -> None:
    for name, documented in {"hookviz": hookviz, **functions()}.items():
        examples = example_of(name, documented).examples
        assert 1 <= len(examples) <= 6, name
        skipped = [doctest.SKIP in example.options for example in examples]
        assert all(skipped) if name in NEEDS_A_PERSON else not any(skipped), name
    known = set(functions())
    for name in set(hookviz.__all__) - {"__version__"} - known:
        assert isinstance(getattr(hookviz, name), type), name
    assert {"capture", "make_grid", "run_lens"} <= known


@pytest.mark.parametrize("name", ["hookviz", *sorted(NEEDS_MORE)])
def test_the_example_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All others run in tests/test_library_alone.py, without the packages that these need."""
    monkeypatch.chdir(ROOT)
    assert not complaint(example_of(name, getattr(hookviz, name, hookviz)))
