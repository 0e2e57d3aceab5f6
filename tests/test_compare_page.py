"""The blocks of docs/compare.md run, one after the other, and its words on few images are true."""

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(
    r"^```python\n(.*?)^```", (ROOT / "docs" / "compare.md").read_text("utf-8"), re.S | re.M
)


def test_the_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert len(BLOCKS) >= 6
    names: dict[str, Any] = {}
    for block in BLOCKS:
        exec(block, names)  # noqa: S102
    assert names["alike"].note
