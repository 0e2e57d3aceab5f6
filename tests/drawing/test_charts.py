import io
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle
from PIL import Image

from hookviz.drawing import charts
from hookviz.drawing.charts import arc_diagram
from hookviz.drawing.colormaps import ABOVE, BELOW
from hookviz.drawing.panels import ChartPanel
from hookviz.errors import SettingError

ORANGE, TEAL = (0xC2, 0x60, 0x3C), (0x1F, 0x9A, 0x9D)


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


def test_bars_and_lines_have_the_numbers_and_what_does_not_fit_is_refused() -> None:
    axes = charts.chart_figure(panel()).axes[0]
    heights = [bar.get_height() for bar in axes.patches if isinstance(bar, Rectangle)]
    np.testing.assert_array_equal(heights, [1, 10, np.nan, 2, 0, 4])
    assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "b", "c"]
    signed = ChartPanel("", ("a", "b"), {"x": np.array([-1.0, 2.0])})
    colours = [bar.get_facecolor() for bar in charts.chart_figure(signed).axes[0].patches]
    assert colours == [to_rgba(BELOW), to_rgba(ABOVE)]
    lines = charts.chart_figure(panel(kind="lines", log=True)).axes[0].get_lines()
    np.testing.assert_array_equal(lines[1].get_ydata(), [2, np.nan, 4])  # 0 has no logarithm
    labels = tuple(f"layer{index}" for index in range(120))
    many = charts.chart_figure(ChartPanel("x", labels, {"a": np.arange(120.0)}))
    assert len(many.axes[0].get_xticklabels()) < 40
    with pytest.raises(SettingError, match="neither"):
        charts.chart_figure(panel(kind="pie"))
    with pytest.raises(SettingError, match="2 numbers for 1 labels"):
        charts.chart_figure(ChartPanel("x", ("a",), {"n": np.zeros(2)}))


def axis(values: list[float], **looks: Any) -> charts.Axis:
    labels = tuple(map(str, range(len(values))))
    return charts.axis_of(ChartPanel("", labels, {"x": np.array(values)}, **looks))


def test_places_can_lie_on_a_true_scale() -> None:
    chart = panel(kind="lines", positions=(80, 90, 95))
    assert chart.steps.tolist() == pytest.approx([0, 4 / 3, 2])
    [line, _] = charts.chart_figure(chart).axes[0].lines
    assert line.get_xdata() == pytest.approx(chart.steps)
    assert panel().steps.tolist() == [0, 1, 2]


def test_an_axis_has_every_number_and_one_of_powers_leaves_zero_out() -> None:
    found = axis([-2.5, 0.3, np.nan])
    assert found.share(0.0) == next(place for place, text in found.ticks if text == "0")
    shares = [found.share(value) for value in (-2.5, 0.3)]
    assert all(share is not None and 0 <= share <= 1 for share in shares)
    assert found.share(np.nan) is None
    lines = axis([50.0, 51.0], kind="lines")
    assert (lines.low, lines.high) == pytest.approx((50.0, 51.0))
    found = axis([1e-3, 0.0, 10.0], log=True)
    assert [found.share(value) for value in (1e-3, 10.0, 0.0)] == [0.0, 1.0, None]
    assert found.share(0.1) == pytest.approx(0.5)
    assert axis([np.nan], log=True).ticks


def has(picture: np.ndarray[tuple[int, ...], np.dtype[np.uint8]], colour: tuple[int, ...]) -> bool:
    return bool((np.abs(picture.astype(int) - colour).max(2) < 12).any())


def test_a_way_past_others_is_an_arc_and_a_meeting_is_orange() -> None:
    names = ["image", "conv1", "conv2", "conv3"]
    plain = arc_diagram(names, [(0, 1), (1, 2), (2, 3)])
    assert plain.dtype == np.uint8
    assert plain.ndim == 3
    assert not has(plain, TEAL)
    assert not has(plain, ORANGE)
    joined = arc_diagram(names, [(0, 1), (1, 2), (2, 3), (1, 3)], {3})
    assert has(joined, TEAL)
    assert has(joined, ORANGE)
    assert joined.shape[0] > plain.shape[0]  # the arc takes room above
    many = arc_diagram([f"layer{index}" for index in range(500)], [(0, 1)])
    assert many.shape[1] < 2500
    assert arc_diagram(["image"], []).size
