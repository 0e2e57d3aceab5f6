"""A network's map for print: every layer and line once, with its strongest channels."""

import base64
import copy
import io
import itertools
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn

import hookviz
from hookviz.capturing.inputs import prepare_input
from hookviz.explaining.network_map.followed_pass import follow_pass
from hookviz.explaining.network_map.layout import Part, network_map
from hookviz.explaining.network_map.mapped_network import NetworkMap, on_one_scale, strongest_maps
from hookviz.types import ActivationKey, Model
from tests.networks import random_input, seeded


def test_every_layer_has_its_strongest(tiny: Model, noise: Tensor) -> None:
    found = strongest_maps(tiny, prepare_input(tiny, noise), count=2, size=(4, 6))
    cap = hookviz.capture(tiny, noise, ["conv1", "relu", "conv2"])
    assert {str(at) for at in found} == {"conv1", "relu", "conv2", "relu#1"}
    for address, strongest in found.items():
        values = cap[str(address)].values
        assert strongest.shape == tuple(values.shape)
        highest = values.flatten(1).amax(1)
        assert list(strongest.channels) == highest.argsort(descending=True)[:2].tolist()
        expected = F.adaptive_avg_pool2d(values[list(strongest.channels)], (4, 6))
        assert torch.allclose(strongest.small, expected)


def test_one_scale_has_the_greatest_distance_from_zero_as_one() -> None:
    small = torch.tensor([[[-4.0, 1.0]], [[2.0, 0.0]]])
    assert on_one_scale(small).min() == -1
    assert not on_one_scale(torch.zeros(1, 2, 2)).any()


def test_maps_are_ranked_by_what_is_asked_and_few_cells_keep_their_values(
    tiny: Model, noise: Tensor
) -> None:
    found = strongest_maps(
        *(tiny, prepare_input(tiny, noise)),
        count=2,
        size=(64, 64),
        rank=lambda _at, maps: -maps.flatten(1).amax(1),
    )
    values = hookviz.capture(tiny, noise, "conv1")["conv1"].values
    weakest = found[ActivationKey("conv1")]
    assert list(weakest.channels) == values.flatten(1).amax(1).argsort()[:2].tolist()
    assert set(weakest.small[0].flatten().tolist()) == set(
        values[weakest.channels[0]].flatten().tolist()
    )


SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
Box = tuple[float, float, float, float]


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)  # noqa: S314 - our own


@pytest.fixture(scope="module")
def model() -> hookviz.Model:
    return hookviz.load_model("shapesnet")


@pytest.fixture(scope="module")
def model_input(model: hookviz.Model) -> hookviz.ModelInput:
    return hookviz.prepare_input(model, "assets/samples/star.jpg")


@pytest.fixture(scope="module")
def drawn(model: hookviz.Model, model_input: hookviz.ModelInput) -> NetworkMap:
    return hookviz.draw_network(model, model_input)


@pytest.fixture(scope="module")
def text(drawn: NetworkMap) -> str:
    return drawn.svg()


@pytest.fixture(scope="module")
def svg(text: str) -> ElementTree.Element:
    return parsed(text)


@pytest.fixture(scope="module")
def put_out(model: hookviz.Model, model_input: hookviz.ModelInput) -> dict[str, Tensor]:
    """What each layer puts out, by plain hooks, in the order in which they run."""
    network, found = copy.deepcopy(model.network).eval(), dict[str, Tensor]()
    for name, module in network.named_modules():
        if not list(module.children()):
            module.register_forward_hook(
                lambda _module, _inputs, output, name=name: found.update({name: output[0]})
            )
    with torch.no_grad():
        found["output"] = network(model_input.tensor)[0]
    return found


def ids(svg: ElementTree.Element, kind: str) -> list[str]:
    found = [each.get("id") or "" for each in svg.iter(f"{SVG}g")]
    return [each.removeprefix(kind) for each in found if each.startswith(kind)]


def box_of(svg: ElementTree.Element, name: str) -> Box:
    path: Any = svg.find(f".//{SVG}g[@id='{name}']/{SVG}path")
    numbers = [float(each) for each in re.findall(r"-?[\d.]+", path.get("d") or "")]
    across, down = numbers[::2], numbers[1::2]
    return min(across), min(down), max(across), max(down)


def pictures(svg: ElementTree.Element, box: Box) -> list[np.ndarray]:
    """The pictures in a box, from top to bottom."""
    left, top, right, bottom = box
    found = []
    for each in svg.iter(f"{SVG}image"):
        wide, _, _, high, x, y = map(float, re.findall(r"-?[\d.]+", each.get("transform") or ""))
        width, height = wide * float(each.get("width", 0)), high * float(each.get("height", 0))
        ends = sorted((y, y + height))
        if left <= x <= x + width <= right and top <= ends[0] <= ends[1] <= bottom:
            data = base64.b64decode((each.get(LINK) or "").partition(",")[2])
            picture = np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)
            found.append((ends[0], picture if high > 0 else picture[::-1]))
    return [picture for _, picture in sorted(found, key=lambda each: each[0])]


