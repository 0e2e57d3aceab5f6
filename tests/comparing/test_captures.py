import math

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor, nn

import hookviz
from hookviz.comparing import captures
from hookviz.comparing.captures import compare, compare_maps, pairs_of, rank_correlation
from hookviz.types import Capture, Model
from tests.networks import as_model, random_input, seeded
from tests.odd_networks import ODD, ChannelsLast, ComplexConv

NAN, INF = math.nan, math.inf


def random_maps(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", [(5, 7, 4), (3, 11), (4, 2, 3, 5), (300, 31, 29)])
def test_numbers_are_those_of_plain_formulas(shape: tuple[int, ...]) -> None:
    a = random_maps(*shape)
    b = 0.3 * a + random_maps(*shape, seed=1) + 2
    comparison = compare_maps(a, b)
    assert len(comparison) == shape[0]
    for channel in range(shape[0]):
        x, y = (each[channel].flatten().tolist() for each in (a, b))
        dot = math.fsum(p * q for p, q in zip(x, y, strict=True))
        lengths = math.hypot(*x) * math.hypot(*y)
        gaps = [abs(p - q) for p, q in zip(x, y, strict=True)]
        assert comparison.cosine[channel] == pytest.approx(dot / lengths, abs=1e-12)
        assert comparison.correlation[channel] == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-12)
        assert comparison.mean_absolute_difference[channel] == pytest.approx(
            math.fsum(gaps) / len(gaps), rel=1e-12
        )
    ranked = sorted(range(len(a)), key=lambda each: -comparison.mean_absolute_difference[each])
    assert comparison.most_changed.tolist() == ranked
    assert comparison.most_changed.dtype == np.int64


def test_the_same_maps_agree_exactly_and_a_large_mean_drowns_nothing() -> None:
    maps = random_maps(6, 9, 9)
    comparison = compare_maps(maps, maps.clone())
    assert comparison.correlation.tolist() == comparison.cosine.tolist() == [1.0] * 6
    assert comparison.mean_absolute_difference.tolist() == [0.0] * 6
    assert comparison.most_changed.tolist() == [*range(6)]
    turned = compare_maps(maps, -maps)
    assert turned.correlation.tolist() == turned.cosine.tolist() == [-1.0] * 6
    a = 4096 + random_maps(1, 32, 32) / 64
    b = 4096 + random_maps(1, 32, 32, seed=1) / 64
    x, y = (each.numpy().ravel().astype(np.float64) for each in (a, b))
    comparison = compare_maps(a, b)
    assert comparison.correlation[0] == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-9)


def test_what_does_not_vary_has_no_correlation_and_what_is_zero_no_direction() -> None:
    varying = random_maps(1, 5, 3)
    constant, zero = torch.full_like(varying, 0.1), torch.zeros_like(varying)
    a = torch.cat([constant, zero, zero, varying])
    b = torch.cat([varying, varying, zero, constant])
    comparison = compare_maps(a, b)
    assert np.isnan(comparison.correlation).all()
    assert np.isnan(comparison.cosine).tolist() == [False, True, True, False]
    assert comparison.mean_absolute_difference[2] == 0
    assert comparison.most_changed[-1] == 2


def test_nan_and_infinity_are_told_and_stand_first() -> None:
    a, b = random_maps(5, 4, 4), random_maps(5, 4, 4, seed=1)
    b[1, 0, 0] = NAN
    b[2, 0, 0] = INF
    a[3, 0, 0] = b[3, 0, 0] = INF
    comparison = compare_maps(a, b)
    assert np.isnan(comparison.mean_absolute_difference).tolist() == [
        False,
        True,
        False,
        True,
        False,
    ]
    assert comparison.mean_absolute_difference[2] == INF
    for numbers in (comparison.correlation, comparison.cosine):
        assert np.isnan(numbers).tolist() == [False, True, True, True, False]
    assert comparison.most_changed[:3].tolist() == [1, 3, 2]


def test_one_cell_a_channel_and_other_types_work() -> None:
    vector = compare_maps(torch.tensor([1.0, 2.0, 0.0]), torch.tensor([1.0, -1.0, 4.0]))
    assert vector.most_changed.tolist() == [2, 1, 0]
    np.testing.assert_array_equal(vector.cosine, [1, -1, NAN])
    whole = torch.arange(12).reshape(3, 2, 2)
    halves = compare_maps(whole.bfloat16(), whole.double())
    assert compare_maps(whole, whole + 1).mean_absolute_difference.tolist() == [1, 1, 1]
    assert halves.correlation.tolist() == [1, 1, 1]
    wanting = random_maps(2, 3, 3).requires_grad_()
    assert compare_maps(wanting, wanting.transpose(1, 2)).cosine.shape == (2,)


