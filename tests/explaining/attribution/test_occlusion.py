import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.explaining.attribution.baselines import baseline_of
from hookviz.explaining.attribution.occlusion import Windows, occlusion
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.hooking.network_state import share
from hookviz.types import ignore
from tests.networks import TINY_SIDE, Tiny, as_model, random_input, seeded
from tests.odd_batches import ODD, alone
from tests.odd_networks import ODD as ODD_LAYER
from tests.odd_networks import Unbatched
from tests.pictures import picture
from tests.wide_networks import Wide


@pytest.mark.parametrize(("window", "stride"), [(16, 8), (13, 5), (64, 64), (1, 1)])
def test_it_agrees_with_captum(window: int, stride: int) -> None:
    import captum.attr  # noqa: PLC0415

    model = hookviz.load_model("shapesnet")
    side = 16 if window == 1 else 64
    model_input = hookviz.prepare(model, picture(), size=side)
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
        *(model, hookviz.prepare(model, image), target, torch.zeros_like(image)),
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
    model_input = hookviz.prepare(model, random_input(0, 24))
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
        *(tiny, hookviz.prepare(tiny, random_input(0)), AttributionTarget(1)),
        torch.zeros(1, 3, TINY_SIDE, TINY_SIDE),
        windows=Windows((TINY_SIDE,) * 2, (4, 4), (4, 4)),
        progress=ignore,
    )
    assert small.how == ""
