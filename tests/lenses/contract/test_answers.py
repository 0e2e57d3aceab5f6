"""Where on an image a map is highest, in words."""

import numpy as np
import pytest
from torch import Tensor

from hookviz.lenses.contract.answers import highest_ninth, share_of_half


@pytest.mark.parametrize("shape", [(3, 3), (13, 13), (7, 20), (1, 1), (2, 5)])
def test_each_cell_has_the_word_of_its_third(shape: tuple[int, int]) -> None:
    words = (
        *("at the upper left", "at the top", "at the upper right"),
        *("at the left", "in the middle", "at the right"),
        *("at the lower left", "at the bottom", "at the lower right"),
    )
    for row, column in np.ndindex(*shape):
        map_ = np.full(shape, np.nan)  # which is nowhere the highest
        map_[row, column] = -1.0
        across, down = column / shape[1], row / shape[0]
        assert highest_ninth(map_) == words[int(3 * down + 1e-9) * 3 + int(3 * across + 1e-9)]


def test_half_of_a_map_is_on_as_few_cells_as_can_be(noise: Tensor) -> None:
    sizes = np.abs(noise.numpy())
    share = share_of_half(sizes)
    assert share is not None
    count = round(share * sizes.size)
    strongest = np.sort(sizes, axis=None)[::-1].astype(np.float64)
    assert strongest[: count - 1].sum() < strongest.sum() / 2 <= strongest[:count].sum()
    assert share_of_half(np.zeros((2, 2))) is None
