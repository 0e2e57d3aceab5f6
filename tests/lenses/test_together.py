"""Lenses on one shared model at once, and on a person's own checkpoint."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torchvision import models

import hookviz
from hookviz.lenses.contract import running
from hookviz.lenses.contract.result import LensResult
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

    alone = [session(place, 3) for place in range(len(EIGHT))]
    with ThreadPoolExecutor(len(EIGHT)) as pool:
        together = list(pool.map(lambda place: session(place, 3), range(len(EIGHT))))
    for mine, theirs in zip(alone, together, strict=True):
        for some, others in zip(mine, theirs, strict=True):
            same(some, others)
    untouched.check()


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trainer's file: MobileNet V3 for seven classes, wrapped as trainers do."""
    network = seeded(lambda: models.mobilenet_v3_small(num_classes=7))
    state = {f"module.{name}": tensor for name, tensor in network.state_dict().items()}
    path = tmp_path_factory.mktemp("checkpoint") / "mine.pth"
    torch.save({"state_dict": state, "epoch": 3}, path)
    return path


@pytest.mark.parametrize("slug", SLUGS_OF_ANY)
def test_every_lens_works_on_a_checkpoint_of_ones_own(slug: str, checkpoint: Path) -> None:
    model = hookviz.load_model("mobilenet_v3_small", str(checkpoint))
    steps: dict[str, Any] = {"steps": 2} if slug in {"maximize", "inversion", "dream"} else {}
    result = hookviz.run_lens(slug, model, picture(), size=64, **steps)
    assert result.panels
    assert not any(np.isinf(np.asarray(values)).any() for values in _numbers(result))


def _numbers(result: LensResult) -> list[Any]:
    return [values for values in result.values.values() if np.asarray(values).dtype.kind == "f"]


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
