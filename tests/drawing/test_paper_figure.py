import io
import re
from dataclasses import replace
from itertools import combinations
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from numpy.typing import NDArray
from PIL import Image

import hookviz
from hookviz.drawing.colormaps import LEVELS
from hookviz.errors import HookVizError, SettingError, UnknownLayerError
from hookviz.language.speaking import speaking
from hookviz.types import Activation, ActivationKey, Capture

LONG = "backbone.denseblock4.denselayer16.a_convolution_with_a_long_name"


def maps(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def capture(tiny: hookviz.Model, **layers: NDArray[np.float32]) -> Capture:
    """A capture of a picture whose layers put out what a test wants; ``__`` is a dot."""
    picture = np.random.default_rng(1).integers(0, 255, (40, 40, 3), np.uint8)
    activations = tuple(
        Activation(ActivationKey(name.replace("__", ".")), torch.from_numpy(values))
        for name, values in layers.items()
    )
    cap: Capture = hookviz.capture(tiny, picture)
    return replace(cap, activations=activations)


def rendered(figure: Figure) -> NDArray[Any]:
    file = io.BytesIO()
    figure.savefig(file)
    return np.asarray(Image.open(file))


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.texts]


def tiles(figure: Figure) -> list[Any]:
    return [axes for axes in figure.axes if axes.images]


@pytest.mark.parametrize("width_cm", [8.5, 17])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("channels", [[7], [1023, 17], [*range(1016, 1024)]])
@pytest.mark.parametrize("layers", [["conv1"], [LONG], ["conv1", LONG]])
def test_no_text_meets_another_or_a_picture_or_leaves_the_figure(
    width_cm: float, rows: int, channels: list[int], layers: list[str], tiny: hookviz.Model
) -> None:
    of_layers = {name.replace(".", "__"): maps(1024, 3, 3) for name in layers}
    cap = capture(tiny, **of_layers)
    if width_cm == 8.5 and len(channels) * len(layers) == 16:
        with pytest.raises(SettingError, match=r"17 pictures .* numbers need"):
            hookviz.figure([cap] * rows, layers, channels)
        return
    figure = hookviz.figure(
        [cap] * rows,
        layers,
        channels,
        width_cm=width_cm,
        limits=(-0.00123, 0.00117),  # long labels for the bar
        dpi=100,
    )
    rendered(figure)
    texts = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
    boxes = {text.get_text() + str(index): text for index, text in enumerate(texts)}
    assert min(float(text.get_fontsize()) for text in texts) >= 6
    page = Bbox.from_bounds(0, 0, *figure.canvas.get_width_height())
    places = {name: text.get_window_extent() for name, text in boxes.items()}
    for name, box in places.items():
        assert page.x0 <= box.x0 < box.x1 <= page.x1, name
        assert page.y0 <= box.y0 < box.y1 <= page.y1, name
        assert not any(box.overlaps(axes.bbox) for axes in figure.axes), name
    for (first, box), (second, other) in combinations(places.items(), 2):
        assert not box.overlaps(other), (first, second)
    assert len(tiles(figure)) == rows * (1 + len(channels) * len(layers))
    said = "".join(words(figure))
    assert all(name in said for name in layers)
    heights = [text.get_position()[1] for text in texts if text.get_text() in LONG]
    assert heights == sorted(heights, reverse=True)


def test_cells_have_the_colours_of_the_one_bar(tiny: hookviz.Model) -> None:
    first, second = maps(6, 4, 5), maps(6, 4, 5, seed=9) * 3
    caps = [capture(tiny, conv=first), capture(tiny, conv=second)]
    figure = hookviz.figure(caps, "conv", [5, 1])
    page = rendered(figure)
    shown = np.stack([first[5], first[1], second[5], second[1]])
    scale = Normalize(float(shown.min()), float(shown.max()))
    colours = mpl.colormaps["viridis"].resampled(LEVELS)
    drawn = [axes for index, axes in enumerate(tiles(figure)) if index % 3]
    for axes, plane in zip(drawn, shown, strict=True):
        box = axes.get_window_extent()
        ys = page.shape[0] - box.y1 + (np.arange(4) + 0.5) * box.height / 4
        xs = box.x0 + (np.arange(5) + 0.5) * box.width / 5
        cells = page[np.ix_(ys.astype(int), xs.astype(int))]
        np.testing.assert_array_equal(cells, colours(scale(plane.astype(np.float64)), bytes=True))
    assert words(figure)[:5] == ["conv", "input", "channel 5", "channel 1", words(figure)[4]]
    (bar,) = [axes for axes in figure.axes if axes.get_xlim() == (scale.vmin, scale.vmax)]
    assert bar.get_position().x0 == drawn[0].get_position().x0


