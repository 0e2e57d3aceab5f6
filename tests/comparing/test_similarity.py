import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

import hookviz
from hookviz.comparing.similarity import ChannelMatches, best_matches, linear_cka, similarity
from hookviz.types import Model
from tests.networks import Tiny, as_model, random_input, seeded
from tests.pictures import picture

Floats = NDArray[np.float64]
EITHER = pytest.mark.parametrize("unbiased", [True, False])


def inputs(count: int) -> list[torch.Tensor]:
    return [random_input(seed) for seed in range(count)]


@pytest.fixture
def other() -> Model:
    """Unlike anything in the catalog: two ways that meet, grouped, dilated and transposed."""

    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.left = nn.Conv2d(3, 6, 5, stride=2, padding=2, groups=3)
            self.right = nn.Conv2d(3, 6, 3, stride=2, dilation=2, padding=2)
            self.up = nn.ConvTranspose2d(12, 3, 2, stride=2)

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            both = torch.cat([self.left(images).sigmoid(), self.right(images)], 1)
            result: torch.Tensor = self.up(both)
            return result

    return as_model(seeded(Odd))


def rows(model: Model, image: torch.Tensor, layer: str) -> NDArray[np.float64]:
    values: torch.Tensor = hookviz.capture(model, image, layer)[layer].values
    return values.double().mean((1, 2)).numpy()


@pytest.mark.parametrize("unbiased", [True, False])
def test_the_matrix_is_that_of_hsics_of_what_capture_gives(
    tiny: Model, other: Model, unbiased: bool
) -> None:
    images = inputs(9)
    result = similarity(tiny, other, images, unbiased=unbiased)
    assert result.layers == ("conv1", "conv2")
    assert result.other_layers == ("left", "right", "up")
    assert (result.models, result.unbiased) == (("Tiny", "Odd"), unbiased)
    for row, layer in enumerate(result.layers):
        x = np.stack([rows(tiny, image, layer) for image in images])
        for column, beside in enumerate(result.other_layers):
            y = np.stack([rows(other, image, beside) for image in images])
            expected = plain(x, y, hsic_1 if unbiased else hsic)
            assert result.cka[row, column] == pytest.approx(expected, abs=1e-5)


def test_one_set_of_weights_twice_is_1_on_the_diagonal(tiny: Model) -> None:
    for beside in (tiny, as_model(seeded(Tiny))):
        result = similarity(tiny, beside, inputs(5))
        np.testing.assert_allclose(result.cka.diagonal(), 1, atol=1e-12)
        nearest = result.nearest()
        assert [name for name, _ in nearest.values()] == [*nearest] == ["conv1", "conv2"]


def test_channels_that_changed_places_are_found_again() -> None:
    first, second = seeded(Tiny), seeded(Tiny)
    order = torch.tensor([2, 0, 3, 1])
    with torch.no_grad():  # conv1's channels in another order, which conv2 makes up for
        second.conv1.weight.copy_(first.conv1.weight[order])
        second.conv1.bias.copy_(first.conv1.bias[order])  # type: ignore[union-attr, index]
        second.conv2.weight.copy_(first.conv2.weight[:, order])
    result = similarity(as_model(first), as_model(second), inputs(12))
    np.testing.assert_allclose(result.cka.diagonal(), 1, atol=1e-6)
    matches = result.matches("conv1")
    assert matches.other_layer == "conv1"
    assert order[torch.from_numpy(matches.channels.copy())].tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(matches.correlations, 1, atol=1e-6)
    assert result.matches("conv2", "conv2").channels.tolist() == [*range(6)]


def test_a_layer_without_variation_has_no_number_and_no_nearest(tiny: Model) -> None:
    network = seeded(Tiny)
    with torch.no_grad():
        network.conv2.weight.zero_()
    result = similarity(as_model(network), tiny, inputs(4))
    assert np.isnan(result.cka).tolist() == [[False, False], [True, True]]
    assert set(result.nearest()) == {"conv1"}
    with pytest.raises(hookviz.HookVizError, match="gives all images the same means"):
        result.matches("conv2")
    assert result.matches("conv2", "conv1").channels.tolist() == [-1] * 6
    assert result.figure_bytes(dpi=50)[1:4] == b"PNG"


