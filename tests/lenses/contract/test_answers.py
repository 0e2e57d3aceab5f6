"""Where on an image a map is highest, in words."""

import numpy as np
import pytest

from hookviz.lenses.contract.answers import highest_ninth


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
