import numpy as np
from matplotlib.patches import Rectangle

from hookviz.drawing.patching_page import patching_figure


def test_layers_are_bars_beside_their_estimate_or_cells_on_one_scale() -> None:
    shares = {"conv1": np.array(1.0), "conv2": np.array(-0.5)}
    (axes,) = patching_figure(shares, {"conv1": np.array(0.2), "conv2": np.array(np.nan)}).axes
    bars = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
    assert [bar.get_width() for bar in bars][:3] == [1.0, -0.5, 0.2]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["conv1", "conv2"]
    shares = {"conv1": np.array([[0.1, -0.4]]), "conv2": np.array([[0.2]])}
    first, second, *_ = patching_figure(shares, shares).axes
    for axes, values in zip((first, second), shares.values(), strict=True):
        (image,) = axes.images
        assert image.get_clim() == (-0.4, 0.4)
        np.testing.assert_array_equal(image.get_array(), values)
