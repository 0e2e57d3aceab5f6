"""The formulas by hand; the lens grad-cam's tests hold them against captum and pytorch-grad-cam."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor, nn
from torchvision.transforms import functional as F

import hookviz
from hookviz.capturing.inputs import prepare_input
from hookviz.errors import SettingError
from hookviz.explaining.attribution.methods import (
    BASELINES,
    IntegratedGradients,
    Windows,
    baseline_of,
    eigen_cam,
    grad_cam,
    grad_cam_plus_plus,
    integrated_gradients,
    layer_cam,
    occlusion,
    score_cam,
)
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.hooking.network_state import share
from hookviz.images.samples import samples
from hookviz.types import ignore
from tests.networks import TINY_SIDE, Tiny, as_model, random_input, seeded
from tests.odd_batches import ODD, Odd, alone
from tests.odd_networks import ODD as ODD_LAYER
from tests.odd_networks import Unbatched
from tests.pictures import picture
from tests.wide_networks import Wide

ACTIVATION = np.array([[[1.0, 2.0]], [[3.0, -1.0]]])
GRADIENT = np.array([[[0.5, 1.5]], [[-2.0, 0.0]]])


def test_each_formula_gives_what_it_gives_by_hand() -> None:
    signed, weights = grad_cam(ACTIVATION, GRADIENT)
    assert weights.tolist() == [1.0, -1.0]
    assert signed.tolist() == [[1 - 3, 2 + 1]]
    signed, weights = grad_cam_plus_plus(ACTIVATION, GRADIENT)
    shares = [g**2 / (2 * g**2 + 3.0 * g**3) for g in (0.5, 1.5)]
    assert weights == pytest.approx([0.5 * shares[0] + 1.5 * shares[1], 0.0], rel=1e-5)
    assert signed == pytest.approx(np.einsum("c,chw->hw", weights, ACTIVATION))
    assert layer_cam(ACTIVATION, GRADIENT).tolist() == [[0.5, 3.0]]
    cells = np.array([[[0.0, 3.0, 0.0]], [[0.0, 4.0, 0.0]]])  # one cell stands out along (3, 4)
    signed, direction = eigen_cam(cells)
    assert direction == pytest.approx([0.6, 0.8])
    assert signed[0] == pytest.approx([-5 / 3, 10 / 3, -5 / 3])


@pytest.mark.parametrize("kind", ODD)
def test_every_masked_image_is_asked_about_on_a_fresh_network(kind: type[Odd]) -> None:
    network, image = seeded(kind), random_input(5)
    activation = network.conv1(image)[0].detach().numpy()
    model = as_model(network)
    _, weights = score_cam(model, prepare_input(model, image), activation, target=2, top=6)
    low = activation.min((1, 2), keepdims=True)
    masks = (activation - low) / (activation.max((1, 2), keepdims=True) - low)
    expected = alone(network, torch.from_numpy(masks)[:, None] * image)[:, 2].softmax(0)
    np.testing.assert_allclose(weights, expected.detach(), rtol=1e-5)


@pytest.mark.parametrize("baseline", BASELINES)
def test_integrated_gradients_agree_with_captum(baseline: str) -> None:
    import captum.attr  # noqa: PLC0415

    model = hookviz.load_model("shapesnet")
    model_input = hookviz.prepare_input(model, picture(), size=64)
    start = baseline_of(model, model_input, baseline)
    result = integrated_gradients(
        model, model_input, AttributionTarget(2), start, steps=50, progress=ignore
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, delta = captum.attr.IntegratedGradients(model.network).attribute(
            model_input.tensor, start, target=2, n_steps=50, return_convergence_delta=True
        )
    expected = theirs[0].numpy()
    atol = 1e-5 * np.abs(expected).max()
    np.testing.assert_allclose(result.attribution, expected, rtol=1e-3, atol=atol)
    assert np.corrcoef(result.attribution.flat, expected.flat)[0, 1] > 0.9999
    error = abs(float(delta)) / abs(result.difference)
    assert result.error == pytest.approx(error, abs=1e-5)


class Square(nn.Module):
    """One score: the sum of the squares of the input."""

    def __init__(self) -> None:
        super().__init__()
        self.same = nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        total: Tensor = self.same(images).square().sum((1, 2, 3))
        return total[:, None]


@pytest.mark.parametrize("steps", [1, 2, 33])
def test_of_a_sum_of_squares_it_is_exact_at_any_number_of_steps(steps: int) -> None:
    # Gauss-Legendre with one point is exact for the straight line that the gradient is.
    model, image = as_model(Square()), random_input(0)
    made, start = hookviz.prepare_input(model, image), torch.full_like(image, 0.5)
    result = integrated_gradients(
        model, made, AttributionTarget(0), start, steps=steps, progress=ignore
    )
    np.testing.assert_allclose(result.attribution, image[0].square() - 0.25, atol=1e-5)
    assert result.value == pytest.approx(float(image.square().sum()), rel=1e-6)
    assert result.start == pytest.approx(0.25 * image.numel(), rel=1e-6)
    assert result.is_complete


def test_at_the_advised_number_of_steps_a_photograph_is_complete() -> None:
    model = hookviz.load_model("squeezenet")
    coffee = next(one.path for one in samples() if one.name == "coffee")
    model_input = hookviz.prepare_input(model, coffee, size=96)
    start = torch.zeros_like(model_input.tensor)
    target = int(model.network(model_input.tensor).argmax())

    def at(steps: int) -> IntegratedGradients:
        return integrated_gradients(
            model, model_input, AttributionTarget(target), start, steps=steps, progress=ignore
        )

    few = at(6)
    assert not few.is_complete
    assert few.enough_steps is not None
    assert few.enough_steps > 6
    assert at(few.enough_steps).is_complete


def test_without_a_difference_there_is_no_share_of_it() -> None:
    class Constant(Square):
        def forward(self, images: Tensor) -> Tensor:
            return super().forward(images).cos() * 0 + 3

    model, image = as_model(seeded(Constant)), random_input(0)
    result = integrated_gradients(
        *(
            model,
            hookviz.prepare_input(model, image),
            AttributionTarget(0),
            torch.zeros_like(image),
        ),
        steps=3,
        progress=ignore,
    )
    assert (result.value, result.start, result.error) == (3, 3, 0)
    off = IntegratedGradients(np.ones((1, 2, 2)), 3.0, 3.0, 5)
    assert (off.error, off.enough_steps, off.is_complete) == (float("inf"), None, False)


@pytest.mark.parametrize(("window", "stride"), [(16, 8), (13, 5), (64, 64), (1, 1)])
def test_occlusion_agrees_with_captum(window: int, stride: int) -> None:
    import captum.attr  # noqa: PLC0415

    model = hookviz.load_model("shapesnet")
    side = 16 if window == 1 else 64
    model_input = hookviz.prepare_input(model, picture(), size=side)
    baseline = baseline_of(model, model_input, "blurred" if window == 13 else "zero")
    result = occlusion(
        *(model, model_input, AttributionTarget(2), baseline),
        windows=Windows((side,) * 2, (window,) * 2, (stride,) * 2),
        progress=ignore,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = captum.attr.Occlusion(model.network).attribute(
            *(model_input.tensor, (3, window, window), (3, stride, stride)),
            baselines=baseline,
            target=2,
        )
    assert (theirs[0, 0] == theirs[0, 1]).all()
    expected = theirs[0, 0].numpy()
    atol = 1e-5 * np.abs(expected).max() + 1e-6
    np.testing.assert_allclose(result.map, expected, rtol=1e-4, atol=atol)


def sound() -> nn.Module:
    return nn.Sequential(nn.Conv1d(2, 4, 5), nn.Tanh(), nn.AdaptiveAvgPool1d(2), nn.Flatten())


def volume() -> nn.Module:
    return nn.Sequential(nn.Conv3d(2, 4, 3), nn.Tanh(), nn.AdaptiveAvgPool3d(1), nn.Flatten())


@pytest.mark.parametrize(
    ("build", "shape", "sides", "strides"),
    [(sound, (2, 60), (10,), (6,)), (volume, (2, 8, 10, 12), (2, 2, 3), (1, 1, 2))],
)
def test_of_sound_and_of_a_volume_it_agrees_with_captum(
    build: Callable[[], nn.Module], shape: Any, sides: Any, strides: Any
) -> None:
    import captum.attr  # noqa: PLC0415

    network = seeded(build).eval()
    given = torch.randn(1, *shape, generator=torch.Generator().manual_seed(1))
    model = hookviz.wrap(network, example=(torch.zeros(1, *shape),), output="logits")
    result = hookviz.run_lens(
        "occlusion", model, given, target=2, window=sides[0], stride=strides[0]
    )
    assert result.values["map"].shape == shape[1:]
    theirs = captum.attr.Occlusion(network).attribute(
        *(given, (shape[0], *sides), (1, *strides)), target=2
    )
    expected = theirs[0, 0].numpy()
    np.testing.assert_allclose(
        result.values["map"], expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max() + 1e-6
    )
    most = np.unravel_index(result.values["drops"].argmax(), result.values["drops"].shape)
    assert f"{most[0] * strides[0]}…" in str(result)


@pytest.mark.parametrize("kind", [*ODD, Unbatched])
@torch.no_grad()
def test_each_square_is_hidden_from_a_fresh_network_alone(kind: type[Any]) -> None:
    network, image = seeded(kind).eval(), random_input(6)
    model = as_model(network)
    layer = ODD_LAYER if kind is Unbatched else None
    target = AttributionTarget(None, layer, None) if layer else AttributionTarget(2)
    result = occlusion(
        *(model, hookviz.prepare_input(model, image), target, torch.zeros_like(image)),
        windows=Windows((16, 16), (4, 4), (4, 4)),
        progress=ignore,
    )

    def value(images: Tensor) -> float:
        if layer is None:
            return float(alone(network, images)[0, 2])
        maps = torch.relu(network.get_submodule("conv")(images))[0]
        return float(network.get_submodule(layer)(maps).mean())

    assert result.value == pytest.approx(value(image), rel=1e-4)
    for row, column in np.ndindex(4, 4):
        hidden = image.clone()
        hidden[..., 4 * row : 4 * row + 4, 4 * column : 4 * column + 4] = 0
        drop = value(image) - value(hidden)
        assert result.drops[row, column] == pytest.approx(drop, rel=1e-3, abs=1e-6)


def test_a_large_networks_is_that_of_plain_passes_to_rounding_and_says_so() -> None:
    model = as_model(share(seeded(Wide).eval()))
    model_input = hookviz.prepare_input(model, random_input(0, 24))
    windows = Windows((24, 24), (8, 8), (4, 4))
    result = occlusion(
        *(model, model_input, AttributionTarget(3), torch.zeros(1, 3, 24, 24)),
        windows=windows,
        progress=ignore,
    )
    network, image = seeded(Wide).eval(), model_input.tensor
    with torch.no_grad():
        whole = network(image)[0, 3]
        for (rows, columns), drop in zip(windows.boxes, result.drops.flat, strict=True):
            covered = image.clone()
            covered[:, :, rows, columns] = 0
            expected = float(whole - network(covered)[0, 3])
            assert drop == pytest.approx(expected, rel=0, abs=4e-5 * float(whole.abs()))
    assert "channels last" in result.how
    tiny = as_model(seeded(Tiny))
    small = occlusion(
        *(tiny, hookviz.prepare_input(tiny, random_input(0)), AttributionTarget(1)),
        torch.zeros(1, 3, TINY_SIDE, TINY_SIDE),
        windows=Windows((TINY_SIDE,) * 2, (4, 4), (4, 4)),
        progress=ignore,
    )
    assert small.how == ""


@pytest.mark.parametrize(("kind", "level"), [("black", 0), ("grey", 127.5)])
def test_a_colour_is_what_the_network_gets_of_a_picture_of_that_colour(
    tiny: hookviz.Model, kind: str, level: float
) -> None:
    model_input = prepare_input(tiny, picture())
    plain = prepare_input(tiny, Image.new("RGB", (40, 30), (int(level),) * 3)).tensor
    baseline = baseline_of(tiny, model_input, kind)
    assert baseline.shape == model_input.tensor.shape
    torch.testing.assert_close(baseline, plain, rtol=0, atol=0.5 / 255 / 0.224 + 1e-6)


def test_nothing_of_the_input_is_written_to(tiny: hookviz.Model) -> None:
    model_input = prepare_input(tiny, picture())
    before = model_input.tensor.clone()
    for kind in ("zero", "grey", "black", "blurred"):
        baseline_of(tiny, model_input, kind).add_(1)
    assert torch.equal(before, model_input.tensor)
    assert not baseline_of(tiny, model_input, "zero").any()


@pytest.mark.parametrize("shape", [(64, 48), (5, 40), (1, 16)])
def test_blurred_is_a_gaussian(tiny: hookviz.Model, shape: tuple[int, int]) -> None:
    from scipy import ndimage  # noqa: PLC0415

    source = torch.Generator().manual_seed(0)
    model_input = prepare_input(
        tiny, torch.randn(1, 3, *shape, generator=source, dtype=torch.float64)
    )
    deviation = min(shape) / 16
    reach = [min(side - 1, round(3 * deviation)) for side in shape]
    expected = model_input.tensor[0].numpy()
    for axis in (0, 1):
        expected = ndimage.gaussian_filter1d(
            expected, deviation, axis=1 + axis, mode="mirror", radius=reach[axis]
        )
    np.testing.assert_allclose(baseline_of(tiny, model_input, "blurred")[0], expected, atol=1e-12)


def test_a_colour_is_refused_where_it_is_not_known_how_it_is_taken_in() -> None:
    def own(image: Image.Image) -> Tensor:
        values: Tensor = F.pil_to_tensor(image.resize((16, 16))).float()
        return values

    model = hookviz.wrap(seeded(Tiny), own)
    model_input = prepare_input(model, picture())
    with pytest.raises(SettingError, match="'zero' and 'blurred' work"):
        baseline_of(model, model_input, "black")
    assert baseline_of(model, model_input, "blurred").shape == (1, 3, 16, 16)
