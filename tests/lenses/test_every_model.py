"""Every lens on every network of the catalog, with small images."""

from typing import Any

import pytest

import hookviz
from hookviz.lenses.contract import running
from hookviz.models import catalog
from hookviz.types import Model
from tests.conftest import hook_count, picture
from tests.every_network import IN_EVERY_NETWORK

_LARGE = 25_000_000
"""Weights of a network that takes long."""

_LONG = frozenset(
    {
        *("across-images", "channels-that-matter", "dream", "effective-receptive-field"),
        *("gradient-flow", "inversion", "integrated-gradients", "occlusion", "prune-weights"),
        "verify",  # in every network tests/test_every_model.py computes every layer again
    }
)
"""Lenses of many passes, or that sort all weights."""


def _has_like(model: Model) -> bool:
    """Whether a network is large and its family has a smaller one, built of the same parts."""
    specs = {spec.name: spec for spec in catalog.described_models()}
    own = specs[model.name]
    family = [spec.parameters for spec in specs.values() if spec.family == own.family]
    return own.parameters > max(_LARGE, min(family))


@pytest.mark.sweep
@IN_EVERY_NETWORK
def test_every_lens_works_on(of_catalog: Model) -> None:
    model, side = of_catalog, max(64, of_catalog.min_size)
    versions = [parameter._version for parameter in model.network.parameters()]
    has_like = _has_like(model)
    convs = hookviz.list_layers(model)
    for lens in running.list_lenses():
        if has_like and lens.slug in _LONG:
            continue  # a network of the same parts goes through them
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
