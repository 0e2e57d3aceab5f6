"""Every lens on every network of the catalog, with small images."""

from typing import Any

import pytest

import hookviz
from hookviz.lenses.contract import running
from hookviz.lenses.contract.lens import Lens
from hookviz.types import Model
from tests.every_lens import OF_FEW
from tests.every_network import ALL_LENSES, IN_EVERY_NETWORK, ONE_OF_A_KIND
from tests.every_way import EVERY_WAY
from tests.networks import hook_count
from tests.pictures import picture

_FORWARD, _BACKWARD = ("embedding", "inputs", "kernels", "summary"), ("grad-cam", "saliency")
"""Quick lenses that ask for a pass, and for gradients; each network meets one of both, by turns."""


def lenses_of(name: str) -> list[Lens]:
    """The lenses that go through a network: all of them, or one of each way of working."""
    every = running.list_lenses()
    if EVERY_WAY or name in ALL_LENSES:
        return list(every)
    turn = sorted(ONE_OF_A_KIND).index(name)
    met = _FORWARD[turn % len(_FORWARD)], _BACKWARD[turn % len(_BACKWARD)], "verify"
    return [lens for lens in every if lens.slug in met]


@pytest.mark.sweep("by day on ShapesNet: test_every_lens.py")
@IN_EVERY_NETWORK
def test_every_lens_works_on(of_catalog: Model) -> None:
    model, side = of_catalog, max(64, of_catalog.min_size)
    versions = [parameter._version for parameter in model.network.parameters()]
    convs = hookviz.list_layers(model)
    for lens in lenses_of(model.name):
        if lens.slug in OF_FEW:
            continue
        chosen = _short(lens.slug)
        if lens.slug == "maximize":  # 32 steps, to a layer in the middle
            chosen["layer"] = convs[len(convs) // 2].name
        result = running.run_lens(lens.slug, model, picture(), size=side, **chosen)
        assert result.panels, lens.slug
        if lens.slug == "verify":
            assert "agree exactly" in str(result.panels[0]), result.panels[0]
    assert hook_count(model.network) == 0
    assert [parameter._version for parameter in model.network.parameters()] == versions


def _short(slug: str) -> dict[str, Any]:
    """Choices that keep a sweep over 69 networks within minutes."""
    short: dict[str, dict[str, Any]] = {
        "prune-weights": {"most": 45, "step": 45},
        "maximize": {"of": "channels side by side", "channels": "0", "steps": 32, "side": 32},
        "dream": {"steps": 2},
        "inversion": {"steps": 2, "layers": 2},
        "occlusion": {"window": 32, "stride": 32},
        "integrated-gradients": {"steps": 2},
        "effective-receptive-field": {"count": 1},
    }
    return short.get(slug, {})
