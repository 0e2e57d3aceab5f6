import os
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

import hookviz
from hookviz.capturing.image_shards import (
    UnreadableImage,
    image_shards,
    map_in_order,
    needs_of,
    read_batches,
)
from hookviz.images.files import ImageUrl
from hookviz.types import Model
from tests.atlas.folders import save_folder


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


def test_results_come_in_order_and_never_far_ahead() -> None:
    began: list[int] = []
    lock, let = threading.Lock(), threading.Event()

    def work(item: int) -> int:
        with lock:
            began.append(item)
        if item == 0:
            let.wait(30)  # the first is the last to end
        return item * item

    results = map_in_order(work, range(200), 10)
    threading.Timer(0.05, let.set).start()
    for number in range(200):
        assert next(results) == number * number
        assert len(began) <= number + 11
    assert next(results, None) is None


def test_an_end_in_the_middle_leaves_no_thread_behind() -> None:
    def work(item: int) -> int:
        if item == 5:
            raise KeyError(item)
        return item

    before = threading.active_count()
    with pytest.raises(KeyError):
        list(map_in_order(work, range(100), 8))
    results = map_in_order(work, range(3), 2)
    next(results)
    results.close()  # type: ignore[attr-defined] # a generator
    assert threading.active_count() == before


def test_images_come_in_batches_and_bad_ones_with_their_reason(tiny: Model, tmp_path: Path) -> None:
    paths = save_folder(tmp_path, 7)
    paths[4].write_bytes(b"nothing")
    batches = list(read_batches(tiny, paths, range(7), 3, None))
    assert [[each.index for each in batch] for batch in batches] == [[0, 1, 2], [3, 4, 5], [6]]
    assert isinstance(batches[1][1], UnreadableImage)
    assert "004.png" in batches[1][1].reason
    first: Any = batches[0][0]
    assert tuple(first.tensor.shape) == (1, 3, 16, 16)
