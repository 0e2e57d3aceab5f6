"""Bars and JSON on the terminal."""

import io
import json

import pytest

from hookviz.cli.terminal import echo_json, progress_bar


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_alone_is_shown_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress_bar("Images") as report:
        report(0.5)
    assert capsys.readouterr() == ("", "")  # no bar into a file
    terminal = _Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with progress_bar("Images") as report:
        report(0.5)
    assert "Images" in terminal.getvalue()
    assert "50%" in terminal.getvalue()


def test_json_has_no_numbers_that_json_lacks_and_names_are_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    echo_json([{"nan": float("nan"), "shape": (1, 2), "most": [float("inf"), 0.5], "×": "é"}])
    printed = capsys.readouterr().out
    assert json.loads(printed) == [{"nan": None, "shape": [1, 2], "most": [None, 0.5], "×": "é"}]
    assert printed.isascii()
    names = ["é".encode().decode("ascii", "surrogateescape"), "a\udcff", "b\ud800", "é\udcc3"]
    echo_json({names[1]: names})
    assert json.loads(capsys.readouterr().out) == {"a\\xff": ["é", "a\\xff", "b\\ud800", "é\\xc3"]}
