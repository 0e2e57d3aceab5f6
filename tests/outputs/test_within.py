"""The part of an answer within a region; lenses ask about it in `test_asked_part.py`."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hookviz.outputs.declaration import Output
from hookviz.outputs.reading import read_scores
from hookviz.outputs.within import within


def left(rows: int, columns: int) -> NDArray[np.float64]:
    marked = np.zeros((rows, columns))
    marked[:, : columns // 2] = 1
    return marked


def test_maps_are_their_means_over_the_region_whatever_part_answers() -> None:
    maps = torch.randn(2, 3, 4, 6)
    output = within(Output("maps", "out"), left, (32, 48), 0, "left")
    found: Any = read_scores(output, {"out": maps, "aux": maps + 1}, 2)
    assert found.kind == "maps"
    torch.testing.assert_close(found.values, maps[..., :3].mean((2, 3)))


def test_what_is_kept_of_one_region_is_not_taken_for_another() -> None:
    one, same, other, another = (
        within(Output(kind), left, (8, 8), 0, name).key
        for kind, name in (("maps", "a"), ("maps", "a"), ("maps", "b"), ("binary", "a"))
    )
    assert one == same
    assert len({one, other, another}) == 3
