import json

import pytest

from hookviz.cli.tables import echo_json, size_text, table
from hookviz.wording import times


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    made = table(("name", "size"), [("a", "10"), ("longer", "9,000")], right=("size",))
    assert made == "name     size\na          10\nlonger  9,000"
    assert table(("name",), []) == "name"


def test_json_has_no_numbers_that_json_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    echo_json([{"nan": float("nan"), "shape": (1, 2), "most": [float("inf"), 0.5], "×": "é"}])
    printed = capsys.readouterr().out
    assert json.loads(printed) == [{"nan": None, "shape": [1, 2], "most": [None, 0.5], "×": "é"}]
    assert "é" in printed


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (46.8e6, "46.8 MB"), (2.5e9, "2.5 GB")],
)
def test_bytes_in_words(count: float, text: str) -> None:
    assert size_text(count) == text


def test_a_shape_in_words() -> None:
    assert times((64, 112, 112)) == "64×112×112"
    assert times(()) == ""
