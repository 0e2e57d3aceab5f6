import re

import matplotlib as mpl
import numpy as np
import pytest
from numpy.typing import NDArray

from hookviz.drawing.colormaps import (
    COLORMAPS,
    LEVELS,
    NAN_COLOUR,
    PROJECTED,
    PROJECTED_SIGNED,
    palette_of,
)
from hookviz.explorer.client_files import DARK
from hookviz.ui.theme import diverging, sequential, sign_words, style


def variable(name: str) -> str:
    found = re.search(rf"--hv-{name}: ([^;]*);", style())
    assert found is not None
    return found[1]


@pytest.mark.parametrize("name", ["RdBu_r", "berlin", "coolwarm"])
def test_the_page_has_the_colours_of_matplotlib(name: str) -> None:
    colours = variable(name).split()
    exact = mpl.colormaps[name].resampled(LEVELS)(np.arange(LEVELS), bytes=True)[:, :3]
    assert colours == ["#" + bytes(colour).hex() for colour in exact]
    assert variable("nan") == NAN_COLOUR
    below, above = (bytes.fromhex(variable(f"{name}-{side}")[1:]) for side in ("below", "above"))
    assert below[2] > below[0]  # bars are blue below zero and red above
    assert above[0] > above[2]


def test_colours_are_named_as_the_page_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dark pages have light blue and pink, not blue and red: by brightness of the colours' ends."""
    assert (diverging(), sequential()) == ("RdBu_r", "gray_r")
    assert sign_words() == {"above": "red", "below": "blue"}
    monkeypatch.setattr("hookviz.ui.theme._of_theme", lambda: DARK)
    assert sign_words() == {"above": "pink", "below": "light blue"}
    ends = mpl.colormaps[diverging()]([0.0, 1.0])[:, :3]
    assert (ends.mean(1) > 0.6).all()  # light ones
    assert [end.argmax() for end in ends] == [2, 0]


# How each eye sees linear RGB, from Machado, Oliveira and Fernandes, "A physiologically-based model
# for simulation of color vision deficiency" (2009), severity 1.0.
EYES: dict[str, list[list[float]]] = {
    "usual": np.eye(3).tolist(),
    "without red cones": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "without green cones": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "without blue cones": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
ROOM = 0.15  # of the projector's white, on the wall where it shows black


def on_the_wall(name: str, eye: str) -> NDArray[np.float64]:
    """CIELAB ``(17, 3)`` of a colormap from end to end, as an eye sees it in a lit room."""
    at = np.linspace(0, LEVELS - 1, 17).round().astype(int)
    colours = palette_of(name)[at, :3] / 255
    linear = np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)
    seen = (np.clip(linear @ np.transpose(EYES[eye]), 0, 1) + ROOM) / (1 + ROOM)
    x, y, z = np.cbrt(seen @ TO_XYZ.T / TO_XYZ.sum(1)).T  # the room lets nothing be darker
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def least_step(name: str) -> float:
    """How far colours that lie beside each other are apart where they are least, to any eye."""
    return min(
        float(np.linalg.norm(np.diff(on_the_wall(name, eye), axis=0), axis=1).min()) for eye in EYES
    )


def ends(name: str) -> float:
    """How far the ends are apart, to the eye to which they are least."""
    walls = (on_the_wall(name, eye) for eye in EYES)
    return min(float(np.linalg.norm(wall[0] - wall[-1])) for wall in walls)


def test_no_colormap_loses_less_on_a_projector_than_those_for_it() -> None:
    signed = {each.name for each in COLORMAPS.values() if each.diverging}
    assert max(set(COLORMAPS) - signed, key=least_step) == PROJECTED
    assert max(signed, key=least_step) == PROJECTED_SIGNED
    assert max(signed, key=ends) == PROJECTED_SIGNED
    assert min(map(least_step, (PROJECTED, PROJECTED_SIGNED))) > 2  # what is just seen


def test_before_a_class_the_colours_are_those_for_a_projector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hookviz.ui.theme.st.query_params", {"present": "1"})
    assert (diverging(), sequential()) == (PROJECTED_SIGNED, PROJECTED)
