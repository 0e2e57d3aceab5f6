"""A page alone computes of any layer's values the very answers that Python gives.

All is equal digit by digit. Only a channel's variance may differ in its last digits, of which none
is sent: NumPy adds squares in an order that depends on the processor.
"""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import hookviz
from hookviz.drawing import scales
from hookviz.drawing.colormaps import COLORMAPS
from hookviz.drawing.grid import geometry_facts
from hookviz.drawing.layout import lay_out
from hookviz.drawing.statistics import channel_stats
from hookviz.explorer.client_files import client_words
from hookviz.explorer.rendering import render
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.language.speaking import speaking
from hookviz.standalone.client_page import CLIENT
from tests.explorer.asking import ask, subject_of, words
from tests.node import CLIENT as SHARED
from tests.node import run_node

COLOURS = ("viridis", "RdBu_r", "berlin")
PAINTED = {"key", "palette", "bar", "cost", "picture", "values", "colours"}
BEGIN = """
import { readFileSync } from "node:fs";
const { floats } = await import(SHARED);
const it = await import(MODULE);
const facts = JSON.parse(readFileSync(FILE, "utf-8"));
globalThis.window = { hookvizWords: facts.words, hookvizPoint: facts.point };
"""
ANSWERS = """
const values = floats(facts.values);
const answers = facts.looks.map((look) => {
  const stats = it.statisticsOf(values, facts.shape[0]);
  const limits = it.limitsOf(values, stats, look.scale);
  const channel = (at) => it.channelFacts(values, facts.shape, at, limits, stats);
  const channels = stats.mean.map((_, at) => channel(at));
  const known = [{}, { stats }, { stats, limits }]; // whoever has them can hand them in
  const tiles = facts.colormaps.map((colormap, at) =>
    it.tileFacts(values, facts.shape, { ...look, colormap, ...known[at] }));
  return { tiles, channels };
});
console.log(JSON.stringify(answers));
"""


def text_of(values: NDArray[np.float32]) -> str:
    return base64.b64encode(values.astype("<f4").tobytes()).decode()


def in_node(folder: Path, script: str, **facts: Any) -> Any:
    """What a script prints that has the module as `it` and facts from a file."""
    file = folder / "facts.json"
    file.write_text(json.dumps({"words": {}, "point": ".", **facts}), "utf-8")
    urls = {
        "SHARED": (SHARED / "shared.js").as_uri(),
        "MODULE": (CLIENT / "channel_numbers.js").as_uri(),
        "FILE": str(file),
    }
    constants = "".join(f"const {name} = {json.dumps(url)};\n" for name, url in urls.items())
    return json.loads(run_node(constants + BEGIN + script))


class Fixed(nn.Module):
    """A network whose one layer, a pool of single cells, puts out these values for any image."""

    def __init__(self, values: NDArray[np.float32]) -> None:
        super().__init__()
        self.values = nn.Parameter(torch.from_numpy(values)[None])
        self.layer = nn.MaxPool2d(1)

    def forward(self, images: Tensor) -> Tensor:
        means: Tensor = self.layer(self.values.repeat(len(images), 1, 1, 1)).mean((2, 3))
        return means


def subject_with(values: NDArray[np.float32]) -> tuple[Subject, View]:
    model = hookviz.wrap(Fixed(values), hookviz.Preprocess(resize=16, crop=16))
    return subject_of(model), View(layer="layer", layers="maps")


def plain(facts: Mapping[str, Any]) -> Any:
    """The facts that follow from values, as JSON has them; of the legend its words."""
    of_values = {name: each for name, each in facts.items() if name not in PAINTED}
    if "legend" in of_values:
        of_values["legend"] = words(of_values["legend"])
    return json.loads(json.dumps(of_values))


