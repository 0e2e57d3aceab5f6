import base64
import io
import json
import threading
from dataclasses import FrozenInstanceError
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from hookviz.drawing.colormaps import COLORMAPS, LEVELS, coloured
from hookviz.drawing.grid import (
    Grid,
    ScaleLock,
    draw_on_scale,
    grid_of_any,
    make_grid,
    scale_of,
    tile_facts,
    with_channels,
)
from hookviz.errors import HookVizError, SettingError
from hookviz.types import FIRST, Activation, ActivationKey, Layout
from tests.networks import Tiny, as_model


def maps(count: int, height: int = 6, width: int = 5, seed: int = 0) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(count, height, width)) * rng.uniform(0.1, 3, size=(count, 1, 1))
    return values.astype(np.float32)


def pixels(png: bytes) -> NDArray[Any]:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"))


def cells(grid: Grid, position: int) -> NDArray[Any]:
    """One pixel per cell of a tile, taken from the PNG, after a check that cells are plain."""
    left, top, right, bottom = grid.geometry.box(position)
    tile = pixels(grid.png())[top:bottom, left:right]
    zoom = grid.geometry.magnification
    corner = tile[::zoom, ::zoom]
    np.testing.assert_array_equal(tile, corner.repeat(zoom, 0).repeat(zoom, 1))
    return corner


@pytest.mark.parametrize(
    ("scale", "colormap"),
    [("layer", None), ("channel", "magma"), ("symmetric", None), ("percentile", "berlin")],
)
def test_every_tile_has_the_colours_that_matplotlib_gives(scale: str, colormap: str | None) -> None:
    values = maps(23, seed=5)
    grid = make_grid(values, scale=scale, colormap=colormap, sort="variance", width=400)
    name = colormap or {"layer": "viridis", "symmetric": "RdBu_r"}[scale]
    colours = mpl.colormaps[name].resampled(LEVELS)
    lowest, highest = float(values.min()), float(values.max())
    peak = max(-lowest, highest)
    for position, channel in enumerate(np.argsort(-values.var(axis=(1, 2)))):
        plane = values[channel].astype(np.float64)
        norm = {
            "layer": Normalize(lowest, highest),
            "channel": Normalize(float(plane.min()), float(plane.max())),
            "symmetric": Normalize(-peak, peak),
            "percentile": Normalize(
                float(np.percentile(values, 1, method="lower")),
                float(np.percentile(values, 99, method="higher")),
            ),
        }[scale]
        np.testing.assert_array_equal(cells(grid, position), colours(norm(plane), bytes=True))
        assert grid.order[position] == channel


def test_gaps_and_empty_places_are_transparent_and_tiles_are_not() -> None:
    grid = make_grid(maps(7), width=200)
    picture = pixels(grid.png())
    assert picture.shape[:2] == (grid.geometry.height, grid.geometry.width)
    for y, x in np.ndindex(picture.shape[:2]):
        assert (picture[y, x, 3] == 255) == (grid.geometry.locate(x, y) is not None)


def test_nan_and_infinite_values_have_their_own_colours_and_are_counted() -> None:
    values = maps(3)
    values[0, 0, 0] = values[0, 5, 4] = np.nan
    values[1, 2, 3] = np.inf
    values[2, 1, 1] = -np.inf
    grid = make_grid(values)
    assert cells(grid, 0)[0, 0].tolist() == [255, 0, 255, 255]
    assert cells(grid, 0)[5, 4].tolist() == [255, 0, 255, 255]
    assert cells(grid, 1)[2, 3].tolist() == [0, 255, 255, 255]
    assert cells(grid, 2)[1, 1].tolist() == [0, 255, 255, 255]
    assert "2 NaN values are magenta; 2 infinite values are cyan" in grid.legend
    assert (grid.stats.nan.tolist(), grid.stats.inf.tolist()) == ([2, 0, 0], [0, 1, 1])
    assert grid.figure_bytes(dpi=60)
    assert make_grid(np.array([[[1e300, 1.0]]])).stats.inf.tolist() == [1]  # beyond float32


