"""What the app needs is what the extra brings; tests/test_library_alone.py has it missing."""

import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hookviz.errors import HookVizError
from hookviz.machine import installed
from hookviz.machine.installed import APP_PACKAGES, check_app, missing_app_packages

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_the_packages_are_those_of_the_extra() -> None:
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    lines = project["optional-dependencies"]["app"]
    extra = {canonicalize_name(Requirement(line).name) for line in lines}
    homes = metadata.packages_distributions()
    assert {canonicalize_name(home) for name in APP_PACKAGES for home in homes[name]} == extra


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing_app_packages() == []
    check_app()
    monkeypatch.setattr(installed, "APP_PACKAGES", ("streamlit", "no_such_package"))
    assert missing_app_packages() == ["no_such_package"]
    with pytest.raises(HookVizError, match=r"\(no_such_package\): pip install 'hookviz\[app\]'"):
        check_app()