def test_parts_at_a_time_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = random_maps(7, 6, 6), random_maps(7, 6, 6, seed=1)
    whole = compare_maps(a, b)
    monkeypatch.setattr(captures, "_CHUNK", 80)
    parts = compare_maps(a, b)
    np.testing.assert_array_equal(parts.correlation, whole.correlation)
    np.testing.assert_array_equal(parts.mean_absolute_difference, whole.mean_absolute_difference)


def test_what_cannot_be_compared_is_said() -> None:
    maps = random_maps(4, 6, 6)
    with pytest.raises(hookviz.HookVizError, match=r"4×6×6 .* 4×6×5 .*the same shape"):
        compare_maps(maps, maps[..., :5])
    with pytest.raises(hookviz.HookVizError, match="no channels to compare in a tensor of 0×6×6"):
        compare_maps(maps[:0], maps[:0])
    with pytest.raises(hookviz.HookVizError, match="of one number"):
        compare_maps(torch.tensor(1.0), torch.tensor(2.0))
    with pytest.raises(hookviz.HookVizError, match="Complex"):
        compare_maps(maps.to(torch.complex64), maps)


@pytest.mark.parametrize("levels", [3, 40, 10_000])
def test_it_agrees_with_scipy_with_ties_and_without(levels: int) -> None:
    source = np.random.default_rng(levels)
    a = source.integers(0, levels, (12, 17)).astype(np.float32)
    b = a + source.integers(0, levels, a.shape)
    expected = stats.spearmanr(a.ravel(), b.ravel()).statistic
    assert rank_correlation(a, b) == pytest.approx(float(expected), abs=1e-12)
    assert rank_correlation(a, -(b**3)) == pytest.approx(-float(expected), abs=1e-12)
    assert rank_correlation(a, a) == pytest.approx(1)


def test_what_has_no_order_correlates_with_nothing() -> None:
    a = np.arange(4.0).reshape(2, 2)
    assert np.isnan(rank_correlation(a, np.ones((2, 2))))
    assert np.isnan(rank_correlation(a, np.array([[1, 2], [np.nan, 3]])))
    assert rank_correlation(a, np.array([[-np.inf, 0], [1, np.inf]])) == 1


def test_the_difference_is_b_minus_a_and_numbers_are_of_each_layer(tiny: Model) -> None:
    a, b = (hookviz.capture(tiny, random_input(seed)) for seed in (0, 1))
    comparison = compare(a, b)
    assert list(comparison) == list(a) == ["conv1", "conv2"]
    assert comparison.left_out == {}
    for name, layer in comparison.items():
        difference = b[name].values - a[name].values
        assert torch.equal(layer.difference.values, difference)
        assert layer.difference.address == a[name].address
        gaps = difference.abs().double().mean((1, 2)).numpy()
        np.testing.assert_allclose(layer.channels.mean_absolute_difference, gaps, rtol=1e-6)
        assert layer.channels.means[1] == pytest.approx(gaps.mean())


def test_the_grid_diverges_about_zero_and_takes_the_most_changed_first(tiny: Model) -> None:
    a, b = (hookviz.capture(tiny, random_input(seed)) for seed in (0, 1))
    layer = compare(a, b)["conv2"]
    grid = layer.grid()
    assert grid.title == "conv2: B − A"
    assert grid.limits.scale == "symmetric"
    assert grid.limits.high[0] == np.float32(layer.difference.values.abs().max())
    assert "Blue is below zero" in grid.legend
    assert grid.order.tolist() == [*range(6)]
    few = layer.grid(top=2)
    assert few.order.tolist() == layer.channels.most_changed[:2].tolist()
    np.testing.assert_array_equal(few.limits.high, grid.limits.high)
    np.testing.assert_array_equal(few.levels, grid.levels[few.order])
    assert few.png()[1:4] == b"PNG"
    assert compare(a, b).grid("conv2", top=2).png() == few.png()
    assert compare(a, b).grid().title == "conv1: B − A"


def test_two_layers_of_one_shape_in_two_networks() -> None:
    a = as_model(seeded(lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 1))))
    b = as_model(seeded(lambda: nn.Sequential(nn.ReLU(), nn.Conv2d(3, 4, 3))))
    first, second = (hookviz.capture(model, random_input(0)) for model in (a, b))
    comparison = compare(first, second, "2", "1")
    assert list(comparison) == ["2"]
    assert comparison["2"].name == "2 and 1"
    assert comparison.grid().title == "2 and 1: B − A"
    assert torch.equal(comparison["2"].difference.values, second["1"].values - first["2"].values)


