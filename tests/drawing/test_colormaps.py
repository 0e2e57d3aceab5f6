import matplotlib as mpl
import numpy as np
import pytest

from hookviz.drawing.colormaps import berlin


@pytest.mark.skipif("berlin" not in mpl.colormaps, reason="matplotlib has it from 3.10 on")
def test_an_older_matplotlib_gets_berlin_within_three_levels() -> None:
    theirs = mpl.colormaps["berlin"].resampled(256)(np.arange(256), bytes=True)
    ours = berlin().resampled(256)(np.arange(256), bytes=True)
    assert np.abs(ours.astype(int) - theirs).max() <= 3
