"""The old public names work for one version, and each use of one says what it is called now."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import hookviz
from hookviz import deprecated
from hookviz.deprecated import RenamedAttribute, renamed_keyword
from hookviz.synthesis.settings import NONE, SLIGHT


@contextmanager
def warns_here(message: str) -> Iterator[None]:
    """Expect that warning alone, at a line of this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    assert {str(warning.message) for warning in caught} == {message}
    assert {warning.category for warning in caught} == {DeprecationWarning}
    assert {warning.filename for warning in caught} == {__file__}


def test_the_old_names_go_in_the_next_minor_version() -> None:
    now = [int(part) for part in hookviz.__version__.split(".")[:2]]
    assert now < [int(part) for part in deprecated.REMOVED_IN.split(".")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Address", "ActivationKey"),
        ("Excitation", "TopActivation"),
        ("Smaller", "CompactedModel"),
        ("before", "edit_inputs"),
        ("smaller", "remove_pruned_channels"),
        ("verbose", "summary"),
    ],
)
def test_a_public_name_by_its_old_one(old: str, new: str) -> None:
    message = f"hookviz.{old} is now called hookviz.{new}; the old name goes in HookViz 2.0."
    for _ in range(2):  # each use warns
        with warns_here(message):
            found = getattr(hookviz, old)
    assert found is getattr(hookviz, new)
    assert old not in dir(hookviz)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("atlases") / "samples.atlas"


def test_an_atlas_by_its_old_names(path: Path) -> None:
    model = hookviz.load_model("shapesnet")
    hookviz.make_atlas(model, "assets/samples/*.jpg", path, size=32, top=1)
    with warns_here(
        "make_atlas(anew=…) is now called overwrite=; the old name goes in HookViz 2.0."
    ):
        atlas = hookviz.make_atlas(
            model,
            "assets/samples/*.jpg",
            path,
            size=32,
            top=2,
            anew=True,  # type: ignore[call-arg]
        )
    with warns_here(
        "Atlas.excites is now called top_activations; the old name goes in HookViz 2.0."
    ):
        old = atlas.excites("stem.first.conv", 1)
    new = atlas.top_activations("stem.first.conv", 1)
    assert len(old) == 2
    assert [(each.image, each.value) for each in old] == [(each.image, each.value) for each in new]


def test_a_method_of_synthesis_by_its_old_names() -> None:
    keyword = (
        "MaximizationConfig(disturbance=…) is now called robustness=; "
        "the old name goes in HookViz 2.0."
    )
    with warns_here(keyword):
        method = hookviz.MaximizationConfig(64, disturbance=NONE)  # type: ignore[call-arg]
    assert method == hookviz.MaximizationConfig(64, robustness=NONE)
    with warns_here(
        "MaximizationConfig.disturbance is now called robustness; the old name goes in HookViz 2.0."
    ):
        assert method.disturbance == NONE
    assert replace(method, robustness=SLIGHT).robustness == SLIGHT
    assert hash(method) == hash(hookviz.MaximizationConfig(64, robustness=NONE))


def test_new_names_warn_of_nothing_and_both_at_once_are_refused() -> None:
    @renamed_keyword("old", "new")
    @dataclass
    class Thing:
        new: int = 1
        old = RenamedAttribute("new")

    assert [Thing(2).new, Thing(new=3).new, Thing().new] == [2, 3, 1]
    assert repr(Thing()).endswith("Thing(new=1)")

    @renamed_keyword("old", "new")
    def function(new: int) -> int:
        """Say it."""
        return new

    both: dict[str, Any] = {"old": 1, "new": 2}
    with pytest.raises(TypeError, match=r"function\(\) takes new, or its old name old, and not"):
        function(**both)
    assert (function.__name__, function.__doc__) == ("function", "Say it.")
