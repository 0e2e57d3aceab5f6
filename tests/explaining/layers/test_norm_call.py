"""A layer norm's values written out, against the formula computed by hand in double precision."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hookviz
from hookviz.explaining.layers.norm_call import explain_norm, record_norm_call
from tests.attending import plain_pass
from tests.networks import all_hooks, as_model, random_input, seeded
from tests.token_networks import TOKEN_NETWORKS


def assert_as_recorded(name: str, found: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
    """The same numbers; up to rounding behind an attention whose fused kernel stands aside."""
    off = 1e-5 if name == "torchvision's ViT" else 0
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=off, atol=off)


def every_place(maps: Tensor) -> list[tuple[int, int, int]]:
    return [(int(k), int(i), int(j)) for k, i, j in torch.ones(maps.shape).nonzero()]


@pytest.mark.parametrize("name", TOKEN_NETWORKS)
def test_a_token_s_value_is_the_formula_of_the_numbers_beside_it(name: str) -> None:
    case = TOKEN_NETWORKS[name]
    model = case.model()
    _, seen = plain_pass(model.network, case.image())
    norms = [
        layer
        for layer in case.layers
        if isinstance(model.network.get_submodule(layer), nn.LayerNorm)
    ]
    assert norms
    for layer in norms:
        module: Any = model.network.get_submodule(layer)
        given, output = (case.maps(each)[0] for each in seen[layer])
        call = record_norm_call(model, case.image(), layer)
        captured = hookviz.capture(model, case.image(), layer)[layer].values
        assert_as_recorded(name, (call.given, call.output, call.output), (given, output, captured))
        given, output = call.given, call.output
        for channel, row, column in every_place(output):
            beside = given[:, row, column].double()
            deviation = (beside.square().mean() - beside.mean() ** 2 + module.eps).sqrt()
            scaled = (beside[channel] - beside.mean()) / deviation * module.weight[channel].double()
            expected = float((scaled + module.bias[channel].double()).detach())
            cell = explain_norm(call, channel, row, column)
            assert cell.total == pytest.approx(expected, rel=1e-9, abs=1e-9)
            assert cell.value == float(output[channel, row, column])
            assert cell.given == float(given[channel, row, column])
            assert cell.norm.mean == pytest.approx(float(beside.mean()), abs=1e-9)
            assert cell.norm.variance == pytest.approx(float(beside.var(correction=0)), rel=1e-6)
            assert cell.together == len(given)
            assert cell.agrees


def behind_conv(build: Callable[[], nn.Module]) -> nn.Module:
    return seeded(lambda: nn.Sequential(nn.Conv2d(3, 4, 3), build()))


def test_maps_that_are_turned_for_it_and_back_are_its_maps() -> None:
    model = TOKEN_NETWORKS["ConvNeXt"].model()
    image = TOKEN_NETWORKS["ConvNeXt"].image()
    _, seen = plain_pass(model.network, image)
    given, output = (each[0] for each in seen["features.0.1"])  # (C, H, W) both
    call = record_norm_call(model, image, "features.0.1")
    assert torch.equal(call.given, given)
    assert torch.equal(call.output, output)
    torch.testing.assert_close(call.mean[3], given.double().mean(0))
    assert all(explain_norm(call, *place).agrees for place in every_place(output))


@pytest.mark.parametrize("affine", [True, False])
def test_maps_can_be_normalised_as_a_whole(affine: bool) -> None:
    network = behind_conv(lambda: nn.LayerNorm((4, 14, 14), 0.1, elementwise_affine=affine))
    if affine:
        torch.nn.init.normal_(network.get_parameter("1.weight"))
        torch.nn.init.normal_(network.get_parameter("1.bias"))
    call = record_norm_call(as_model(network), random_input(1), "1")
    with torch.no_grad():
        given = network.get_submodule("0")(random_input(1))[0].double()
        plain = (given - given.mean()) / (given.var(correction=0) + 0.1).sqrt()
        if affine:
            plain = plain * network.get_parameter("1.weight") + network.get_parameter("1.bias")
    cells = [explain_norm(call, *place) for place in [(0, 0, 0), (3, 13, 2), (1, 5, 11)]]
    for cell in cells:
        assert cell.total == pytest.approx(float(plain[cell.channel, cell.row, cell.column]))
        assert cell.together == 4 * 14 * 14
        assert cell.agrees


def test_a_wrong_value_does_not_agree() -> None:
    case = TOKEN_NETWORKS["timm's Swin"]
    call = record_norm_call(case.model(), case.image(), case.layers[0])
    assert not explain_norm(replace(call, output=call.output + 1e-3), 1, 2, 3).agrees
    with pytest.raises(hookviz.SettingError, match="no column 6: its columns are 0 to 5"):
        explain_norm(call, 0, 0, 6)


class Twice(nn.LayerNorm):
    """More than a layer norm."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        return 2 * super().forward(input)


class Shifted(nn.LayerNorm):
    """Not of what it is given."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        return F.layer_norm(input + 1, self.normalized_shape, self.weight, self.bias, self.eps)


@pytest.mark.parametrize("kind", [Twice, Shifted])
def test_a_layer_that_is_more_than_a_norm_is_refused(kind: type[nn.LayerNorm]) -> None:
    model = as_model(behind_conv(lambda: kind((4, 14, 14))))
    with pytest.raises(
        hookviz.ModelError, match=r"'1' .* more than one call of torch's layer_norm"
    ):
        record_norm_call(model, random_input(0), "1")
    assert all_hooks(model) == 0


def test_what_is_no_norm_or_has_no_maps_is_refused() -> None:
    model = as_model(behind_conv(lambda: nn.Sequential(nn.Flatten(), nn.LayerNorm(4 * 14**2))))
    with pytest.raises(hookviz.SettingError, match="'0' is a Conv2d, and no LayerNorm"):
        record_norm_call(model, random_input(0), "0")
    with pytest.raises(hookviz.ModelError, match=r"'1.1' .* no maps, or its rows and columns"):
        record_norm_call(model, random_input(0), "1.1")
    with pytest.raises(hookviz.UnknownLayerError, match="'2'"):
        record_norm_call(model, random_input(0), "2")
    case = TOKEN_NETWORKS["timm's Swin"]
    with pytest.raises(hookviz.SettingError, match="no call 2: its calls are 1 to 1"):
        record_norm_call(case.model(), case.image(), case.layers[0], 1)
