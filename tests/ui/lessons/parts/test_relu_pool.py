import numpy as np
import pytest

import hookviz
from hookviz.errors import HookVizError
from hookviz.ui.lessons.parts.relu_pool import CELL, PART, before_relu, stages
from hookviz.wording import number
from tests.ui.lessons.parts.scenes import cat, star, with_defaults


@pytest.mark.parametrize(("pool", "window"), [("max", 2), ("max", 5), ("average", 3)])
def test_each_pooled_cell_is_made_of_its_window(pool: str, window: int) -> None:
    before = np.random.default_rng(window).normal(size=(11, 13)).astype(np.float32)
    found = stages(before, pool, window)
    np.testing.assert_array_equal(found.rectified, np.where(before > 0, before, 0))
    rows, columns = 11 // window, 13 // window
    assert found.pooled.shape == (rows, columns)
    for row in range(rows):
        for column in range(columns):
            raw, window_cells = found.cells(row, column)
            part = before[
                row * window : (row + 1) * window, column * window : (column + 1) * window
            ]
            np.testing.assert_array_equal(raw, part)
            kept = np.maximum(part, 0)
            np.testing.assert_array_equal(window_cells, kept)
            expected = kept.max() if pool == "max" else kept.mean()
            assert found.pooled[row, column] == pytest.approx(expected, rel=1e-5)


def test_before_relu_is_what_the_network_gives_to_it() -> None:
    scene = star()
    assert str(before_relu(scene, "stem.first.conv")) == "stem.first.norm"
    assert str(before_relu(cat(), "features.0")) == "features.0"  # without a norm
    capture = hookviz.capture(scene.model, scene.model_input, ["stem.first.norm", "stem.relu"])
    facts = PART.facts(scene, {**with_defaults(PART), CELL: "3,5"})
    channel = int(facts["channel"])
    before = capture["stem.first.norm"].values[channel].numpy()
    after = capture["stem.relu"].values[channel].numpy()
    np.testing.assert_array_equal(stages(before, "max", 2).rectified, after)
    assert facts["zeros"] == pytest.approx((after == 0).mean())
    assert facts["negative"] == pytest.approx((before < 0).mean())
    assert facts["highest"] == pytest.approx(facts["pooled_highest"])
    assert (facts["in_window"], facts["row"], facts["column"]) == (4, 3, 5)
    assert facts["cell_before"] == number(float(before[3, 5]))
    assert facts["cell_after"] == number(float(after[3, 5]))
    with pytest.raises(HookVizError, match="3×3"):
        stages(np.zeros((3, 3), np.float32), "max", 4)


def test_the_first_cell_is_below_zero_in_a_window_with_both_signs() -> None:
    before = np.random.default_rng(2).normal(size=(9, 8)).astype(np.float32)
    found = stages(before, "max", 2)
    row, column = found.first_cell
    assert before[row, column] < 0 == found.rectified[row, column]
    raw, _ = found.cells(row // 2, column // 2)
    assert raw.max() == found.pooled.max()  # no window of both signs is stronger
    assert raw.min() == before[row, column]
    below_zero = np.linspace(-3, -1, 36, dtype=np.float32).reshape(6, 6)
    assert stages(below_zero, "max", 2).first_cell == (0, 0)  # the lowest
    assert stages(below_zero + 4, "max", 2).first_cell == (5, 5)  # the highest: nothing is changed