@pytest.mark.parametrize("colormap", COLORMAPS)
def test_a_layer_without_a_finite_value_is_drawn(colormap: str) -> None:
    grid = make_grid(np.full((2, 3, 3), np.nan, dtype=np.float32), colormap=colormap)
    assert (cells(grid, 1) == [255, 0, 255, 255]).all()
    assert grid.ticks == ((0.0, "0"),)


def test_top_keeps_the_colours_of_the_whole_layer() -> None:
    values = maps(40, seed=2)
    whole = make_grid(values, sort="mean")
    few = make_grid(values, sort="mean", top=4)
    assert few.shown == "4 of 40 shown"
    assert whole.shown == "all 40 channels"
    assert make_grid(values, top=99).shown == "all 40 channels"
    assert make_grid(values[:1]).shown == "1 channel"
    assert make_grid(maps(2000, 1, 1), top=1200).shown == "1,200 of 2,000 shown"
    assert few.order.tolist() == whole.order[:4].tolist()
    assert few.legend == whole.legend
    for position in range(4):
        np.testing.assert_array_equal(cells(few, position), cells(whole, position))


def test_activations_tensors_and_arrays_give_the_same_picture() -> None:
    values = maps(5)
    wanted = make_grid(values).png()
    tensor = torch.from_numpy(values)
    assert make_grid(tensor).png() == wanted
    assert make_grid(tensor.clone().requires_grad_()).png() == wanted
    assert make_grid(values.astype(np.float64)).png() == wanted
    strided = tensor.permute(1, 2, 0).contiguous().permute(2, 0, 1)
    assert make_grid(strided).png() == wanted
    grid = make_grid(Activation(ActivationKey("layer1.0.conv1", call=1), tensor))
    assert grid.png() == wanted
    assert (grid.title, grid.address) == (
        "layer1.0.conv1#1",
        ActivationKey("layer1.0.conv1", call=1),
    )
    assert make_grid(values).title == ""
    assert make_grid(values, title="mine").title == "mine"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64, torch.bool])
def test_other_real_numbers_are_drawn(dtype: torch.dtype) -> None:
    values = torch.arange(12).reshape(3, 2, 2)
    assert make_grid(values.to(dtype)).png() == make_grid(values.to(dtype).float()).png()


