"""The examples in the docstrings of the public API run, and every public function has one."""

import doctest

import pytest

import hookviz
from tests.library_alone import NEEDS_A_PERSON, ROOT, complaint, example_of, functions


@pytest.mark.parametrize("name", ["hookviz", *functions()])
def test_the_example_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    test = example_of(name, hookviz if name == "hookviz" else functions()[name])
    assert 1 <= len(test.examples) <= 6
    skipped = [doctest.SKIP in example.options for example in test.examples]
    assert all(skipped) if name in NEEDS_A_PERSON else not any(skipped)
    assert not complaint(test)


def test_nothing_public_is_left_out() -> None:
    known = set(functions())
    for name in set(hookviz.__all__) - {"__version__"} - known:
        assert isinstance(getattr(hookviz, name), type), name
    assert {"capture", "make_grid", "run_lens"} <= known
