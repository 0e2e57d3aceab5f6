import numpy as np

from hookviz.drawing.before_after import before_and_after


def test_equal_values_have_equal_colours_in_both() -> None:
    before = np.linspace(-1, 1, 32, dtype=np.float32).reshape(2, 4, 4)
    after = before.copy()
    after[1] *= 3
    first, second = before_and_after("conv", before, after)
    assert (first.state, second.state) == ("before", "after")
    assert (first.layer, second.title) == ("conv", "conv")
    assert second.caption == "largest change 2.00; colours as before."
    assert first.grid.limits == second.grid.limits
    assert first.grid.limits.high[0] == 3
    np.testing.assert_array_equal(first.grid.levels[0], second.grid.levels[0])
    assert (first.grid.levels[1] != second.grid.levels[1]).any()


def test_where_nothing_changes_it_says_what_it_was_told() -> None:
    maps = np.ones((1, 2, 2), np.float32)
    assert before_and_after("conv", maps, maps, "as it was")[1].caption == "as it was"