@pytest.mark.parametrize(
    "given",
    [
        [[[1.0]]],
        None,
        np.array([[["a"]]]),
        np.zeros((1, 2, 2), complex),
        torch.zeros(1, 2, 2) * 1j,
        3.0,
    ],
)
def test_what_is_no_array_of_real_numbers_is_refused(given: Any) -> None:
    with pytest.raises(HookVizError, match="A grid needs"):
        make_grid(given)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"colormap": "viridus"}, r"'viridus'. Did you mean 'viridis'"),
        ({"colormap": "jet"}, r"'jet'.*Choose from viridis"),
        ({"scale": "layers"}, r"Did you mean 'layer'"),
        ({"sort": "maximum"}, r"Did you mean 'max'"),
        *[({"top": top}, "above 0; this layer has 4") for top in (0, -1, 2.0, True, "3")],
        *[({"aspect": x}, "aspect") for x in (0, -1, np.nan, np.inf, "wide", True)],
        *[({"width": x}, "16 to 10000") for x in (0, 15, 10_001, 300.0, True)],
        ({"channels": [0], "top": 1}, "leave out sort= and top="),
        ({"channels": [0], "sort": "max"}, "leave out sort= and top="),
        ({"channels": []}, r"channels=\[\] is not a list of channel numbers from 0 to 3"),
        ({"channels": [4]}, "0 to 3"),
        ({"channels": [-1]}, "0 to 3"),
        ({"channels": [1.0]}, "0 to 3"),
        ({"channels": [True]}, "0 to 3"),
        ({"channels": 2}, "channels=2 is not"),
        ({"channels": "12"}, "channels='12' is not"),
        ({"channels": [1, 2, 1]}, "twice"),
        ({"limits": (1, 1)}, r"limits=\(1, 1\) is not \(low, high\)"),
        ({"limits": (2, 1)}, "lower one first"),
        ({"limits": (0, np.inf)}, "finite"),
        ({"limits": (np.nan, 1)}, "finite"),
        ({"limits": (1, 2, 3)}, "two"),
        ({"limits": "12"}, "limits='12'"),
        ({"limits": 5}, "limits=5"),
    ],
)
def test_options_that_mean_nothing_are_refused(option: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        make_grid(maps(4), **option)


def test_a_grid_is_frozen_and_keeps_its_numbers() -> None:
    values = maps(4)
    grid = make_grid(values)
    before = grid.png()
    values[:] = 0
    assert grid.png() == before
    with pytest.raises(FrozenInstanceError):
        grid.title = "other"  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        grid.levels[0] = 1
    with pytest.raises(ValueError, match="read-only"):
        grid.palette[0] = 1


def test_one_channel_is_met_at_its_pixels_and_as_a_picture() -> None:
    grid = make_grid(maps(9), sort="max", top=4)
    channel = int(grid.order[2])
    left, top, right, bottom = grid.geometry.box(2)
    assert grid.channel_at(left, top) == (channel, 0, 0)
    assert grid.channel_at(right - 1, bottom - 1) == (channel, 5, 4)
    assert grid.channel_at(right, top) is None
    picture = pixels(grid.channel_png(channel, 3))
    np.testing.assert_array_equal(picture[::3, ::3], cells(grid, 2))
    assert picture.shape == (18, 15, 4)
    hidden = next(number for number in range(9) if number not in grid.order)
    with pytest.raises(HookVizError, match="4 of 9 shown, of channels 0 to 8"):
        grid.channel_png(hidden)
    with pytest.raises(SettingError, match="magnification"):
        grid.channel_png(channel, 0)


def test_colour_bar_and_its_marks() -> None:
    grid = make_grid(maps(4), scale="symmetric")
    bar = pixels(grid.bar(LEVELS, 3))
    assert bar.shape == (3, LEVELS, 4)
    np.testing.assert_array_equal(bar[1], grid.palette[:LEVELS])
    assert (0.5, "0") in grid.ticks
    own = make_grid(maps(4), scale="channel")
    assert own.ticks == ((0.0, "lowest"), (1.0, "highest"))
    assert own.ticks_of(2)[0][1] != own.ticks_of(3)[0][1]
    single = make_grid(maps(1), scale="channel")
    assert single.ticks == single.ticks_of(0) != own.ticks


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.texts]


@pytest.mark.parametrize("options", [{}, {"sort": "mean"}, {"scale": "channel"}, {"top": 3}])
def test_the_figure_has_title_numbers_bar_and_legend(options: dict[str, Any]) -> None:
    grid = make_grid(maps(12), title="ResNet-34 · conv1", **options)
    said = words(grid.figure(dpi=100))
    assert said[0] == "ResNet-34 · conv1"
    assert said[1].startswith(f"12 × 6 × 5  ·  {grid.shown}")
    assert [word for word in said if word.isdigit()][: len(grid.order)] == [
        str(channel) for channel in grid.order
    ]
    assert " ".join(said).endswith(grid.legend)
    for _, label in grid.ticks:
        assert label in said
    assert words(grid.figure(dpi=100, title="other"))[0] == "other"


def test_channels_are_those_listed_in_their_order_between_the_limits() -> None:
    values = maps(9, seed=3)
    grid = make_grid(values, channels=[7, 2], limits=(-1.5, 2), width=200)
    colours = mpl.colormaps["viridis"].resampled(LEVELS)
    for position, channel in enumerate([7, 2]):
        plane = Normalize(-1.5, 2)(values[channel].astype(np.float64))
        np.testing.assert_array_equal(cells(grid, position), colours(plane, bytes=True))
    assert (grid.order.tolist(), grid.shown, grid.sort) == ([7, 2], "2 of 9 shown", "chosen")
    assert "9 × 6 × 5  ·  2 of 9 shown" in words(grid.figure(dpi=60))
    np.testing.assert_array_equal(make_grid(values, channels=np.array([7, 2])).order, grid.order)
    assert make_grid(values, channels=range(9)).png() == make_grid(values).png()


