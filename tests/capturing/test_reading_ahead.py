import threading
from pathlib import Path
from typing import Any

import pytest

from hookviz.capturing import reading_ahead
from hookviz.capturing.reading_ahead import UnreadableImage
from hookviz.types import Model
from tests.atlas.folders import save_folder


def test_results_come_in_order_and_never_far_ahead() -> None:
    began: list[int] = []
    lock, let = threading.Lock(), threading.Event()

    def work(item: int) -> int:
        with lock:
            began.append(item)
        if item == 0:
            let.wait(30)  # the first is the last to end
        return item * item

    results = reading_ahead.in_order(work, range(200), 10)
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
        list(reading_ahead.in_order(work, range(100), 8))
    results = reading_ahead.in_order(work, range(3), 2)
    next(results)
    results.close()  # type: ignore[attr-defined] # a generator
    assert threading.active_count() == before


def test_images_come_in_batches_and_bad_ones_with_their_reason(tiny: Model, tmp_path: Path) -> None:
    paths = save_folder(tmp_path, 7)
    paths[4].write_bytes(b"nothing")
    batches = list(reading_ahead.batches(tiny, paths, range(7), 3, None))
    assert [[each.index for each in batch] for batch in batches] == [[0, 1, 2], [3, 4, 5], [6]]
    assert isinstance(batches[1][1], UnreadableImage)
    assert "004.png" in batches[1][1].reason
    first: Any = batches[0][0]
    assert tuple(first.tensor.shape) == (1, 3, 16, 16)