def test_the_input_is_the_picture_that_the_network_saw(tiny: hookviz.Model) -> None:
    cap = capture(tiny, conv=maps(2, 3, 3))
    picture = tiles(hookviz.figure(cap, "conv", [0]))[0].images[0]
    np.testing.assert_array_equal(picture.get_array(), cap.model_input.picture)
    bare = replace(cap, model_input=replace(cap.model_input, picture=None))
    figure = hookviz.figure(bare, "conv", [0, 1])
    assert len(tiles(figure)) == 2
    assert "input" not in words(figure)
    assert len(tiles(hookviz.figure([cap, bare], "conv", [0, 1]))) == 5


def test_ends_say_what_is_beyond_and_diverging_colours_have_zero_in_their_middle(
    tiny: hookviz.Model,
) -> None:
    cap = capture(tiny, conv=np.array([[[-3, 1]], [[0, 9]]], np.float32))

    def ends(channels: list[int], *limits: float) -> set[str]:
        figure = hookviz.figure(cap, "conv", channels, limits=(limits[0], limits[1]))
        return {word for word in words(figure) if word.endswith(".00")}

    assert ends([0], -3, 1) == {"−3.00", "1.00"}
    assert ends([0], -2, 1) == {"≤ −2.00", "1.00"}
    assert ends([1], -2, 5) == {"−2.00", "≥ 5.00"}
    assert ends([1, 0], -2, 5) == {"≤ −2.00", "≥ 5.00"}
    figure = hookviz.figure(cap, "conv", [1, 0], colormap="RdBu_r")
    assert {"−9.00", "0", "9.00"} <= set(words(figure))
    of_one_channel = hookviz.figure(cap, "conv", [0], colormap="RdBu_r")
    assert {"−3.00", "3.00"} <= set(words(of_one_channel))


def test_one_value_everywhere_and_no_finite_value_are_drawn(tiny: hookviz.Model) -> None:
    flat = np.full((2, 3, 3), 4, np.float32)
    assert {"2.00", "6.00"} <= set(words(hookviz.figure(capture(tiny, conv=flat), "conv", [0])))
    flat[0] = np.nan
    flat[1, 0] = np.inf
    figure = hookviz.figure(capture(tiny, conv=flat), "conv", [0, 1])
    assert words(figure)[-1] == "activation  ·  magenta: NaN  ·  cyan: infinite"
    only = hookviz.figure(capture(tiny, conv=flat), "conv", [1], width_cm=6)
    assert words(only)[-1] == "activation  ·  cyan: infinite"
    nothing = hookviz.figure(capture(tiny, conv=flat), "conv", [0], width_cm=6)
    assert {"−0.500", "0.500"} <= set(words(nothing))


def test_strips_of_sound_and_tall_maps_fit_and_layers_have_their_channels(
    tiny: hookviz.Model,
) -> None:
    cap = capture(tiny, sound=maps(2, 300), tall=maps(2, 50, 2))
    cap = replace(cap, model_input=replace(cap.model_input, picture=None))
    figure = hookviz.figure(cap, ["sound", "tall"], [1])
    strip, tall = (axes.get_window_extent() for axes in tiles(figure))
    assert strip.height / strip.width == pytest.approx(0.25, abs=0.01)
    assert tall.height / tall.width == pytest.approx(25)
    assert tall.y0 > figure.axes[-1].get_window_extent().y1
    cap = capture(tiny, a=maps(3, 2, 2), b=maps(30, 2, 2))
    figure = hookviz.figure(cap, ["b", "a"], {"a": [2], "b": (29, 0)})
    assert words(figure)[:6] == ["b", "a", "input", "channel 29", "channel 0", "channel 2"]


