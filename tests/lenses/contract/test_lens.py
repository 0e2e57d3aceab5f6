"""What a lens's answer says of its rounding, and for which networks."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import hookviz
from hookviz.hooking.network_state import share
from hookviz.lenses.contract.lens import highest_ninth, share_of_half
from hookviz.types import Model
from tests.lenses.said import texts
from tests.networks import as_model, random_input, seeded
from tests.wide_networks import Wide


def notes(slug: str, model: Model, image: torch.Tensor, **chosen: Any) -> str:
    return texts(hookviz.run_lens(slug, model, image, **chosen))


@pytest.mark.parametrize(
    ("slug", "chosen"),
    [
        ("occlusion", {"target": 1, "window": 12, "stride": 12}),
        ("channels-that-matter", {"layer": "conv3", "target": 1}),
        ("maximize", {"layer": "conv3", "channel": 1, "steps": 2, "side": 32}),
        ("dream", {"layer": "conv3", "steps": 1}),
        ("inversion", {"layer": "conv3", "steps": 1}),
    ],
)
def test_lenses_say_that_they_round(slug: str, chosen: dict[str, Any]) -> None:
    said = notes(slug, as_model(share(seeded(Wide).eval())), random_input(1, 24), **chosen)
    assert "channels last" in said
    assert "2 in 100,000" in said


def test_one_channel_off_and_what_runs_plainly_say_nothing() -> None:
    model, image = as_model(share(seeded(Wide).eval())), random_input(1, 24)
    one: dict[str, Any] = {"layer": "conv3", "of": "a channel: which classes", "channel": 2}
    assert "channels last" not in notes("channels-that-matter", model, image, **one)
    small = hookviz.load_model("shapesnet")
    target: dict[str, Any] = {"target": 1, "window": 64, "stride": 64}
    assert "channels last" not in notes("occlusion", small, torch.zeros(1, 3, 128, 128), **target)


@pytest.mark.parametrize("shape", [(3, 3), (13, 13), (7, 20), (1, 1), (2, 5)])
def test_each_cell_has_the_word_of_its_third(shape: tuple[int, int]) -> None:
    words = (
        *("at the upper left", "at the top", "at the upper right"),
        *("at the left", "in the middle", "at the right"),
        *("at the lower left", "at the bottom", "at the lower right"),
    )
    for row, column in np.ndindex(*shape):
        map_ = np.full(shape, np.nan)  # which is nowhere the highest
        map_[row, column] = -1.0
        across, down = column / shape[1], row / shape[0]
        assert highest_ninth(map_) == words[int(3 * down + 1e-9) * 3 + int(3 * across + 1e-9)]


def test_half_of_a_map_is_on_as_few_cells_as_can_be(noise: Tensor) -> None:
    sizes = np.abs(noise.numpy())
    share = share_of_half(sizes)
    assert share is not None
    count = round(share * sizes.size)
    strongest = np.sort(sizes, axis=None)[::-1].astype(np.float64)
    assert strongest[: count - 1].sum() < strongest.sum() / 2 <= strongest[:count].sum()
    assert share_of_half(np.zeros((2, 2))) is None
