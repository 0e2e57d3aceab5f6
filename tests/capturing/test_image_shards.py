import os
from pathlib import Path
from typing import Any

import pytest
import torch

import hookviz
from hookviz.capturing.image_shards import image_shards, needs_of
from hookviz.images.files import ImageUrl


def test_shards_hold_all_images_in_order() -> None:
    images = {str(number): number for number in range(7)}
    shards = list(image_shards(images.items(), 3))
    assert [shard.names for shard in shards] == [("0", "1", "2"), ("3", "4", "5"), ("6",)]
    assert [shard.images for shard in shards] == [(0, 1, 2), (3, 4, 5), (6,)]
    assert list(image_shards([], 3)) == []


def test_one_file_of_each_folder_that_is_seen_here_is_needed(
    tiny: hookviz.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a/1.png", "a/2.png", "b/3.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    images = [
        *(tmp_path / name for name in ("a/0.png", "a/1.png", "a/2.png", "gone/1.png", "b/3.png")),
        *(torch.zeros(1), b"", ImageUrl("s3://a/1.png"), "s3://a/2.png"),
    ]
    needs = needs_of([tiny, tiny], images)
    assert needs.files == (str(tmp_path / "a" / "1.png"), str(tmp_path / "b" / "3.png"))
    assert not needs.gpu
    looked: list[object] = []
    real: Any = os.stat

    def stat(path: object, *args: object, **options: object) -> object:
        looked.append(path)
        return real(path, *args, **options)

    monkeypatch.setattr(os, "stat", stat)
    assert needs_of([tiny], (f"{tmp_path}/a/{number}.png" for number in range(10_000))).files
    assert len(looked) < 10  # of a million paths
