"""How far the sliders of class scores go."""

import pytest

from hookviz.ui.components.class_scores import slider_ends


@pytest.mark.parametrize("scores", [[6.3, -0.2, -0.4], [0.1, 0.1], [554.0, 40.0]])
def test_any_class_can_be_brought_before_any_other(scores: list[float]) -> None:
    low, high, step = slider_ends(scores)
    spread = max(scores) - min(scores)
    assert high - max(scores) >= max(4, spread)
    assert min(scores) - low >= max(4, spread)
    assert 100 < (high - low) / step < 500