@pytest.mark.parametrize(
    ("format_", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<")]
)
def test_it_is_saved_in_its_width(format_: str, start: bytes, tiny: hookviz.Model) -> None:
    figure = hookviz.figure(capture(tiny, conv=maps(2, 3, 3)), "conv", [0], dpi=200)
    file = io.BytesIO()
    figure.savefig(file, format=format_)
    assert file.getvalue().startswith(start)
    if format_ == "png":
        assert Image.open(file).width == int(8.5 / 2.54 * 200)


def test_its_words_are_those_of_the_language_spoken(tiny: hookviz.Model) -> None:
    with speaking("zh_CN"):
        figure = hookviz.figure(capture(tiny, conv=maps(2, 3, 3)), "conv", [0])
        rendered(figure)  # a character that no font has is a warning, and so an error
    assert {"输入", "通道 0"} <= set(words(figure))


@pytest.mark.parametrize(
    ("layers", "names"),
    [
        ("layer3.*", ["layer3.0", "layer3.0#1", "layer3.1"]),
        (re.compile(r"layer[34]\.0"), ["layer3.0", "layer3.0#1", "layer4.0"]),
        (["layer4.0", "*.0"], ["layer4.0", "layer3.0", "layer3.0#1"]),
        (["layer3.0#1"], ["layer3.0#1"]),
    ],
)
def test_layers_are_chosen_by_patterns(layers: Any, names: list[str], tiny: hookviz.Model) -> None:
    keys = [ActivationKey("layer3.0"), ActivationKey("layer3.0", 1)]
    keys += [ActivationKey("layer3.1"), ActivationKey("layer4.0")]
    activations = tuple(Activation(key, torch.from_numpy(maps(4, 3, 3))) for key in keys)
    cap = replace(capture(tiny, conv=maps(4, 3, 3)), activations=activations)
    figure = hookviz.figure([cap, cap], layers, [1], width_cm=17)
    assert [word for word in words(figure) if word.startswith("layer")] == names
    same = hookviz.figure([cap, cap], names, [1], width_cm=17)
    np.testing.assert_array_equal(rendered(figure), rendered(same))


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"captures": []}, HookVizError, "one capture or more"),
        ({"captures": [3]}, HookVizError, "one capture or more"),
        ({"layers": []}, HookVizError, "a layer or more"),
        ({"layers": "conv2"}, UnknownLayerError, "conv2"),
        ({"layers": ["conv", "fc*"]}, UnknownLayerError, r"'fc\*'"),
        ({"layers": re.compile("con")}, UnknownLayerError, "'con'"),
        ({"channels": []}, SettingError, r"from 0 to 99"),
        ({"channels": 3}, SettingError, r"channels=3 is not a list"),
        ({"channels": [100]}, SettingError, r"from 0 to 99"),
        ({"channels": {"conv1": [1]}}, SettingError, "none for conv; it lists some for conv1"),
        ({"channels": range(90)}, SettingError, "91 pictures.* 8.5 cm have 0.0 mm"),
        ({"width_cm": 5}, SettingError, "width_cm=5 .* 6 to 60"),
        ({"width_cm": "17"}, SettingError, "width_cm='17'"),
        ({"limits": (1, 1)}, SettingError, r"limits=\(1, 1\)"),
        ({"colormap": "jet"}, SettingError, "jet"),
        ({"dpi": 20}, SettingError, "50 to 600"),
        ({"depth": 0}, SettingError, "volumes"),
    ],
)
def test_what_makes_no_figure_is_refused(
    changed: dict[str, Any], error: type[HookVizError], message: str, tiny: hookviz.Model
) -> None:
    given = {"captures": capture(tiny, conv=maps(100, 2, 2)), "layers": "conv", "channels": [0]}
    options: dict[str, Any] = given | changed
    with pytest.raises(error, match=message):
        hookviz.figure(**options)
