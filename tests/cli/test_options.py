"""What several commands take."""

from pathlib import Path

from click.testing import CliRunner

from hookviz.cli.main import main
from tests.cli.command import mistake
from tests.pictures import picture


def test_a_dash_is_standard_output(tmp_path: Path) -> None:
    """What is printed elsewhere goes to standard error, without the file that was made for it."""
    names = [str(tmp_path / f"{name}.png") for name in ("one", "two")]
    for name in names:
        picture(7).save(name)
    for command, starts in (
        ("grid", b"\x89PNG"),
        ("map", b"<?xml"),
        ("page", b"<!doctype html>"),
        ("capture", b"PK"),
        ("features", b"PK"),
    ):
        result = CliRunner().invoke(main, [command, names[0], "-o", "-"], catch_exceptions=False)
        assert result.exit_code == 0, result.stderr
        assert result.stdout_bytes.lower().startswith(starts.lower()), command
        assert "/stdout." not in result.stderr
    told = mistake("grid", *names, "-o", "-")
    assert told.startswith("hookviz: 2 images don't go into one file 'stdout.png'")