def test_the_legend_is_true_of_limits_that_were_chosen() -> None:
    values = np.array([[[-1, 0, 3]]], dtype=np.float32)
    beyond = "; values beyond take the end colours."
    all_inside = make_grid(values, limits=(-1, 3)).legend
    assert "(−1.00) to yellow (3.00)" in all_inside
    assert "beyond" not in all_inside
    cut = make_grid(values, limits=(-1, 2))
    assert cut.legend.endswith(beyond)
    assert make_grid(values * 2, limits=cut.limits).legend.endswith(beyond)
    signed = make_grid(values, scale="symmetric")
    assert make_grid(values * 2, limits=signed.limits).legend.endswith(beyond)
    flat = np.full((1, 1, 2), 3, np.float32)
    assert "Every value" not in make_grid(flat, limits=(0, 4)).legend
    assert "3.00, drawn in yellow" in make_grid(flat, limits=(0, 3)).legend
    assert "3.00, drawn in teal" in make_grid(flat, limits=(2, 4)).legend
    assert "3.00, drawn in yellow" in make_grid(flat, scale="balanced").legend


@pytest.mark.parametrize("size", [(6, 2), (2, 5), (3.3, 2)])
def test_tiles_are_drawn_into_axes_of_ones_own(size: tuple[float, float]) -> None:
    values = maps(20, seed=8)
    grid = make_grid(values, channels=[3, 17, 0], limits=(-2, 2), colormap="RdBu_r")
    figure = Figure(figsize=size, dpi=200)
    axes = figure.add_subplot()
    scale = grid.draw(axes)
    assert figure.colorbar(scale, ax=figure.add_axes((0, 0, 0.1, 0.1))).norm.vmin == -2
    file = io.BytesIO()
    figure.savefig(file)
    page = pixels(file.getvalue())
    zoom = 11  # dots of a cell, of at least 64 of a tile of 6 × 5
    colours = mpl.colormaps["RdBu_r"].resampled(LEVELS)
    rows, columns = np.mgrid[:6, :5]
    boxes = []
    for text, channel in zip(axes.texts, [3, 17, 0], strict=True):
        assert text.get_text() == str(channel)
        left, top = (side + 0.5 for side in text.get_position())
        middles = np.stack([left + (columns + 0.5) * zoom, top + (rows + 0.5) * zoom], -1) - 0.5
        x, y = axes.transData.transform(middles.reshape(-1, 2)).T
        seen = page[(page.shape[0] - y).astype(int), x.astype(int)].reshape(6, 5, 4)
        plane = values[channel].astype(np.float64)
        np.testing.assert_array_equal(seen, colours(Normalize(-2, 2)(plane), bytes=True))
        np.testing.assert_array_equal(seen, scale.to_rgba(plane, bytes=True))
        boxes.append(text.get_window_extent())
        corners = axes.transData.transform([(left - 0.5, top + 65.5), (left + 54.5, top - 0.5)])
        assert corners[0][0] <= boxes[-1].x0 + 1
        assert boxes[-1].x1 <= corners[1][0]
        assert boxes[-1].y0 >= corners[1][1] - 1
        assert boxes[-1].y1 <= axes.bbox.y1 + 1


def test_one_colour_bar_is_refused_where_each_channel_has_its_own_scale() -> None:
    axes = Figure(figsize=(2, 2)).add_subplot()
    values = maps(3)
    with pytest.raises(HookVizError, match=r"own scale.*scale='layer'"):
        make_grid(values, scale="channel").draw(axes)
    assert not axes.images
    make_grid(maps(400)).draw(axes)
    assert (len(axes.texts), len(axes.images)) == (0, 1)  # no number that could not be read
    alone = make_grid(values, scale="channel", channels=[1]).draw(axes)
    assert alone.get_clim() == (values[1].min(), values[1].max())
    with pytest.raises(SettingError, match="type Figure, not matplotlib's Axes"):
        make_grid(values).draw(Figure())  # type: ignore[arg-type]


def test_a_dollar_in_a_title_is_a_dollar() -> None:
    grid = make_grid(maps(2), title="cost $x_$ and \\frac")
    assert grid.figure_bytes("svg", dpi=60)


