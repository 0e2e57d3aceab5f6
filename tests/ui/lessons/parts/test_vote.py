from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from hookviz.ui.lessons.parts.vote import (
    CHANNEL,
    DRAGGED,
    PART,
    class_of,
    last_maps,
    moved_scores,
    scores_of,
    slider_ends,
    vote_of,
)
from hookviz.wording import number
from tests.ui.lessons.parts.scenes import cat, star, with_defaults


def test_facts_are_the_networks_own_numbers() -> None:
    scene = star()
    network: Any = scene.model.network
    image = scene.model_input.tensor
    with torch.no_grad():
        maps = network.stage3(network.stage2(network.stage1(network.stem(image))))[0].numpy()
        scores = network(image)[0].numpy().astype(np.float64)
    weights, bias = network.head.weight.detach().numpy(), network.head.bias.detach().numpy()
    facts: Mapping[str, Any] = PART.facts(scene, with_defaults(PART, target="ring"))
    ring = scene.model.categories.index("ring")
    of_map = PART.facts(scene, {**with_defaults(PART), CHANNEL: "5"})
    assert (of_map["last_layer"], of_map["map_channel"]) == (last_maps(scene)[0], 5)
    assert of_map["map_mean"] == number(float(maps[5].mean()))
    parts = weights[ring] * maps.mean((1, 2))
    assert facts["class"] == "ring"
    assert facts["score"] == pytest.approx(parts.sum() + bias[ring], abs=1e-4)
    assert facts["top_channel"] == int(parts.argmax())
    assert facts["top_part"] == number(float(parts.max()))
    assert facts["top_mean"] == number(float(maps.mean((1, 2))[parts.argmax()]))
    assert facts["top_weight"] == number(float(weights[ring, parts.argmax()]))
    assert facts["likeliest_chance"] == "98.7 %"
    assert (facts["for"], facts["against"]) == ((parts > 0).sum(), (parts < 0).sum())
    shares = np.exp(scores) / np.exp(scores).sum()
    assert facts["chance"] == pytest.approx(shares[ring], rel=1e-4)
    best, second = np.sort(scores)[::-1][:2]
    assert facts["lead"] == pytest.approx(best - second, abs=1e-4)
    assert facts["compared"] == (
        "The probability of star is 98.7 %, that of grid 0.14 %: about 700 times less."
    )
    assert np.sort(shares)[-1] / np.sort(shares)[-2] == pytest.approx(700, rel=0.05)


def test_of_another_ending_the_scores_are_told_and_no_vote() -> None:
    facts = PART.facts(cat(), with_defaults(PART))
    scores = scores_of(cat())
    assert vote_of(cat()) is None
    assert facts["channels"] == facts["top_channel"] == "–"
    assert facts["class"] == cat().model.categories[scores.best]
    assert class_of(scores, "no class of it") == int(scores.scores.argmax())
    assert PART.link(cat(), with_defaults(PART)) == {}


def test_dragged_scores_are_read_and_the_facts_follow() -> None:
    scene = star()
    classes = len(scene.model.categories)
    ring = scene.model.categories.index("ring")
    assert moved_scores(f"{ring}:9.50,x,99:1,2:1e5,3:-2000", classes) == {ring: 9.5, 3: -1000.0}
    facts: Mapping[str, Any] = PART.facts(scene, {**with_defaults(PART), DRAGGED: f"{ring}:9.50"})
    scores = scores_of(scene).scores.copy()
    scores[ring] = 9.5
    shares = np.exp(scores) / np.exp(scores).sum()
    assert (facts["likeliest"], facts["second"]) == ("ring", "star")
    assert facts["lead"] == pytest.approx(9.5 - np.sort(scores)[-2])
    assert f"The probability of ring is {100 * shares[ring]:.1f} %" in facts["compared"]


@pytest.mark.parametrize("scores", [[6.3, -0.2, -0.4], [0.1, 0.1], [554.0, 40.0]])
def test_any_class_can_be_brought_before_any_other(scores: list[float]) -> None:
    low, high, step = slider_ends(scores)
    spread = max(scores) - min(scores)
    assert high - max(scores) >= max(4, spread)
    assert min(scores) - low >= max(4, spread)
    assert 100 < (high - low) / step < 500