def test_every_layer_is_on_it_once_and_none_over_another(
    drawn: NetworkMap, svg: ElementTree.Element, put_out: dict[str, Tensor]
) -> None:
    layers = [name for name in put_out if name != "output"]
    assert sorted(ids(svg, "layer-")) == sorted(layers)
    assert [name for name in drawn.layers if name in put_out] == layers
    assert len(ids(svg, "join-")) == 3  # what its three stages add to their shortcuts
    cards = [box_of(svg, f"layer-{name}") for name in layers]
    cards += [box_of(svg, f"join-{name}") for name in ids(svg, "join-")]
    for one, other in itertools.combinations(cards, 2):
        across = min(one[2], other[2]) - max(one[0], other[0])
        down = min(one[3], other[3]) - max(one[1], other[1])
        assert min(across, down) <= 0
    _, _, width, height = map(float, (svg.get("viewBox") or "").split())
    assert all(min(x, y) > 0 and a < width and b < height for x, y, a, b in cards)
    first = box_of(svg, "block-stage1.first")
    inside = box_of(svg, "layer-stage1.first.norm")
    assert first[0] < inside[0] < inside[2] < first[2]
    assert first[1] < inside[1] < inside[3] < first[3]


def test_every_line_is_on_it_once(
    model: hookviz.Model, model_input: hookviz.ModelInput, svg: ElementTree.Element
) -> None:
    def lines(part: Part) -> list[str]:
        own = [f"{part.address}-{begin}-{end}" for begin, end in part.lines]
        return own + [line for each in part.parts for line in lines(each)]

    expected = lines(network_map(follow_pass(model, model_input, joins=True)))
    assert len(expected) > 20
    assert sorted(ids(svg, "line-")) == sorted([*expected, "photograph"])


def test_pictures_are_the_strongest_channels(
    svg: ElementTree.Element, put_out: dict[str, Tensor]
) -> None:
    for layer in ("stem.first.conv", "stage3.second.norm"):
        values = put_out[layer]
        strongest = values.flatten(1).amax(1).argsort(descending=True)
        found = pictures(svg, box_of(svg, f"layer-{layer}"))
        assert found
        for channel, picture in zip(strongest.tolist(), found, strict=False):
            side = min(values.shape[1], picture.shape[0])
            small = nn.functional.adaptive_avg_pool2d(values[channel][None], side)[0]
            large = small.repeat_interleave(picture.shape[0] // side, 0)
            large = large.repeat_interleave(picture.shape[1] // side, 1)
            redness = picture[..., 0] - picture[..., 2]  # blue is below zero, red above
            assert np.corrcoef(redness.ravel(), large.numpy().ravel())[0, 1] > 0.9


def test_text_is_text_and_classes_stand_at_the_end(
    model: hookviz.Model, drawn: NetworkMap, svg: ElementTree.Element, put_out: dict[str, Tensor]
) -> None:
    said = ["".join(each.itertext()) for each in svg.iter(f"{SVG}text")]
    assert {"stem", "shortcut", "conv", "relu_out", "head"} <= set(said)
    shares = torch.softmax(put_out["output"].double(), 0)
    for (name, share), index in zip(drawn.classes, shares.argsort(descending=True), strict=False):
        assert name == model.categories[index]
        assert share == pytest.approx(float(shares[index]), abs=1e-5)
    assert f"{drawn.classes[0][0]} {drawn.classes[0][1]:.1%}".replace("%", " %") in said


def test_files_open_and_are_the_same_every_time(drawn: NetworkMap, text: str) -> None:
    with Image.open(io.BytesIO(drawn.png(100))) as picture:
        levels = np.asarray(picture.convert("RGB"))
    inches = drawn.figure().get_size_inches()
    assert levels.shape[:2] == tuple(int(side * 100) for side in inches[::-1])
    assert (levels[0] == 255).all()
    assert len(np.unique(levels.reshape(-1, 3), axis=0)) > 200
    assert drawn.svg() == text
    assert drawn.figure_bytes("pdf")[:4] == b"%PDF"


def test_closed_blocks_have_channels_of_their_own(model: hookviz.Model) -> None:
    closed = hookviz.draw_network(model, "assets/samples/star.jpg", depth=1)
    assert closed.layers == ("stem", "stage1", "stage2", "stage3", "pool", "flatten", "head")
    svg = parsed(closed.svg())
    assert ids(svg, "layer-") == list(closed.layers)
    assert len(pictures(svg, box_of(svg, "layer-stage2"))) >= 1


def test_text_in_a_name_is_no_markup_and_dollars_are_dollars() -> None:
    network = seeded(lambda: nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(72, 2)))
    own = hookviz.wrap(network, categories=("<b>&$x$", "$y"), name="<my> $net$")
    svg = parsed(hookviz.draw_network(own, random_input(0, 8)).svg())
    said = " ".join("".join(each.itertext()) for each in svg.iter(f"{SVG}text"))
    assert "<b>&$x$" in said
    assert "<my> $net$" in said


def test_sound_has_strips_and_no_photograph() -> None:
    sound = hookviz.wrap(seeded(lambda: nn.Sequential(nn.Conv1d(1, 3, 5), nn.ReLU())))
    drawn = hookviz.draw_network(sound, torch.rand(1, 1, 64))
    assert drawn.layers == ("0", "1")
    assert drawn.png(50)[1:4] == b"PNG"


def test_a_depth_that_is_none_is_refused(model: hookviz.Model) -> None:
    for depth in (0, True, 1.5):
        with pytest.raises(hookviz.SettingError, match="depth="):
            hookviz.draw_network(model, "assets/samples/star.jpg", depth=depth)  # type: ignore[arg-type]
    with pytest.raises(hookviz.SettingError, match="dpi="):
        hookviz.draw_network(model, "assets/samples/star.jpg", depth=1).png(20)
