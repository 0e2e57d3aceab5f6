from typing import Any

import numpy as np
import pytest
from torch import nn

import hookviz
from hookviz.drawing.panels import ImagePanel
from hookviz.lenses.contract.beside_random import BesideRandom
from hookviz.lenses.contract.running import list_lenses
from tests.lenses.said import texts
from tests.lenses.test_every_lens import Untouched
from tests.networks import Tiny, all_hooks, as_model, seeded
from tests.pictures import picture

SWITCHED = [
    lens.slug
    for lens in list_lenses()
    if any(isinstance(parameter, BesideRandom) for parameter in lens.parameters)
]
WITH = [slug for slug in SWITCHED if slug != "maximize"]
"""Those with a map; the pictures of the other one are looked at in its own test."""
QUICK: dict[str, dict[str, Any]] = {
    "occlusion": {"window": 16, "stride": 16},
    "integrated-gradients": {"steps": 3},
}


@pytest.mark.parametrize("slug", WITH)
def test_the_second_map_is_that_of_random_weights(slug: str) -> None:
    from scipy import stats  # noqa: PLC0415

    model = hookviz.load_model("shapesnet")
    untouched = Untouched(model.network)
    chosen = QUICK.get(slug, {}) | {"target": 2}
    image = picture(3, 70, 50)
    alone = hookviz.run_lens(slug, model, image, size=64, **chosen)
    blank = hookviz.run_lens(
        slug, hookviz.load_model(model.name, "random"), image, size=64, **chosen
    )
    both = hookviz.run_lens(slug, model, image, size=64, beside_random=True, **chosen)
    np.testing.assert_array_equal(both.values["map"], alone.values["map"])
    np.testing.assert_allclose(
        both.values["random_map"],
        blank.values["map"],
        rtol=1e-4,
        atol=1e-5 * np.abs(blank.values["map"]).max(),
    )
    expected = stats.spearmanr(both.values["map"].ravel(), both.values["random_map"].ravel())
    assert float(both.values["rank_correlation"]) == pytest.approx(float(expected.statistic))
    assert f"{float(expected.statistic):.2f}".replace("-", "−") in texts(both)
    second = [panel for panel in both.panels if isinstance(panel, ImagePanel)][1]
    theirs = next(panel for panel in blank.panels if isinstance(panel, ImagePanel))
    assert second.title == "With random weights"
    assert (second.picture == theirs.picture).all()
    assert len(both.panels) == len(alone.panels) + 2
    assert all_hooks(model) == 0
    untouched.check()


@pytest.mark.parametrize("slug", WITH)
def test_ones_own_network_has_it_too(tiny: hookviz.Model, slug: str) -> None:
    result = hookviz.run_lens(slug, tiny, picture(), beside_random=True)
    assert "random_map" in result.values
    assert "before any training" in texts(result) or "one value everywhere" in texts(result)


def test_where_there_are_no_random_weights_it_says_why_and_shows_the_rest() -> None:
    class Own(Tiny):
        def __init__(self) -> None:
            super().__init__()
            self.conv2 = nn.utils.parametrizations.weight_norm(self.conv2)

    result = hookviz.run_lens("saliency", as_model(seeded(Own)), picture(), beside_random=True)
    assert "There is no picture with random weights" in texts(result)
    assert "can't be drawn anew" in texts(result)
    assert "map" in result.values
    assert "random_map" not in result.values


def test_progress_goes_on_through_both_and_ends_either(tiny: hookviz.Model) -> None:
    told: list[float] = []
    chosen: dict[str, Any] = {"steps": 4, "beside_random": True}
    hookviz.run_lens("integrated-gradients", tiny, picture(), progress=told.append, **chosen)
    assert told == sorted(told)
    assert told[0] < 0.2
    assert told[-1] == 1

    class Stopped(hookviz.HookVizError):
        pass

    def stop(share: float) -> None:
        if share > 0.7:
            raise Stopped

    with pytest.raises(Stopped):
        hookviz.run_lens("integrated-gradients", tiny, picture(), progress=stop, **chosen)