@pytest.mark.parametrize(
    ("shape", "dpi", "options"),
    [
        ((5, 6, 7), 100, {}),
        ((300, 4, 4), 150, {}),
        ((300, 4, 4), 72, {"sort": "mean"}),
        ((2048, 7, 7), 97, {}),
        ((40, 60, 80), 50, {}),
        ((1, 3, 3), 300, {}),
    ],
)
def test_the_figure_has_every_cell_in_exact_colours(
    shape: tuple[int, int, int], dpi: int, options: dict[str, Any]
) -> None:
    grid = make_grid(maps(*shape), **options)
    page = pixels(grid.figure_bytes(dpi=dpi))
    figure = grid.figure(dpi=dpi)
    axes = figure.axes[0]
    drawn = np.asarray(axes.images[0].get_array())
    box = axes.get_position()
    left, top = round(box.x0 * page.shape[1]), round((1 - box.y1) * page.shape[0])
    seen = page[top : top + drawn.shape[0], left : left + drawn.shape[1]]
    opaque = drawn[..., 3] == 255
    np.testing.assert_array_equal(seen[opaque], drawn[opaque])
    # and the picture holds each tile's cells, magnified by a whole number
    shown = grid.palette[np.unique(grid.levels)]
    np.testing.assert_array_equal(
        np.unique(drawn[opaque].view(np.uint32)), np.unique(shown.view(np.uint32))
    )
    assert opaque.sum() % grid.levels.size == 0
    assert opaque.sum() >= grid.levels.size


def test_many_channels_are_numbered_along_rows_and_columns() -> None:
    grid = make_grid(maps(600, 4, 4))
    said = words(grid.figure(dpi=100))
    columns = grid.geometry.columns
    assert {"channel", "0", str(columns), str(2 * columns)} <= set(said)
    assert len(said) < 100
    ranked = words(make_grid(maps(2048, 2, 2), sort="max").figure(dpi=100))
    assert {"rank", "#1"} <= set(ranked)


