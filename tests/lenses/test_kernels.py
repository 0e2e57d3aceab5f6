import warnings
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

import hookviz
from hookviz.drawing.panels import ChartPanel, GridPanel, ImagePanel, TextPanel
from hookviz.lenses.contract.lens import LensResult
from tests.codegen.script_cases import RESNET, SHAPESNET, SQUEEZENET, ScriptCase
from tests.networks import as_model, hook_count, random_input, seeded

SCRIPTS = (
    ScriptCase(),
    ScriptCase({"show": "norm over inputs", "threshold": 0.3}, RESNET),
    ScriptCase({"layer": "features.3.squeeze", "threshold": 0.2}, SQUEEZENET),
    ScriptCase({"layer": "stage1.first.conv", "channel": 4, "threshold": 1.0}, SHAPESNET),
)


class Standardised(nn.Conv2d):
    """Brings its weights to mean 0 and deviation 1 in every pass."""

    def forward(self, batch: Tensor) -> Tensor:
        weight = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        weight /= weight.std((1, 2, 3), keepdim=True)
        return F.conv2d(batch, weight, None, padding=self.padding)


def weight_normed() -> nn.Module:
    conv = nn.Conv2d(3, 5, 3, bias=False)
    normed: nn.Module = nn.utils.parametrizations.weight_norm(conv)
    with torch.no_grad():
        normed.get_parameter("parametrizations.weight.original0").mul_(3)
    return normed


def weight_normed_by_a_hook() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        conv = nn.utils.weight_norm(nn.Conv2d(3, 5, 3, bias=False))
    with torch.no_grad():
        conv(torch.zeros(1, 3, 4, 4))  # else it can't be copied
        conv.get_parameter("weight_g").mul_(3)  # conv.weight is stale until the next pass
    return conv


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "plain": lambda: nn.Conv2d(3, 5, 3, padding=1, bias=False),
    "strided": lambda: nn.Conv2d(3, 5, (2, 3), stride=2, bias=False),
    "dilated": lambda: nn.Conv2d(3, 5, 3, dilation=2, bias=False),
    "grouped": lambda: nn.Conv2d(6, 4, 3, groups=2, bias=False),
    "depthwise": lambda: nn.Conv2d(4, 8, 3, groups=4, bias=False),
    "transposed": lambda: nn.ConvTranspose2d(3, 5, 3, bias=False),
    "transposed in groups": lambda: nn.ConvTranspose2d(4, 6, 3, groups=2, bias=False),
    "weight norm": weight_normed,
    "weight norm by a hook": weight_normed_by_a_hook,
    "weight standardisation": lambda: Standardised(3, 5, 3, padding=1, bias=False),
}


