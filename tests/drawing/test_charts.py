import io

import numpy as np
import pytest
from matplotlib.patches import Rectangle
from PIL import Image

from hookviz.drawing import charts
from hookviz.drawing.panels import ChartPanel
from hookviz.errors import SettingError


def panel(**options: object) -> ChartPanel:
    series = {"norm": np.array([1.0, 10.0, np.nan]), "most": np.array([2.0, 0.0, 4.0])}
    return ChartPanel("Norms", ("a", "b", "c"), series, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["bars", "lines"])
@pytest.mark.parametrize("log", [True, False])
def test_a_chart_is_a_picture_with_a_transparent_ground(kind: str, log: bool) -> None:
    with Image.open(io.BytesIO(charts.chart_png(panel(kind=kind, log=log), dpi=50))) as picture:
        pixels = np.asarray(picture)
    assert pixels.shape[2] == 4
    assert pixels[0, -1, 3] == 0
    assert (pixels[..., 3] > 0).any()


def test_bars_have_the_heights_of_the_numbers() -> None:
    figure = charts.chart_figure(panel())
    heights = [bar.get_height() for bar in figure.axes[0].patches if isinstance(bar, Rectangle)]
    np.testing.assert_array_equal(heights, [1, 10, np.nan, 2, 0, 4])
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["a", "b", "c"]


def test_a_log_chart_leaves_out_what_has_no_logarithm() -> None:
    lines = charts.chart_figure(panel(kind="lines", log=True)).axes[0].get_lines()
    np.testing.assert_array_equal(lines[1].get_ydata(), [2, np.nan, 4])


def test_many_labels_are_counted_instead() -> None:
    labels = tuple(f"layer{index}" for index in range(120))
    figure = charts.chart_figure(ChartPanel("x", labels, {"a": np.arange(120.0)}))
    assert len(figure.axes[0].get_xticklabels()) < 40


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(SettingError, match="neither"):
        charts.chart_figure(panel(kind="pie"))
    with pytest.raises(SettingError, match="2 numbers for 1 labels"):
        charts.chart_figure(ChartPanel("x", ("a",), {"n": np.zeros(2)}))
