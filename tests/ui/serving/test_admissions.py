"""Which sessions may use the routes beside the page."""

import pytest

from hookviz.settings import read_settings
from hookviz.ui.serving import admissions


@pytest.mark.parametrize(
    "door", [{"HOOKVIZ_CLASS_CODE": "chalk and board"}, {"HOOKVIZ_LOGIN": "1"}]
)
def test_behind_a_door_those_who_came_in_are_admitted_until_they_go(
    monkeypatch: pytest.MonkeyPatch, door: dict[str, str]
) -> None:
    monkeypatch.setattr(admissions, "settings", lambda: read_settings(door))
    assert not admissions.is_admitted("a-session")
    admissions.admit("ann", "a-session")
    assert admissions.is_admitted("a-session")
    assert not admissions.is_admitted("ann")
    admissions.withdraw("ann")
    admissions.withdraw("ann")
    assert not admissions.is_admitted("a-session")


def test_without_a_door_all_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admissions, "settings", lambda: read_settings({}))
    assert admissions.is_admitted("any")