def impulse_response(module: nn.Module) -> NDArray[np.float32]:
    """The kernels as the layer's answer to single ones: independent of how weights are stored."""
    assert isinstance(module, nn.Conv2d | nn.ConvTranspose2d)
    inputs, groups = module.in_channels, module.groups
    (tall, wide), (down, across) = module.kernel_size, module.dilation
    kernels = torch.zeros(module.out_channels, inputs // groups, tall, wide)
    for channel in range(inputs):
        probe = torch.zeros(1, inputs, 12, 12)
        probe[0, channel, 6, 6] = 1
        with torch.no_grad():
            answer = module(probe)[0]
        own = range(module.out_channels // groups)
        for k in (channel // (inputs // groups) * len(own) + index for index in own):
            at = answer[k].nonzero()
            top, left = at.min(0).values.tolist()
            if isinstance(module, nn.ConvTranspose2d):
                seen = answer[k, top : top + tall, left : left + wide]
            elif module.stride == (2, 2):  # every other tap falls on each output: put together
                seen = torch.stack(
                    [
                        torch.stack([shifted(module, channel, k, r, c) for c in range(wide)])
                        for r in range(tall)
                    ]
                )
            else:
                seen = answer[
                    k, top : top + tall * down : down, left : left + wide * across : across
                ].flip(0, 1)
            kernels[k, channel % (inputs // groups)] = seen
    return kernels.numpy()


def shifted(module: nn.Conv2d, channel: int, k: int, row: int, column: int) -> Tensor:
    probe = torch.zeros(1, module.in_channels, 12, 12)
    probe[0, channel, row, column] = 1
    with torch.no_grad():
        answer: Tensor = module(probe)[0, k, 0, 0]
    return answer


def look(module: nn.Module, side: int = 16, **chosen: Any) -> LensResult:
    channels = getattr(module, "in_channels", 3)
    model = as_model(nn.Sequential(module))
    blank = torch.zeros(1, channels, side, side)
    result = hookviz.run_lens("kernels", model, blank, **chosen)
    assert not hook_count(model.network) - ("weight_g" in dict(module.named_parameters()))
    return result


@pytest.mark.parametrize("kind", LAYERS)
def test_the_kernels_are_what_the_layer_answers_to_single_ones(kind: str) -> None:
    module = seeded(LAYERS[kind])
    values = look(module).values
    torch.testing.assert_close(values["kernels"], impulse_response(module), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(values["shown"], values["kernels"][:, 0])


@pytest.fixture
def planted() -> nn.Conv2d:
    """Kernel 5 is kernel 1 at half the strength, 3 is the opposite of 0, and 4 is zero."""
    conv = seeded(lambda: nn.Conv2d(4, 7, 3))
    with torch.no_grad():
        conv.weight[5] = conv.weight[1] / 2
        conv.weight[3] = -conv.weight[0]
        conv.weight[4] = 0
    return conv


def test_near_duplicates_are_listed_and_lie_side_by_side(planted: nn.Conv2d) -> None:
    result = look(planted)
    assert result.values["pairs"].tolist() in ([[0, 3], [1, 5]], [[1, 5], [0, 3]])
    table: Any = result.panels[-1]
    assert sorted(row[:3] for row in table.rows) == [(0, 3, -1), (1, 5, 1)]
    grid: Any = result.panels[-2]
    assert grid.grid.shape == (2, 3, 6)
    index = result.values["pairs"].tolist().index([0, 3])
    tile = grid.grid.levels[index].astype(int)
    np.testing.assert_allclose(tile[:, :3] + tile[:, 3:], 252, atol=1)  # 126 is zero
    assert len(look(planted, threshold=1 - 1e-9).panels) == 6
    closest = look(seeded(lambda: nn.Conv2d(4, 7, 3)))
    assert len(closest.panels) == 5


def test_cosines_and_norms_agree_with_torch(planted: nn.Conv2d) -> None:
    result = look(planted, threshold=0)
    weight = planted.weight.detach()
    theirs = {
        (a, b): float(F.cosine_similarity(weight[a].flatten(), weight[b].flatten(), dim=0))
        for a, b in combinations((0, 1, 2, 3, 5, 6), 2)
    }
    ours = dict(
        zip(map(tuple, result.values["pairs"].tolist()), result.values["cosines"], strict=True)
    )
    assert ours == pytest.approx(theirs, abs=1e-6)
    sizes = np.abs(result.values["cosines"])
    assert (np.diff(sizes) <= 0).all()
    norms = torch.linalg.vector_norm(weight, dim=(1, 2, 3)).numpy()
    np.testing.assert_allclose(result.values["norms"], norms, rtol=1e-6)


def test_pairs_are_found_in_a_layer_that_is_compared_in_parts() -> None:
    conv = seeded(lambda: nn.Conv2d(2, 1100, 2))
    with torch.no_grad():
        conv.weight[1090] = conv.weight[700] * 2
        conv.weight[600] = -conv.weight[3]
    values = look(conv, threshold=0.99999).values
    assert sorted(values["pairs"].tolist()) == [[3, 600], [700, 1090]]


def test_without_near_duplicates_the_closest_pair_is_named() -> None:
    conv = nn.Conv2d(3, 3, 1, bias=False)
    with torch.no_grad():
        conv.weight[:, :, 0, 0] = torch.tensor([[1.0, 0, 0], [0, 1, 0], [0, 1, 1]])
    says: Any = look(conv).panels[-1]
    assert "the closest, 1 and 2, have a cosine similarity of 0.707" in says.text


def test_kernels_of_one_weight_are_not_compared() -> None:
    says = look(nn.Conv2d(4, 4, 1, groups=4)).panels[-1]
    assert says == TextPanel("No two kernels of this layer have a shape to compare.", "note")


def test_the_chart_is_sorted_on_demand(planted: nn.Conv2d) -> None:
    panels = look(planted, sort="norm").panels
    chart = next(panel for panel in panels if isinstance(panel, ChartPanel))
    norms = planted.weight.detach().flatten(1).norm(dim=1)
    assert chart.labels[-1] == "4"
    assert list(map(int, chart.labels)) == norms.argsort(descending=True, stable=True).tolist()
    np.testing.assert_allclose(chart.series["‖w‖₂"], norms.sort(descending=True).values)


def test_colours_are_symmetric_about_mid_grey() -> None:
    conv = nn.Conv2d(3, 2, 1, bias=False)
    with torch.no_grad():
        conv.weight[:, :, 0, 0] = torch.tensor([[0.0, 0.5, -0.25], [0.25, 0.0, 0.0]])
    picture: Any = look(conv).panels[2]
    high, wide = picture.picture.shape[:2]
    first = picture.picture[high // 2 if wide > high else high // 4, 0]
    assert first.tolist() == [128, 255, 64]  # mid-grey, the end, half-way down
    assert picture.picture[-1, -1].tolist() == [191, 128, 128]


def test_only_three_inputs_make_a_colour_picture() -> None:
    panels = look(seeded(lambda: nn.Conv2d(4, 2, 3))).panels
    assert not any(isinstance(panel, ImagePanel) for panel in panels)


def test_the_norm_over_inputs_another_input_and_one_that_is_not_there(
    planted: nn.Conv2d,
) -> None:
    norms = look(planted, show="norm over inputs").values["shown"]
    weight = planted.weight.detach().numpy()
    np.testing.assert_allclose(norms, np.linalg.norm(weight, axis=1), rtol=1e-6, atol=0)
    shown = look(planted, channel=2).values["shown"]
    np.testing.assert_array_equal(shown, weight[:, 2])
    with pytest.raises(hookviz.SettingError, match="has 4 input channels, 0 to 3"):
        look(planted, channel=4)


def test_one_by_one_kernels_are_a_matrix_that_lies_down() -> None:
    conv = seeded(lambda: nn.Conv2d(3, 8, 1))
    grid = next(panel for panel in look(conv).panels if isinstance(panel, GridPanel))
    assert grid.grid.shape == (1, 3, 8)
    assert "a column per output channel" in grid.title


def test_a_convolution_along_one_axis() -> None:
    conv = nn.Conv1d(3, 4, 5)
    model = as_model(nn.Sequential(nn.Flatten(2), conv))
    values = hookviz.run_lens("kernels", model, random_input(0)).values
    np.testing.assert_array_equal(values["kernels"], conv.weight.detach().numpy()[:, :, None])


def test_the_values_are_copies(tiny: hookviz.Model) -> None:
    values = hookviz.run_lens("kernels", tiny, random_input(0)).values
    before = tiny.network.get_parameter("conv1.weight").clone()
    values["kernels"][:] = 7
    torch.testing.assert_close(tiny.network.get_parameter("conv1.weight"), before)
