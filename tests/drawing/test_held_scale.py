import numpy as np
import pytest
import torch

from hookviz.drawing.colormaps import COLORMAPS
from hookviz.drawing.grid import Grid, make_grid
from hookviz.drawing.held_scale import Held, draw_on_scale, scale_of
from hookviz.types import FIRST, Activation, ActivationKey, Layout
from tests.networks import Tiny, as_model


def activation(*shape: int, low: float = 0.0) -> Activation:
    values = torch.linspace(low, 1.0, int(np.prod(shape))).reshape(shape)
    return Activation(ActivationKey("conv"), values, Layout(FIRST))


def drawn(of: Activation, held: Held | None = None, signed: str | None = "RdBu_r") -> Grid:
    return draw_on_scale(
        of,
        sort="mean",
        top=3,
        scale="layer",
        colormap="inferno",
        signed_colormap=signed,
        held=held,
    )


@pytest.mark.parametrize(
    ("low", "signed", "colormap"),
    [(0.0, "RdBu_r", "inferno"), (-0.1, "RdBu_r", "RdBu_r"), (-0.1, None, "inferno")],
)
def test_the_signs_choose_the_colours(low: float, signed: str | None, colormap: str) -> None:
    of = activation(4, 5, 6, low=low)
    alone = make_grid(of, sort="mean", top=3, scale="layer", colormap=colormap)
    assert drawn(of, signed=signed).png() == alone.png()


def test_a_volume_is_its_middle_slice_on_a_scale_that_stays() -> None:
    of = activation(4, 5, 6, 7)
    assert drawn(of).png() == drawn(Activation(of.address, of.values[:, 2])).png()
    first, second = activation(4, 5, 6, low=-1.0), activation(4, 5, 6)
    held = Held((), drawn(first).limits, signed=True)
    again = drawn(second, held)
    assert np.array_equal(again.limits.high, drawn(first).limits.high)
    assert np.array_equal(again.limits.low, drawn(first).limits.low)
    assert (again.colormap, drawn(second).colormap) == (COLORMAPS["RdBu_r"], COLORMAPS["inferno"])


def test_another_layer_shape_or_policy_is_another_scale() -> None:
    model, of = as_model(Tiny()), activation(4, 5, 6)
    alike = Activation(of.address, of.values * 2)
    assert scale_of(model, of, "layer") == scale_of(model, alike, "layer")
    for other in (activation(4, 6, 5), Activation(ActivationKey("relu"), of.values)):
        assert scale_of(model, other, "layer") != scale_of(model, of, "layer")
    assert scale_of(model, of, "channel") != scale_of(model, of, "layer")
