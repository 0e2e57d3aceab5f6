"""What a lens's answer says of its rounding, and for which networks."""

from typing import Any

import pytest
import torch

import hookviz
from hookviz.hooking.network_state import share
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
