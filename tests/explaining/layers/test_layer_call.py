import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.explaining.layers.layer_call import CellSum, explain_cell
from hookviz.explaining.layers.layer_recorder import record_layer_call
from hookviz.types import Model
from tests.attending import plain_pass
from tests.networks import as_model, random_input, seeded
from tests.token_networks import TOKEN_NETWORKS


def assert_as_recorded(name: str, found: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
    """The same numbers; up to rounding behind an attention whose fused kernel stands aside."""
    off = 1e-5 if name == "torchvision's ViT" else 0
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=off, atol=off)


def test_a_record_knows_its_size(tiny: Model, noise: Tensor) -> None:
    call = record_layer_call(tiny, noise, "conv1")
    weights, maps = 4 * 3 * 9 + 4, 3 * 18 * 18 + 2 * 4 * 16 * 16  # one map more for the ReLU
    assert call.nbytes == 4 * (weights + maps)
    assert replace(call, steps=()).nbytes == 4 * (weights + maps - 4 * 16 * 16)


def test_a_channel_sees_its_group() -> None:
    call = record_layer_call(
        net_with(lambda: nn.Conv2d(4, 8, 3, groups=2)), random_input(1), "conv"
    )
    assert [call.inputs_of(channel) for channel in (0, 3, 4)] == [range(2), range(2), range(2, 4)]
    with pytest.raises(hookviz.SettingError, match="conv has no channel 8: its channels are 0 to"):
        call.inputs_of(8)


CONVS: dict[str, dict[str, Any]] = {
    "plain": {"kernel_size": 3},
    "no bias": {"kernel_size": 3, "padding": 1, "bias": False},
    "one by one": {"kernel_size": 1},
    "stride": {"kernel_size": 3, "stride": 2, "padding": 1},
    "dilation": {"kernel_size": 3, "dilation": 2, "padding": 2},
    "groups": {"kernel_size": 3, "groups": 2, "padding": 1},
    "depthwise": {"kernel_size": 5, "groups": 4, "padding": 2},
    "lopsided": {
        "kernel_size": (2, 5),
        "stride": (3, 1),
        "padding": (1, 3),
        "dilation": (3, 2),
        "groups": 2,
    },
    "reflect": {"kernel_size": 5, "padding": (2, 1), "padding_mode": "reflect"},
    "replicate": {"kernel_size": 3, "padding": 2, "stride": 2, "padding_mode": "replicate"},
    "circular": {"kernel_size": 3, "padding": 1, "padding_mode": "circular", "groups": 4},
    "same": {"kernel_size": (4, 2), "padding": "same", "dilation": (1, 3)},
    "same, reflect": {"kernel_size": (4, 2), "padding": "same", "padding_mode": "reflect"},
    "valid": {"kernel_size": 4, "padding": "valid", "stride": 2},
}


class Net(nn.Module):
    """A 1×1 convolution to four channels, and whatever is tested behind it."""

    def __init__(self, behind: nn.Module) -> None:
        super().__init__()
        self.before = nn.Conv2d(3, 4, 1)
        self.conv = behind

    def forward(self, images: Tensor) -> Tensor:
        values: Tensor = self.conv(self.before(images))
        return values


def net_with(behind: Callable[[], nn.Module]) -> Model:
    return as_model(seeded(lambda: Net(behind())))


def conv_of(model: Model) -> nn.Conv2d:
    conv = model.network.get_submodule("conv")
    assert isinstance(conv, nn.Conv2d)
    return conv


def taken_from(place: int, size: int, mode: str) -> int | None:
    """Which cell of the input stands at `place`, padding included; None for a zero."""
    if 0 <= place < size:
        return place
    return {
        "zeros": None,
        "replicate": min(max(place, 0), size - 1),
        "reflect": -place if place < 0 else 2 * (size - 1) - place,
        "circular": place % size,
    }[mode]