@pytest.mark.parametrize(("format_", "start"), [("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_vector_formats_have_no_date_and_others_are_refused(format_: str, start: bytes) -> None:
    grid = make_grid(maps(30))
    file = grid.figure_bytes(format_, dpi=80)
    assert file.startswith(start)
    assert b"CreationDate" not in file  # or the bytes would differ from run to run
    assert b"<dc:date>" not in file
    with pytest.raises(SettingError, match=r"'pgn'.*Did you mean 'png'"):
        grid.figure_bytes("pgn")
    for dpi in (0, 49, 601, 150.0, True):
        with pytest.raises(SettingError, match="50 to 600"):
            grid.figure(dpi=dpi)  # type: ignore[arg-type]


def test_threads_get_the_bytes_that_one_alone_gets() -> None:
    grids = [make_grid(maps(20 + seed, seed=seed)) for seed in range(4)]
    jobs = [(grid, form) for grid in grids for form in ("png", "pdf")]
    alone = [grid.figure_bytes(form, dpi=60) for grid, form in jobs]
    together: list[bytes] = [b""] * len(jobs)

    def draw(index: int) -> None:
        grid, form = jobs[index]
        together[index] = grid.figure_bytes(form, dpi=60)

    threads = [threading.Thread(target=draw, args=(index,)) for index in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == alone


def test_a_single_map_is_coloured_like_a_grid_of_it() -> None:
    values = np.array([[0, 1], [2, np.nan]], dtype=np.float32)
    picture = coloured(values, "viridis")
    with Image.open(io.BytesIO(make_grid(values[None], width=16).channel_png(0, 1))) as expected:
        np.testing.assert_array_equal(picture, np.asarray(expected.convert("RGB")))
    wider = coloured(values, "viridis", low=0, high=4)
    assert picture[0, 0].tolist() == wider[0, 0].tolist()
    assert picture[1, 0].tolist() != wider[1, 0].tolist()


def test_sound_is_strips_and_of_a_volume_the_slice_with_the_largest_value_is_drawn() -> None:
    assert grid_of_any(np.ones((2, 7))).shape == (2, 1, 7)
    volume = np.zeros((2, 3, 4, 5))
    volume[1, 2, 0, 0] = -9
    assert grid_of_any(volume).depth == 2
    assert grid_of_any(volume[:, 0]).depth is None


def test_some_channels_keep_the_whole_layers_colours_in_an_order_of_their_own() -> None:
    maps = np.random.default_rng(0).normal(size=(9, 5, 7)).astype(np.float32)
    for scale in ("symmetric", "layer", "channel"):
        whole = make_grid(maps, scale=scale)
        some = with_channels(whole, maps, [7, 0, 3])
        assert some.sort == "chosen"  # and no figure calls it the layer's own order
        assert with_channels(whole, maps, [0, 3]).sort == "index"
        assert some.order.tolist() == [7, 0, 3]
        assert some.shown == "3 of 9 shown"
        assert some.legend == whole.legend
        for channel in (7, 0, 3):
            np.testing.assert_array_equal(
                some.channel_pixels(channel), whole.channel_pixels(channel)
            )
        assert some.png().startswith(b"\x89PNG")


def activation(*shape: int, low: float = 0.0) -> Activation:
    values = torch.linspace(low, 1.0, int(np.prod(shape))).reshape(shape)
    return Activation(ActivationKey("conv"), values, Layout(FIRST))


def drawn(of: Activation, held: ScaleLock | None = None, signed: str | None = "RdBu_r") -> Grid:
    return draw_on_scale(
        of,
        sort="mean",
        top=3,
        scale="layer",
        colormap="inferno",
        signed_colormap=signed,
        held=held,
    )


@pytest.mark.parametrize(
    ("low", "signed", "colormap"),
    [(0.0, "RdBu_r", "inferno"), (-0.1, "RdBu_r", "RdBu_r"), (-0.1, None, "inferno")],
)
def test_the_signs_choose_the_colours(low: float, signed: str | None, colormap: str) -> None:
    of = activation(4, 5, 6, low=low)
    alone = make_grid(of, sort="mean", top=3, scale="layer", colormap=colormap)
    assert drawn(of, signed=signed).png() == alone.png()


def test_a_volume_is_its_middle_slice_on_a_scale_that_stays() -> None:
    of = activation(4, 5, 6, 7)
    assert drawn(of).png() == drawn(Activation(of.address, of.values[:, 2])).png()
    first, second = activation(4, 5, 6, low=-1.0), activation(4, 5, 6)
    held = ScaleLock((), drawn(first).limits, signed=True)
    again = drawn(second, held)
    assert np.array_equal(again.limits.high, drawn(first).limits.high)
    assert np.array_equal(again.limits.low, drawn(first).limits.low)
    assert (again.colormap, drawn(second).colormap) == (COLORMAPS["RdBu_r"], COLORMAPS["inferno"])


def test_another_layer_shape_or_policy_is_another_scale() -> None:
    model, of = as_model(Tiny()), activation(4, 5, 6)
    alike = Activation(of.address, of.values * 2)
    assert scale_of(model, of, "layer") == scale_of(model, alike, "layer")
    for other in (activation(4, 6, 5), Activation(ActivationKey("relu"), of.values)):
        assert scale_of(model, other, "layer") != scale_of(model, of, "layer")
    assert scale_of(model, of, "channel") != scale_of(model, of, "layer")


def test_facts_are_in_the_order_of_the_tiles_and_their_key_is_of_the_picture() -> None:
    values = torch.stack([torch.full((2, 3), level) for level in (1.0, float("nan"), 3.0)])
    grid = make_grid(values, sort="max", top=3)
    facts = json.loads(json.dumps(tile_facts(grid, "three", grid.sprite), allow_nan=False))
    assert facts["order"] == [2, 0, 1]
    assert facts["stats"]["highest"] == [3.0, 1.0, None]
    assert facts["limits"] == {"low": [1.0] * 3, "high": [3.0] * 3}
    assert facts["geometry"]["tile"] == [2, 3]
    assert (facts["alt"], len(facts["palette"])) == ("three", 255)
    assert base64.b64decode(facts["bar"].partition(",")[2])[1:4] == b"PNG"
    grids = [make_grid(torch.eye(4)[None] * n) for n in (1, 2, -1)]
    one, same, other = (tile_facts(grid, "", grid.sprite) for grid in grids)
    assert one["key"] == same["key"]
    assert one["key"] != other["key"]
