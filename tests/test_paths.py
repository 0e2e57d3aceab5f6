import os
from pathlib import Path

import numpy as np
import pytest

import hookviz
from hookviz.paths import fault_of, path_of
from tests.pictures import picture


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_a_tilde_is_the_home_folder_in_every_path_of_a_person(home: Path) -> None:
    assert path_of("~/maps") == path_of(Path("~/maps")) == home / "maps"
    assert path_of("~nobody-of-this-name/maps") == Path("~nobody-of-this-name/maps")
    assert path_of("a~/~b") == Path("a~/~b")
    picture(1).save(home / "photo.png")
    (home / "labels.txt").write_text("\n".join(map(str, range(20))))
    image = hookviz.read_image("~/photo.png")
    np.testing.assert_array_equal(image.pixels, hookviz.read_image(home / "photo.png").pixels)
    model = hookviz.load_model("shapesnet", labels="~/labels.txt")
    assert hookviz.load_model("shapesnet", labels=Path("~/labels.txt")).categories[3] == "3"
    assert model.categories[3] == "3"
    with pytest.raises(hookviz.WeightsError, match=r"There is no checkpoint '.*/mine\.pth'"):
        hookviz.load_model("shapesnet", "~/mine.pth")


def test_what_is_no_ordinary_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    assert "folder" in fault_of(tmp_path)
    assert "pipe" in fault_of(tmp_path / "pipe")
    assert "device" in fault_of(Path(os.devnull))
    assert "isn't there" in fault_of(tmp_path / "link")
    assert fault_of(tmp_path / "file") == fault_of(tmp_path / "nothing") == ""
