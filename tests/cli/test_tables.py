import json

import pytest

from hookviz.cli.tables import echo_json, table


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    text = table(("name", "size"), [("a", "10"), ("longer", "9,000")], right=("size",))
    assert text == "name     size\na          10\nlonger  9,000"
    assert table(("name",), []) == "name"


def test_json_has_no_numbers_that_json_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    echo_json([{"nan": float("nan"), "shape": (1, 2), "most": [float("inf"), 0.5], "×": "é"}])
    printed = capsys.readouterr().out
    assert json.loads(printed) == [{"nan": None, "shape": [1, 2], "most": [None, 0.5], "×": "é"}]
    assert "é" in printed