def by_loops(conv: nn.Conv2d, given: Tensor, channel: int, row: int, column: int) -> dict[str, Any]:
    """Patch, terms and total with nothing but loops."""
    kernel = conv.weight.detach()[channel].tolist()
    tall, wide = conv.kernel_size
    pads = [0, 0]
    for axis, count in enumerate(conv.kernel_size):
        if conv.padding == "same":
            pads[axis] = conv.dilation[axis] * (count - 1) // 2
        elif conv.padding != "valid":
            padding: Any = conv.padding[axis]
            pads[axis] = padding
    inputs_each = conv.in_channels // conv.groups
    group = channel // (conv.out_channels // conv.groups)
    inputs = [group * inputs_each + index for index in range(inputs_each)]
    patch = np.zeros((inputs_each, tall, wide))
    inside = np.zeros((tall, wide), dtype=bool)
    terms = [0.0] * inputs_each
    for u in range(tall):
        for v in range(wide):
            y = row * conv.stride[0] - pads[0] + u * conv.dilation[0]
            x = column * conv.stride[1] - pads[1] + v * conv.dilation[1]
            inside[u, v] = 0 <= y < given.shape[1] and 0 <= x < given.shape[2]
            from_y = taken_from(y, given.shape[1], conv.padding_mode)
            from_x = taken_from(x, given.shape[2], conv.padding_mode)
            for index, number in enumerate(inputs):
                if from_y is not None and from_x is not None:
                    patch[index, u, v] = given[number, from_y, from_x].item()
                terms[index] += kernel[index][u][v] * patch[index, u, v]
    bias = 0.0 if conv.bias is None else conv.bias[channel].item()
    return {
        "origin": (row * conv.stride[0] - pads[0], column * conv.stride[1] - pads[1]),
        "inputs": tuple(inputs),
        "patch": patch,
        "inside": inside,
        "terms": terms,
        "total": sum(terms) + bias,
    }


def same_cell(cell: CellSum, expected: dict[str, Any]) -> None:
    assert cell.origin == expected["origin"]
    assert cell.inputs == expected["inputs"]
    assert np.array_equal(cell.patch, expected["patch"])
    assert np.array_equal(cell.inside, expected["inside"])
    assert cell.terms == pytest.approx(expected["terms"], rel=1e-12, abs=1e-12)
    assert cell.total == pytest.approx(expected["total"], rel=1e-12, abs=1e-12)


def recorded_cell(  # noqa: PLR0917 - a cell's address has four parts
    model: Model, image: Tensor, layer: str, channel: int, row: int, column: int, *, call: int = 0
) -> CellSum:
    """One cell of one call of a layer, recorded in a pass of its own."""
    return explain_cell(record_layer_call(model, image, layer, call), channel, row, column)


def every_place(output: Tensor) -> list[tuple[int, int, int]]:
    channels, height, width = output.shape
    return [(c, y, x) for c in range(channels) for y in range(height) for x in range(width)]


def some_places(output: Tensor, seed: int = 0) -> list[tuple[int, int, int]]:
    """The corners of a random channel each, and three random cells."""
    rng = random.Random(seed)
    channels, height, width = output.shape
    corners = [(y, x) for y in (0, height - 1) for x in (0, width - 1)]
    inner = [(rng.randrange(height), rng.randrange(width)) for _ in range(3)]
    return [(rng.randrange(channels), y, x) for y, x in corners + inner]


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel lengths")
@pytest.mark.parametrize("name", CONVS)
def test_a_cell_is_what_loops_over_its_taps_say(name: str) -> None:
    model = net_with(lambda: nn.Conv2d(4, 8, **CONVS[name]))
    image = random_input(1)[:, :, :10, :9]
    conv = conv_of(model)
    with torch.no_grad():
        given = model.network.get_submodule("before")(image)[0]
        output = model.network(image)[0]
    call = record_layer_call(model, image, "conv")
    assert torch.equal(call.output, output)
    assert torch.equal(call.input, given)
    cells = every_place(call.output)
    for place in random.Random(2).sample(cells, 25) + some_places(output):
        cell = explain_cell(call, *place)
        same_cell(cell, by_loops(conv, given, *place))
        assert cell.value == output[place].item()
        assert (cell.bias is None) == (conv.bias is None)
        assert np.array_equal(cell.kernel, conv.weight[place[0]].detach().numpy())
        assert cell.steps == ()
    assert all(explain_cell(call, *place).agrees for place in cells)


