"""The bar on the terminal."""

import io

import pytest

from hookviz.cli.progress import progress_bar


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_is_shown_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with progress_bar("Images") as report:
        report(0.5)
    assert "Images" in terminal.getvalue()
    assert "50%" in terminal.getvalue()


def test_a_file_gets_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("Images") as report:
        report(0.5)
    assert capsys.readouterr() == ("", "")
