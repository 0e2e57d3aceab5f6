import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import hookviz
from hookviz.atlas.sources import sources
from hookviz.types import Model
from tests.atlas.folders import save_folder
from tests.pictures import encoded, picture


def test_a_folder_gives_its_images_by_their_ways_and_classes(tiny: Model, tmp_path: Path) -> None:
    save_folder(tmp_path / "p" / "b" / "deep", 1)
    save_folder(tmp_path / "p" / "a", 2)
    (tmp_path / "p" / "a" / "notes.txt").write_text("no image")
    listed = sources(tiny, tmp_path / "p")
    assert [(each.name, each.category) for each in listed] == [
        ("a/000.png", "a"),
        ("a/001.png", "a"),
        ("b/deep/000.png", "b"),
    ]
    assert listed[0].path == tmp_path / "p" / "a" / "000.png"


def test_several_of_any_kind_each_once(tiny: Model, tmp_path: Path) -> None:
    first, second = save_folder(tmp_path / "p", 2)
    other = save_folder(tmp_path / "q", 1)[0]
    image = picture()
    images = [str(first), tmp_path / "p", f"{tmp_path}/q/*.png", image, encoded(image)]
    listed = sources(tiny, [*images, torch.zeros(3, 4, 4)])
    names = [each.name for each in listed]
    assert names == ["000.png", "001.png", "000.png (2)", "image 4", "image 5", "image 6"]
    assert [each.path for each in listed[:4]] == [first, second, other, None]
    listed = sources(tiny, {"cat/1": picture(), "dog/2": picture(1)})
    assert [each.category for each in listed] == ["cat", "dog"]
    assert [each.name for each in sources(tiny, [picture()])] == ["image 1"]
    with pytest.raises(hookviz.HookVizError, match="no image"):
        sources(tiny, [])


def test_a_file_of_many_is_looked_up_once(
    tiny: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a network's disk each look takes milliseconds: of 100,000 files, minutes."""
    for number in range(200):
        (tmp_path / f"{number}.png").touch()
    looked: list[object] = []
    real = os.stat

    def stat(path: object, *args: object, **options: object) -> os.stat_result:
        looked.append(path)
        return real(path, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", stat)
    assert len(sources(tiny, tmp_path)) == 200
    assert len(looked) < 200 + 20


class Labelled:
    """Map-style dataset of pairs, as torch has them."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.full((3, 16, 16), float(index)), index % 2


def test_a_dataset_and_a_loader_are_read_without_their_labels(tiny: Model, tmp_path: Path) -> None:
    names = [f"image {number}" for number in range(1, 6)]
    data = Labelled()
    loader: DataLoader[Any] = DataLoader(data, batch_size=2)  # type: ignore[arg-type]
    for images in (data, loader, [data[place] for place in range(5)]):
        listed = sources(tiny, images)
        assert [each.name for each in listed] == names
        for number, each in enumerate(listed):
            assert torch.equal(each.image.reshape(3, 16, 16), data[number][0])
    files = save_folder(tmp_path, 3)
    listed = sources(tiny, [(str(file), 0) for file in files])
    assert [each.path for each in listed] == files
