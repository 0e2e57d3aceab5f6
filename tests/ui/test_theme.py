"""The colours that the page and its pictures share."""

import re

import matplotlib as mpl
import numpy as np
import pytest

from hookviz.drawing.colormaps import LEVELS, NAN_COLOUR
from hookviz.ui.theme import diverging, signed_colour, style


def variable(name: str) -> str:
    found = re.search(rf"--hv-{name}: ([^;]*);", style())
    assert found is not None
    return found[1]


@pytest.mark.parametrize("name", ["RdBu_r", "berlin"])
def test_the_page_has_the_colours_of_matplotlib(name: str) -> None:
    colours = variable(name).split()
    exact = mpl.colormaps[name].resampled(LEVELS)(np.arange(LEVELS), bytes=True)[:, :3]
    assert colours == ["#" + bytes(colour).hex() for colour in exact]
    assert variable("nan") == NAN_COLOUR


@pytest.mark.parametrize("name", ["RdBu_r", "berlin"])
def test_bars_are_blue_below_zero_and_red_above(name: str) -> None:
    below, above = (bytes.fromhex(variable(f"{name}-{side}")[1:]) for side in ("below", "above"))
    assert below[2] > below[0]
    assert above[0] > above[2]


def test_the_sign_decides_the_colour() -> None:
    assert diverging() == "RdBu_r"  # without a browser there is no theme, and it is light
    assert signed_colour(-1e-9) == "var(--hv-RdBu_r-below)"
    assert signed_colour(0.0) == "var(--hv-RdBu_r-above)"