@pytest.mark.parametrize(
    ("network", "shape"),
    [
        (lambda: nn.Sequential(nn.Conv1d(2, 5, 3), nn.ReLU()), (2, 40)),
        (lambda: nn.Sequential(nn.Conv3d(1, 3, 3), nn.ReLU()), (1, 9, 8, 7)),
    ],
)
def test_sound_and_volumes(network: type[nn.Module], shape: tuple[int, ...]) -> None:
    model = hookviz.wrap(seeded(network))
    inputs = [
        torch.randn(1, *shape, generator=torch.Generator().manual_seed(seed)) for seed in (0, 1)
    ]
    comparison = compare(hookviz.capture(model, inputs[0]), hookviz.capture(model, inputs[1]))
    with torch.no_grad():
        first, second = (model.network[0](each)[0].flatten(1) for each in inputs)  # type: ignore[index]
    for channel, correlation in enumerate(comparison["0"].channels.correlation):
        expected = np.corrcoef(first[channel], second[channel])[0, 1]
        assert correlation == pytest.approx(expected, abs=1e-6)
    few = comparison.grid(top=2)
    assert few.shape[0] == len(first)
    assert len(few.order) == 2
    if len(shape) == 4:
        assert "Slice 3 of 7" in few.legend
        edge = comparison.grid(top=2, depth=0)
        whole = comparison.grid(depth=0)
        np.testing.assert_array_equal(edge.levels, whole.levels[edge.order])


def test_what_is_no_map_has_numbers_and_no_grid(tiny: Model) -> None:
    a, b = (hookviz.capture(tiny, random_input(seed), "head") for seed in (0, 1))
    comparison = compare(a, b)
    gaps = (b["head"].values - a["head"].values).abs()
    np.testing.assert_allclose(
        comparison["head"].channels.mean_absolute_difference, gaps, rtol=1e-6
    )
    with pytest.raises(hookviz.HookVizError, match="no maps to draw"):
        comparison.grid()