def compare(subject: Subject, view: View, folder: Path, language: str = "en") -> None:
    """Compare all answers about a layer, in every scale, with Python's.

    Of more than two hundred channels a hundred or more are compared.
    """
    rendered = render(subject, view)
    values = rendered.maps.numpy()
    look = {"alt": subject.alt, "title": rendered.own.title}
    answers = in_node(
        folder,
        ANSWERS,
        **client_words(language),
        values=text_of(values),
        shape=values.shape,
        colormaps=[asdict(COLORMAPS[name]) for name in COLOURS],
        looks=[look | {"scale": scale} for scale in scales.SCALES],
    )
    for scale, answer in zip(scales.SCALES, answers, strict=True):
        in_scale = replace(view, scale=scale)
        with speaking(language):
            for name, tiles in zip(COLOURS, answer["tiles"], strict=True):
                expected = ask(subject, "tiles", replace(in_scale, colours=name)).facts
                assert plain(tiles) == plain(expected), (scale, name)
            for channel in range(0, len(values), max(1, len(values) // 100)):
                expected = ask(subject, "channel", in_scale, channel=channel).facts
                assert answer["channels"][channel] == plain(expected), (scale, channel)


@pytest.mark.parametrize("layer", ["stem.first.conv", "stage2.first.norm"])
def test_a_network_s_layer_is_python_s(layer: str, tmp_path: Path) -> None:
    subject = subject_of(hookviz.load_model("shapesnet"), "star")
    compare(subject, View(layer=layer, layers="maps"), tmp_path)


def normal(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def with_odd_values() -> NDArray[np.float32]:
    """Channels with NaN and infinities among numbers, and without any number."""
    values = normal(20, 9, 13)
    rng = np.random.default_rng(1)
    for each in (np.nan, np.inf, -np.inf):
        values[rng.random(values.shape) < 0.02] = each
    values[3], values[4], values[5], values[6] = np.nan, np.inf, -np.inf, 2.5
    values[7, :, :] = [np.nan, np.inf, *[-1.5] * 11]
    return values


def with_zeros() -> NDArray[np.float32]:
    values = np.abs(normal(18, 10, 10, seed=2))
    values[np.random.default_rng(3).random(values.shape) < 0.995] = 0
    return values


def in_the_middle() -> NDArray[np.float32]:
    """Numbers that lie in the middle of two when they are rounded: shares, heights, 8 digits."""
    values = np.zeros((4, 4, 4), np.float32)
    values[0, 0, :2] = 2**-12, 2**-13
    values[1].flat[:7] = 12345678.5 - 2**23
    values[2] = np.arange(16).reshape(4, 4) % 5 / 8
    values[3, 3, 3] = -(2**-12)
    return values


ARRAYS: Mapping[str, Callable[[], NDArray[np.float32]]] = {
    "NaN and infinities": with_odd_values,
    "one NaN, one infinity": lambda: np.array([[[np.nan, 1, 2]], [[3, np.inf, 4]]], np.float32),
    "no number": lambda: np.full((2, 2, 2), np.nan, np.float32),
    "zeros": lambda: np.zeros((3, 4, 5), np.float32),
    "one cell": lambda: np.array([[[-0.3]]], np.float32),
    "one channel": lambda: normal(1, 30, 40, seed=4),
    "hardly any above zero": with_zeros,
    "below zero": lambda: -np.abs(normal(17, 7, 6, seed=5)) - np.float32(1e-3),
    "far from zero": lambda: np.float32(1e5) + normal(3, 50, 50, seed=6),
    "tiny and huge": lambda: (
        normal(6, 8, 8, seed=7)
        * np.float32(10) ** np.arange(-30, 36, 12, dtype=np.float32)[:, None, None]
    ),
    "in the middle of two": in_the_middle,
    "at edges of bins": lambda: ((np.arange(49.0) * 1765 - 807) / 3).astype(np.float32)[None, None],
    "many": lambda: normal(1030, 2, 3, seed=8),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_any_values_answers_are_python_s(name: str, tmp_path: Path) -> None:
    compare(*subject_with(ARRAYS[name]()), tmp_path)


@pytest.mark.parametrize("name", ["NaN and infinities", "one NaN, one infinity", "one cell"])
def test_it_is_python_s_in_chinese(name: str, tmp_path: Path) -> None:
    subject, view = subject_with(ARRAYS[name]())
    compare(replace(subject, alt="一颗黄色的星"), view, tmp_path, language="zh_CN")


def test_statistics_are_python_s(tmp_path: Path) -> None:
    """The variance to twelve digits, and all else to the last one."""
    script = "console.log(JSON.stringify(it.statisticsOf(floats(facts.values), facts.channels)))"
    of_any_size = normal(4, 37, 41) ** 21  # the order in which they are added counts
    values = np.concatenate([of_any_size, 1000 + normal(4, 37, 41)])
    values[0, 0, 0] = np.nan
    result = in_node(tmp_path, script, values=text_of(values), channels=len(values))
    stats = channel_stats(values)
    assert result["variance"] == pytest.approx(stats.variance.tolist(), rel=1e-12)
    expected: dict[str, NDArray[Any]] = {"lowest": stats.minimum, "highest": stats.maximum}
    expected |= {"mean": stats.mean, "zeros": stats.zeros, "nan": stats.nan, "inf": stats.inf}
    for name, each in expected.items():
        assert result[name] == each.tolist(), name


def test_ticks_of_any_ends_are_python_s(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    sizes = 10.0 ** rng.integers(-12, 12, (2, 500))
    low, width = rng.normal(size=500) * sizes[0], np.abs(rng.normal(size=500)) * sizes[1]
    ends = [*zip(low.tolist(), (low + width).tolist(), strict=True)]
    ends += [(-a, b) for a in (0, 0.5, 1, 2.5, 1e-3) for b in (5e-4, 0.1, 1, 5, 1e3, 1e7)]
    ends += [(0.0, float(np.float32(5 * 10.0**power))) for power in range(-40, 38)]
    ends += [(2.0, 1.0), (0.0, 0.0), (-1e308, 1e308), (0.0, 1e-305)]
    script = "console.log(JSON.stringify(facts.ends.map(([low, high]) => it.ticksOf(low, high))))"
    marks = in_node(tmp_path, script, ends=ends)
    for (low_end, high_end), each in zip(ends, marks, strict=True):
        fractions, labels = zip(*scales.ticks(low_end, high_end), strict=True)
        assert [label for _, label in each] == list(labels), (low_end, high_end)
        # the C library's 10.0**23 has another last digit
        assert [fraction for fraction, _ in each] == pytest.approx(fractions, rel=1e-12)


def test_tiles_of_any_shape_lie_as_python_lays_them(tmp_path: Path) -> None:
    shapes = [(count, 1, 1) for count in range(1, 200)]
    shapes += [(count, side, side) for count in (1, 3, 12) for side in range(1, 70)]
    shapes += [(count, side, side) for count in (64, 100, 512) for side in range(1, 15)]
    shapes += [(count, 1, 50) for count in range(1, 70)] + [(7, 30, 2), (2048, 1, 1), (1, 900, 70)]
    script = """
const look = { scale: "layer", alt: "", title: "", colormap: facts.colormap };
const laidOut = (shape) => {
  const values = new Float32Array(shape.reduce((product, each) => product * each));
  return it.tileFacts(values, shape, look).geometry;
};
console.log(JSON.stringify(facts.shapes.map(laidOut)));
"""
    colormap = asdict(COLORMAPS["viridis"])
    results = in_node(tmp_path, script, shapes=shapes, colormap=colormap)
    for shape, geometry in zip(shapes, results, strict=True):
        assert geometry == geometry_facts(replace(lay_out(*shape), magnification=1)), shape
