"""What several commands take."""

import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hookviz.cli.main import main
from hookviz.cli.options import destinations, each, keep_existing
from hookviz.errors import HookVizError, ImageError, SettingError, UnknownLayerError
from hookviz.images.files import expand
from tests.cli.command import mistake, save_pictures
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


SUFFIXES = (".png", ".pdf")


def test_images_go_into_a_file_a_folder_or_a_pattern(tmp_path: Path) -> None:
    image, out = tmp_path / "a.jpg", tmp_path / "new" / "grid.PDF"
    assert destinations(str(out), [image], SUFFIXES) == {image: out}
    assert out.parent.is_dir()
    first, second = tmp_path / "a.jpg", tmp_path / "b.jpg"
    out = tmp_path / "out"
    assert destinations(str(out), [first, second], SUFFIXES) == {
        first: out / "a.png",
        second: out / "b.png",
    }
    assert out.is_dir()
    pattern = str(tmp_path / "{name}" / "grid-{name}.pdf")
    assert destinations(pattern, [first, second], SUFFIXES) == {
        first: tmp_path / "a" / "grid-a.pdf",
        second: tmp_path / "b" / "grid-b.pdf",
    }
    dotted = tmp_path / "v1.2"
    assert destinations(f"{dotted}/", [first], SUFFIXES) == {first: dotted / "a.png"}
    assert destinations(str(dotted), [first], SUFFIXES) == {first: dotted / "a.png"}  # there now
    images = [tmp_path / each for each in ("x/a.jpg", "y/A.png", "a-2.png", "z/a.gif")]
    places = destinations(str(tmp_path / "out"), images, SUFFIXES)
    assert [place.name for place in places.values()] == ["a.png", "A-2.png", "a-2-2.png", "a-3.png"]


def test_what_does_not_fit_together(tmp_path: Path) -> None:
    first, second = tmp_path / "a.png", tmp_path / "b.png"
    with pytest.raises(SettingError, match=r"2 images .* such as '\{name\}.png'"):
        destinations("out.png", [first, second], SUFFIXES)
    with pytest.raises(SettingError, match=r"none of .png, .pdf; for a folder .* 'out.jpg/'"):
        destinations("out.jpg", [first], SUFFIXES)
    with pytest.raises(SettingError, match="is an image to be read"):
        destinations(str(tmp_path), [first, second], SUFFIXES)


def test_missing_files_are_told_before_any_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [image] = save_pictures(tmp_path, "star.png")
    there, missing = keep_existing([tmp_path / "tsar.png", image])
    assert there == [image]
    [row] = missing
    assert "Did" in row["error"]
    assert "'star.png'" in row["error"]
    assert capsys.readouterr().err.count("\n") == 1


def test_one_that_fails_is_reported_and_the_rest_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def work(picture: Path) -> dict[str, Any]:
        if picture.name == "b":
            raise ImageError("not\nreadable")
        if picture.name == "c":
            raise PermissionError(13, "Permission denied", "c.png")
        return {"number": ord(picture.name)}

    assert each([Path("a"), Path("b"), Path("c"), Path("d")], work) == [
        {"image": "a", "number": 97},
        {"image": "b", "error": "not\nreadable"},
        {"image": "c", "error": "'c.png': Permission denied."},
        {"image": "d", "number": 100},
    ]
    output = capsys.readouterr()
    assert output.err == ("hookviz: b: not readable\nhookviz: c: 'c.png': Permission denied.\n")
    assert output.out == ""


@pytest.mark.parametrize("error", [UnknownLayerError("layer", "x", []), SettingError("top")])
def test_what_would_fail_with_every_image_ends_it(error: HookVizError) -> None:
    tried = []

    def work(picture: Path) -> dict[str, Any]:
        tried.append(picture)
        raise error

    with pytest.raises(type(error)):
        each([Path("a"), Path("b")], work)
    assert tried == [Path("a")]


def test_an_empty_argument_is_no_folder_and_a_tilde_is_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    (picture,) = save_pictures(tmp_path, "a.png")
    assert expand(["."]) == (Path("a.png"),)
    for nothing in ("", "  "):
        with pytest.raises(ImageError, match="names no image"):
            expand([nothing])
        with pytest.raises(SettingError, match="names no file"):
            destinations(nothing, [Path("a.png")], (".png",))
    for home in ("~", "~/a.png", "~/*.png"):
        assert expand([home]) == (picture,)
    assert destinations("~/maps/", [picture], (".png",)) == {picture: tmp_path / "maps" / "a.png"}


def test_many_of_one_name_get_numbers_without_a_search(tmp_path: Path) -> None:
    def lines(count: int) -> int:
        done = 0

        def trace(frame: Any, *_event: object) -> Any:
            nonlocal done
            done += frame.f_code.co_name == "_free_path"
            return trace

        images = [tmp_path / str(day) / "image.jpg" for day in range(count)]
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            outputs = destinations(f"{tmp_path / 'out'}/", images, SUFFIXES)
        finally:
            sys.settrace(before)
        assert len(set(outputs.values())) == count
        return done

    assert lines(80) < 4.5 * lines(20)
