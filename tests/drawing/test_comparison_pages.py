import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

import hookviz
from hookviz.drawing.colormaps import NAN_COLOUR
from hookviz.drawing.comparison_pages import maps_figure, patching_figure, similarity_figure


@pytest.mark.parametrize(("count", "tiles"), [(1, 1), (6, 6), (7, 12)])
def test_maps_stand_row_by_row_beside_one_colour_bar(count: int, tiles: int) -> None:
    maps = {f"image {n}": np.full((2, 3), n, np.float32) for n in range(count)}
    figure = maps_figure(maps, colormap="viridis", limits=(0, 6), title="Channel 3 of conv")
    *axes, bar = figure.axes
    assert len(axes) == tiles
    assert [each.get_title() for each in axes][:count] == list(maps)
    assert bar.get_ylim() == (0, 6)
    assert figure.get_suptitle() == "Channel 3 of conv"


def test_equal_values_have_equal_colours_in_maps_of_different_sizes() -> None:
    maps = {"a": np.array([[0, 4]], np.float32), "b": np.array([[4], [8], [0]], np.float32)}
    figure = maps_figure(maps, colormap="viridis", limits=(0, 8), title="")
    first, second = (np.asarray(axes.images[0].get_array()) for axes in figure.axes[:2])
    assert first.shape == (1, 2, 3)
    assert second.shape == (3, 1, 3)
    assert (first[0, 1] == second[0, 0]).all()
    assert (first[0, 0] == second[2, 0]).all()
    assert (first[0, 0] != first[0, 1]).any()


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


def test_rows_run_down_and_colours_from_0_to_1_whatever_is_there() -> None:
    matrix = np.array([[0.25, 0.5, -0.1], [1.0, np.nan, -0.001]])
    figure = similarity_figure(
        matrix, ["a1", "a2"], ["b1", "b2", "b3"], title="t", row_title="A", column_title="B $x$"
    )
    axes = figure.axes[0]
    picture = axes.get_images()[0]
    assert picture.get_clim() == (0, 1)
    assert picture.origin == "upper"
    shown = np.asarray(picture.get_array(), float)
    np.testing.assert_array_equal(np.nan_to_num(shown, nan=7), np.nan_to_num(matrix, nan=7))
    assert [each.get_text() for each in axes.get_yticklabels()] == ["a1", "a2"]
    assert [each.get_text() for each in axes.get_xticklabels()] == ["b1", "b2", "b3"]
    assert axes.get_xlabel() == "B $x$"
    texts = [each.get_text() for each in axes.texts]
    assert texts == ["0.25", "0.50", "−0.10", "1.00", "–", "0.00"]
    assert picture.get_cmap().get_bad().tolist() == list(to_rgba(NAN_COLOUR))
    assert "magenta where there is none" in figure.axes[1].get_ylabel()
    figure.canvas.draw()


def test_many_layers_have_some_names_and_no_numbers() -> None:
    rows = [f"layer{place}.{'x' * 60}" for place in range(150)]
    figure = similarity_figure(np.eye(150)[:, :1], rows, ["b"])
    axes = figure.axes[0]
    assert [tick.get_text()[:8] for tick in axes.get_yticklabels()][:2] == ["layer0.x", "layer3.x"]
    assert len(axes.get_yticklabels()) == 50
    assert all(len(tick.get_text()) <= 32 for tick in axes.get_yticklabels())
    assert not axes.texts
    assert figure.axes[1].get_ylabel() == "linear CKA"
    with pytest.raises(hookviz.SettingError, match="colormap called 'jet'"):
        similarity_figure(np.eye(2), ["a", "b"], ["a", "b"], colormap="jet")
