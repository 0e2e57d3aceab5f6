"""Tests for the notes of a release."""

import pytest

from scripts.release_notes import notes

CHANGELOG = """# Changes

## Unreleased

## 1.1.0 - 2027-01-02

- More.

## 1.0.0

### Added

- All.
"""


def test_the_notes_are_what_stands_under_the_versions_heading() -> None:
    assert notes(CHANGELOG, "1.1.0") == "- More."
    assert notes(CHANGELOG, "1.0.0") == "### Added\n\n- All."


@pytest.mark.parametrize("version", ["1.1", "11.0", "0.9", "Unreleased"])
def test_a_version_of_which_nothing_is_said_is_no_release(version: str) -> None:
    with pytest.raises(SystemExit, match=version):
        notes(CHANGELOG, version)