class Sick(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        return images.log()


def test_nan_is_told_and_drawn() -> None:
    model = as_model(seeded(lambda: nn.Sequential(Sick(), nn.Conv2d(3, 2, 1))))
    good, bad = random_input(0).abs() + 0.1, random_input(0).abs() + 0.1
    bad[0, 0, 3, 3] = -1
    a, b = (hookviz.capture(model, each, ["0", "1"]) for each in (good, bad))
    comparison = compare(a, b)
    assert np.isnan(comparison["0"].channels.correlation).tolist() == [True, False, False]
    assert comparison["0"].channels.means[1:] == (0.0, 1.0)
    assert "1 NaN value is" in comparison["0"].grid().legend
    assert "NaN" in comparison._repr_html_()


def test_in_a_notebook(tiny: Model) -> None:
    a, b = (hookviz.capture(tiny, random_input(seed)) for seed in (0, 1))
    html = compare(a, b)._repr_html_()
    assert "A: Tiny" in html
    assert html.count("<tr>") == 3
    assert "4×16×16" in html
    other = hookviz.capture(tiny, random_input(1), "conv1")
    assert "1 not compared" in compare(a, other)._repr_html_()


def test_what_does_not_work_is_said(tiny: Model) -> None:
    a = hookviz.capture(tiny, random_input(0))
    with pytest.raises(hookviz.UnknownLayerError, match=r"compared layer called 'conv11'.*conv1"):
        compare(a, a)["conv11"]
    assert "conv11" not in compare(a, a)
    assert compare(a, a).get("conv11") is None
    with pytest.raises(hookviz.HookVizError, match="is no capture"):
        compare(a, a.input)
    for top in (0, True, 1.5):
        with pytest.raises(hookviz.SettingError, match="whole number above 0"):
            compare(a, a).grid(top=top)  # type: ignore[arg-type]
    with pytest.raises(hookviz.SettingError, match="depth=1 is not of use"):
        compare(a, a).grid(depth=1)


def test_channels_that_lie_last_are_compared_and_not_the_rows() -> None:
    model = as_model(seeded(ChannelsLast).eval())
    layer = f"{ODD}.1"  # a GELU behind a linear layer: 14 rows, 14 columns, 14 channels
    a, b = (hookviz.capture(model, random_input(seed), layer) for seed in (0, 1))
    comparison = compare(a, b)[layer]
    gaps = (b[layer].values - a[layer].values).abs().double().mean((1, 2)).numpy()
    np.testing.assert_allclose(comparison.channels.mean_absolute_difference, gaps, rtol=1e-6)
    assert comparison.grid().shape == (14, 14, 14)
    assert torch.equal(comparison.difference.values, b[layer].values - a[layer].values)


class Forked(nn.Module):
    """A part that returns a dict, twice, and one that returns a tuple."""

    def __init__(self) -> None:
        super().__init__()
        self.fork = Fork()
        self.pair = Pair()

    def forward(self, images: Tensor) -> Tensor:
        values = self.fork(images)
        again = self.fork(values["low"])
        left, right = self.pair(again["high"])
        result: Tensor = left + right
        return result


class Fork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        values = self.conv(images)
        return {"low": values, "high": -values[..., ::2, ::2]}


class Pair(nn.Module):
    def forward(self, values: Tensor) -> tuple[Tensor, Tensor]:
        return values + 1, values * 2


def names(a: Capture, b: Capture, *layers: str) -> list[tuple[str, str]]:
    pairs, _ = pairs_of(a, b, *layers)
    return [(str(each.address), str(other.address)) for each, other in pairs]


@pytest.fixture
def forked() -> Capture:
    model, layers = as_model(seeded(Forked)), ["fork", "fork.conv", "pair"]
    cap: Capture = hookviz.capture(model, random_input(0), layers)
    return cap


def test_calls_and_parts_stand_beside_their_own(forked: Capture) -> None:
    addresses = [
        *("fork.conv", "fork[low]", "fork[high]", "fork.conv#1", "fork#1[low]", "fork#1[high]"),
        *("pair[0]", "pair[1]"),
    ]
    assert names(forked, forked) == [(name, name) for name in addresses]
    assert names(forked, forked, "fork.conv#1") == [("fork.conv#1",) * 2]
    assert names(forked, forked, "pair") == [("pair[0]",) * 2, ("pair[1]",) * 2]
    assert names(forked, forked, "fork.conv") == [("fork.conv", "fork.conv")]
    assert names(forked, forked, "fork.conv", "fork#1[low]") == [("fork.conv", "fork#1[low]")]
    assert names(forked, forked, "pair[0]", "pair[1]") == [("pair[0]", "pair[1]")]


def test_two_names_pair_their_calls_and_parts() -> None:
    def twice() -> nn.Module:
        return nn.Sequential(shared := Fork(), Low(), shared, Low(), nn.Conv2d(3, 3, 1))

    class Low(nn.Module):
        def forward(self, values: dict[str, Tensor]) -> Tensor:
            return values["low"]

    a = hookviz.capture(as_model(seeded(twice)), random_input(0), ["0"])
    b = hookviz.capture(as_model(seeded(Forked)), random_input(1), ["fork"])
    parts = ("[low]", "[high]", "#1[low]", "#1[high]")
    assert names(a, b, "0", "fork") == [(f"0{part}", f"fork{part}") for part in parts]


def test_what_one_of_them_lacks_is_left_out_and_told(tiny: Model) -> None:
    whole = hookviz.capture(tiny, random_input(0), ["conv1", "conv2", "relu"])
    part = hookviz.capture(tiny, random_input(1), ["conv1", "head"])
    pairs, left_out = pairs_of(whole, part)
    assert [str(each.address) for each, _ in pairs] == ["conv1"]
    assert set(left_out) == {"relu", "conv2", "relu#1"}
    assert set(left_out.values()) == {"B has nothing under that address"}


def test_what_can_not_be_paired_says_what_can(tiny: Model) -> None:
    a = hookviz.capture(tiny, random_input(0))
    small = hookviz.capture(tiny, random_input(1, 12))
    with pytest.raises(hookviz.HookVizError) as caught:
        pairs_of(a, small)
    assert "conv1: A has 4×16×16 and B 4×12×12; conv2: A has 6×7×7 and B 6×5×5" in str(caught.value)
    assert "The inputs are 3×16×16 and 3×12×12: capture both in one size." in str(caught.value)
    with pytest.raises(hookviz.HookVizError) as caught:
        pairs_of(a, a, "conv1", "conv2")
    assert "A has 4×16×16 and B 6×7×7 in conv2" in str(caught.value)
    assert "Of one shape are A's conv1 and B's conv1, A's conv2 and B's conv2" in str(caught.value)
    other = as_model(seeded(lambda: nn.Sequential(nn.Conv2d(3, 5, 3))))
    with pytest.raises(hookviz.HookVizError, match=r"hookviz\.similarity compares layers of any"):
        pairs_of(hookviz.capture(tiny, random_input(0)), hookviz.capture(other, random_input(0)))
    with pytest.raises(hookviz.UnknownLayerError, match=r"of Tiny called 'conv3'.*conv1"):
        pairs_of(a, a, "conv3")
    with pytest.raises(hookviz.UnknownLayerError, match="'conv9'"):
        pairs_of(a, a, "conv1", "conv9")


def test_complex_numbers_are_left_out() -> None:
    model = as_model(seeded(ComplexConv).eval())
    capture = hookviz.capture(model, random_input(0), [ODD, "conv"])
    pairs, left_out = pairs_of(capture, capture)
    assert len(pairs) == 1
    assert left_out == {ODD: "it holds complex numbers"}