def test_images_of_all_sizes_and_broken_ones(tiny: Model, tmp_path: Path) -> None:
    for seed in range(5):
        picture(seed, 20 + 9 * seed, 50 - 7 * seed).save(tmp_path / f"{seed}.png")
    (tmp_path / "5.png").write_bytes(b"no image")
    result = similarity(tiny, tiny, sorted(tmp_path.glob("*.png")), whole=True)
    assert result.names == tuple(f"{seed}.png" for seed in range(5))
    assert set(result.failed) == {"5.png"}
    assert "5 images are few" in result.note.lower()
    assert "1 left out" in result._repr_html_()


def test_csv_the_figure_and_layers_of_either_side_are_those_chosen(
    tiny: Model, other: Model
) -> None:
    result = similarity(tiny, other, inputs(4))
    head, *body = csv.reader(io.StringIO(result.csv()))
    assert head == ["layer", "left", "right", "up"]
    assert [row[0] for row in body] == ["conv1", "conv2"]
    np.testing.assert_array_equal(np.array([row[1:] for row in body], float), result.cka)
    axes = result.figure().axes[0]
    weights = result.weights[0]
    assert axes.get_title() == f"Tiny ({weights}) and Odd ({weights}), 4 images"
    assert axes.get_ylabel() == f"Tiny ({weights})"
    assert result.figure(title="mine").axes[0].get_title() == "mine"
    assert result.figure_bytes("pdf")[:4] == b"%PDF"
    result = similarity(tiny, other, inputs(4), "relu", ["up", "left"])
    assert (result.layers, result.other_layers) == (("relu", "relu#1"), ("left", "up"))
    assert similarity(tiny, tiny, inputs(4), ["conv2"]).cka.shape == (1, 2)


def test_what_does_not_work_is_said(tiny: Model, tmp_path: Path) -> None:
    with pytest.raises(hookviz.HookVizError, match=r"needs 4 .* there are 3; unbiased=False"):
        similarity(tiny, tiny, inputs(3))
    assert similarity(tiny, tiny, inputs(3), unbiased=False).cka.shape == (2, 2)
    with pytest.raises(hookviz.HookVizError, match=r"there are 3.* Left out: 2\. a\.png: There is"):
        similarity(tiny, tiny, [*inputs(3), tmp_path / "a.png", tmp_path / "b.png"])
    with pytest.raises(hookviz.HookVizError, match="there are 0"):
        similarity(tiny, tiny, [])
    with pytest.raises(hookviz.UnknownLayerError, match="conv2"):
        similarity(tiny, tiny, inputs(4), "conv22")
    with pytest.raises(hookviz.HookVizError, match=r"torch.nn.Module is taken, .* not str"):
        similarity(tiny, "resnet18", inputs(4))  # type: ignore[arg-type]
    with pytest.raises(hookviz.SettingError, match="layers=3"):
        similarity(tiny, tiny, inputs(4), 3)  # type: ignore[arg-type]
    result = similarity(tiny, tiny, inputs(4))
    with pytest.raises(hookviz.UnknownLayerError, match="compared layer of Tiny called 'conv'"):
        result.matches("conv")
    with pytest.raises(hookviz.UnknownLayerError, match="'conv9'"):
        result.matches("conv1", "conv9")


def noise(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape)


def hsic(x: Floats, y: Floats) -> float:
    """tr(KHLH) / (N - 1)², as Kornblith et al. write it."""
    count = len(x)
    centring = np.eye(count) - np.ones((count, count)) / count
    return float(np.trace(x @ x.T @ centring @ y @ y.T @ centring)) / (count - 1) ** 2


def hsic_1(x: Floats, y: Floats) -> float:
    """Song et al.'s estimate, term by term as they print it."""
    count, ones = len(x), np.ones(len(x))
    k, l = x @ x.T, y @ y.T  # noqa: E741 - their letters
    np.fill_diagonal(k, 0)
    np.fill_diagonal(l, 0)
    terms = np.trace(k @ l)
    terms += (ones @ k @ ones) * (ones @ l @ ones) / ((count - 1) * (count - 2))
    terms -= 2 / (count - 2) * (ones @ k @ l @ ones)
    return float(terms) / (count * (count - 3))


