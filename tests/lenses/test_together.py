"""Lenses on one shared model at once, and on a person's own checkpoint."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

import hookviz
from hookviz.lenses.contract import running
from hookviz.lenses.contract.lens import LensResult
from tests.every_lens import SLUGS_OF_ANY
from tests.lenses.test_every_lens import Untouched
from tests.networks import as_model, seeded
from tests.pictures import picture

EIGHT = (
    *("ablate", "channels-that-matter", "grad-cam", "gradient-flow"),
    *("health", "prune-weights", "saliency", "verify"),
)


def same(some: LensResult, others: LensResult) -> None:
    assert some.values.keys() == others.values.keys()
    for name, values in some.values.items():
        if not name.startswith("seconds"):
            np.testing.assert_array_equal(values, others.values[name], err_msg=name)


def test_eight_sessions_with_eight_lenses_get_what_they_would_get_alone() -> None:
    model = hookviz.load_model("shapesnet")
    untouched = Untouched(model.network)
    images = [picture(seed, 90, 70) for seed in range(len(EIGHT))]

    def session(place: int, turns: int) -> list[LensResult]:
        return [
            hookviz.run_lens(EIGHT[(place + turn) % len(EIGHT)], model, images[place], size=64)
            for turn in range(turns)
        ]

    alone = [session(place, 2) for place in range(len(EIGHT))]
    with ThreadPoolExecutor(len(EIGHT)) as pool:
        together = list(pool.map(lambda place: session(place, 2), range(len(EIGHT))))
    for mine, theirs in zip(alone, together, strict=True):
        for some, others in zip(mine, theirs, strict=True):
            same(some, others)
    untouched.check()


@pytest.mark.parametrize("slug", SLUGS_OF_ANY)
def test_a_network_without_scores_works_or_is_told_why(slug: str) -> None:
    network = seeded(lambda: torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()))
    try:
        assert hookviz.run_lens(slug, as_model(network), picture()).panels
    except hookviz.HookVizError as error:
        assert "class scores" in str(error)  # noqa: PT017 - either is right


def test_lenses_begin_at_a_layer_that_is_not_the_classes_themselves() -> None:
    model = hookviz.load_model("squeezenet")
    image = Path(__file__).parents[2] / "assets" / "samples" / "cat.jpg"
    begins = {
        slug: running.run_lens(slug, model, image).chosen["layer"]
        for slug in ("grad-cam", "gradients", "embedding")
    }
    assert begins == {
        "grad-cam": "features.12",  # all of the last maps, of both convs
        "gradients": "features.12.expand3x3",
        "embedding": "features.12",
    }
