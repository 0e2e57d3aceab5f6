from pathlib import Path

import pytest

from hookviz.errors import ImageError
from hookviz.images.listing import expand
from tests.cli.command import save_pictures


def test_a_folder_gives_its_images_sorted(tmp_path: Path) -> None:
    save_pictures(tmp_path, "b.PNG", "a.jpg", "c.webp")
    (tmp_path / "notes.txt").write_text("no image")
    (tmp_path / "folder.png").mkdir()
    names = [path.name for path in expand([str(tmp_path)])]
    assert names == ["a.jpg", "b.PNG", "c.webp"]


def test_a_pattern_gives_its_images_sorted_and_each_once(tmp_path: Path) -> None:
    first, second, deep = save_pictures(tmp_path, "a.png", "b.png", "deep/er/c.png")
    (tmp_path / "a.txt").write_text("no image")
    assert expand([f"{tmp_path}/*"]) == (first, second)
    assert expand([f"{tmp_path}/[bc].p?g", str(second), str(first)]) == (second, first)
    assert expand([f"{tmp_path}/**/*.png"]) == (first, second, deep)


def test_a_file_named_in_full_is_taken_as_it_is(tmp_path: Path) -> None:
    [odd] = save_pictures(tmp_path, "[1].png")
    assert expand([str(odd)]) == (odd,)
    assert expand(["missing.png"]) == (Path("missing.png"),)


def test_a_folder_or_pattern_without_images_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"folder .* gives no image"):
        expand([str(tmp_path)])
    with pytest.raises(ImageError, match=r"pattern .* gives no image"):
        expand([f"{tmp_path}/*.png"])


def test_folders_within_and_links_in_a_circle(tmp_path: Path) -> None:
    near, far = save_pictures(tmp_path, "a.png", "b/c/d.png")
    (tmp_path / "b" / "again").symlink_to(tmp_path)
    (tmp_path / "round.png").symlink_to("round.png")
    (tmp_path / "gone.png").symlink_to("nowhere.png")
    assert expand([str(tmp_path)], inside=True) == (near, far)
    assert expand([str(tmp_path)]) == (near,)