def plain(x: Floats, y: Floats, estimate: Any) -> float:
    value: float = estimate(x, y) / np.sqrt(estimate(x, x) * estimate(y, y))
    return value


@EITHER
def test_it_is_the_ratio_of_hsics(unbiased: bool) -> None:
    first = [noise(14, size, seed=size) + 3 for size in (3, 40)]
    second = [first[0] @ noise(3, 5, seed=2) + noise(14, 5, seed=3), noise(14, 7, seed=4), first[1]]
    cka = linear_cka(first, second, unbiased=unbiased)
    estimate = hsic_1 if unbiased else hsic
    expected = [[plain(x, y, estimate) for y in second] for x in first]
    np.testing.assert_allclose(cka, expected, rtol=1e-9, atol=1e-12)


@EITHER
def test_a_layer_that_is_the_same_for_all_images_has_none(unbiased: bool) -> None:
    constant = np.full((9, 3), 0.1)
    cka = linear_cka([noise(9, 4), constant], [noise(9, 4), constant], unbiased=unbiased)
    assert cka[0, 0] == pytest.approx(1, abs=1e-12)
    assert np.isnan(cka).tolist() == [[False, True], [True, True]]


@EITHER
def test_parts_at_a_time_give_the_same(unbiased: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    first = [noise(23, 5), noise(23, 9, seed=1)]
    whole = linear_cka(first, first, unbiased=unbiased)
    monkeypatch.setattr("hookviz.comparing.similarity._MOST_NUMBERS", 23 * 4 * 5)
    np.testing.assert_allclose(linear_cka(first, first, unbiased=unbiased), whole, atol=1e-13)
    monkeypatch.setattr("hookviz.comparing.similarity._MOST_NUMBERS", 1)
    np.testing.assert_allclose(linear_cka(first, first, unbiased=unbiased), whole, atol=1e-13)


def test_too_few_images_are_refused_and_any_size_of_number_is_not() -> None:
    with pytest.raises(hookviz.HookVizError, match=r"needs 4 .* there are 3; unbiased=False takes"):
        linear_cka([noise(3, 2)], [noise(3, 2)])
    with pytest.raises(hookviz.HookVizError, match=r"needs 2 images at least, and there is 1\."):
        linear_cka([noise(1, 2)], [noise(1, 2)], unbiased=False)
    assert linear_cka([noise(2, 2)], [noise(2, 2)], unbiased=False).shape == (1, 1)
    x = noise(8, 3)
    np.testing.assert_allclose(linear_cka([x], [x * 1e200, x * 1e-200]), 1, atol=1e-9)


def test_the_highest_correlation_of_all_is_found() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((30, 5)), rng.standard_normal((30, 8))
    second[:, 6] += 2 * first[:, 1]
    correlations_of_all = np.corrcoef(first.T, second.T)[:5, 5:]
    channels, correlations = best_matches(first, second)
    assert channels.tolist() == correlations_of_all.argmax(1).tolist()
    assert channels[1] == 6
    np.testing.assert_allclose(correlations, correlations_of_all.max(1), rtol=1e-12)


def test_of_equal_ones_it_is_the_lower_number_and_the_best_stand_first() -> None:
    values = np.arange(6.0)[:, None]
    constant = np.full((6, 1), 0.1)
    channels, correlations = best_matches(
        np.hstack([values, constant]), np.hstack([constant, values, values])
    )
    assert channels.tolist() == [1, -1]
    np.testing.assert_array_equal(np.isnan(correlations), [False, True])
    channels, correlations = best_matches(values, constant)
    assert channels.tolist() == [-1]
    assert np.isnan(correlations).all()
    matches = ChannelMatches("a", "b", np.array([1, -1, 0]), np.array([0.2, np.nan, 0.9]))
    assert matches.best_first.tolist() == [2, 0, 1]