@torch.no_grad()
@pytest.mark.parametrize("name", TOKEN_NETWORKS)
def test_a_token_s_value_is_the_sum_of_weights_times_what_it_was_before(name: str) -> None:
    case = TOKEN_NETWORKS[name]
    model = case.model()
    _, seen = plain_pass(model.network, case.image())
    linear = [
        layer for layer in case.layers if isinstance(model.network.get_submodule(layer), nn.Linear)
    ]
    assert linear
    for layer in linear:
        module: Any = model.network.get_submodule(layer)
        given, output = (case.maps(each)[0] for each in seen[layer])
        call = record_layer_call(model, case.image(), layer)
        assert_as_recorded(name, (call.input, call.output), (given, output))
        given, output = call.input, call.output
        for place in every_place(call.output):
            channel, row, column = place
            terms = module.weight[channel].double() * given[:, row, column].double()
            cell = explain_cell(call, *place)
            assert cell.terms.tolist() == pytest.approx(terms.tolist(), rel=1e-12)
            assert cell.total == pytest.approx(float(terms.sum() + module.bias[channel]), rel=1e-9)
            assert cell.value == float(output[place])
            assert cell.agrees
            assert list(cell.order) == terms.abs().argsort(descending=True, stable=True).tolist()
        if [step.kind for step in cell.steps] == ["GELU"]:
            expected = nn.functional.gelu(torch.tensor(cell.value, dtype=torch.float64))
            assert cell.steps[0].value == pytest.approx(float(expected), abs=1e-6)
        else:
            assert cell.steps == ()


def test_a_wrong_value_does_not_agree() -> None:
    model = net_with(lambda: nn.Conv2d(4, 8, 3))
    call = record_layer_call(model, random_input(1), "conv")
    right = explain_cell(call, 1, 2, 3)
    wrong = explain_cell(replace(call, output=call.output + 1e-3), 1, 2, 3)
    assert right.agrees
    assert not wrong.agrees
    assert 0 < right.tolerance < 1e-4


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions_agree_within_their_rounding(dtype: torch.dtype) -> None:
    network = seeded(lambda: nn.Sequential(nn.Conv2d(3, 16, 1), nn.Conv2d(16, 8, 3)))
    model, image = as_model(network.to(dtype)), random_input(4)
    call = record_layer_call(model, image, "1")
    assert call.output.dtype == call.padded.dtype == call.kernel.dtype == torch.float32
    assert all(explain_cell(call, *cell).agrees for cell in every_place(call.output))
    assert call.rounding == max(1e-5, 2 * torch.finfo(dtype).eps)


def test_infinite_and_undefined_values_are_shown_as_they_are() -> None:
    model = as_model(seeded(lambda: nn.Sequential(nn.Conv2d(3, 2, 1))))
    image = random_input(4)
    image[0, 0, 0, 0], image[0, 1, 0, 1] = math.inf, math.nan
    infinite, undefined, fine = (recorded_cell(model, image, "0", 0, 0, x) for x in range(3))
    assert math.isinf(infinite.value)
    assert math.isnan(undefined.value)
    assert infinite.agrees
    assert undefined.agrees
    assert fine.agrees
    call = record_layer_call(model, image, "0")
    call.output[0, 0, 0] = 1.0
    assert not explain_cell(call, 0, 0, 0).agrees


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ((4, 0, 0), "conv1 has no channel 4: its channels are 0 to 3"),
        ((0, 16, 0), "conv1 has no row 16: its rows are 0 to 15"),
        ((0, 0, -1), "conv1 has no column -1: its columns are 0 to 15"),
    ],
)
def test_cells_outside_are_refused(
    tiny: Model, noise: Tensor, place: tuple[int, int, int], said: str
) -> None:
    with pytest.raises(hookviz.SettingError, match=said):
        recorded_cell(tiny, noise, "conv1", *place)
