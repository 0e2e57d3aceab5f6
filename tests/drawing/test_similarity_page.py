import numpy as np
import pytest
from matplotlib.colors import to_rgba

import hookviz
from hookviz.drawing.colormaps import NAN_COLOUR
from hookviz.drawing.similarity_page import similarity_figure


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
