"""The API reference has every public name with its words, and nothing of the machine."""

import re
import warnings
from pathlib import Path

import pytest

import hookviz
from scripts import api_docs


def test_every_public_name_is_on_the_page(tmp_path: Path) -> None:
    api_docs.build(tmp_path)
    page = (tmp_path / "hookviz.html").read_text("utf-8")
    for name in hookviz.__all__:
        section = re.search(rf'<section id="{name}">(.*?)</section>', page, re.DOTALL)
        assert section, name
        assert name == "__version__" or 'class="docstring"' in section[1], name
    assert " at 0x" not in page
    assert str(api_docs.OUT.parent.parent) not in page
    assert [path.name for path in tmp_path.glob("hookviz/*")] == []


def test_a_warning_fails_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def warn(*_modules: str, **_options: object) -> None:
        warnings.warn("a name does not resolve", stacklevel=1)

    monkeypatch.setattr("pdoc.pdoc", warn)
    with warnings.catch_warnings(action="default"), pytest.raises(UserWarning, match="resolve"):
        api_docs.build(tmp_path)
