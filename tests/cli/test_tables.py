import json

import pytest

from hookviz.cli.tables import echo_json


def test_json_has_no_numbers_that_json_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    echo_json([{"nan": float("nan"), "shape": (1, 2), "most": [float("inf"), 0.5], "×": "é"}])
    printed = capsys.readouterr().out
    assert json.loads(printed) == [{"nan": None, "shape": [1, 2], "most": [None, 0.5], "×": "é"}]
    assert printed.isascii()


def test_names_of_files_are_text_whatever_bytes_they_have(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = ["é".encode().decode("ascii", "surrogateescape"), "a\udcff", "b\ud800", "é\udcc3"]
    echo_json({names[1]: names})
    assert json.loads(capsys.readouterr().out) == {"a\\xff": ["é", "a\\xff", "b\\ud800", "é\\xc3"]}
