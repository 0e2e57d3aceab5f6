"""Every lens on every network of the catalog, with random weights and small images."""

from typing import Any

import pytest

import hookviz
from hookviz.lenses.contract import running
from hookviz.models.bundled import BUNDLED
from tests.conftest import hook_count, picture


@pytest.mark.sweep
@pytest.mark.parametrize(
    "name", [spec.name for spec in hookviz.list_models() if not spec.name.startswith("timm")]
)
def test_every_lens_works_on(name: str) -> None:
    model = hookviz.load_model(name, "pretrained" if name in BUNDLED else "random")
    side = max(64, model.min_size)
    versions = [parameter._version for parameter in model.network.parameters()]
    for lens in running.list_lenses():
        result = running.run_lens(lens.slug, model, picture(), size=side, **_short(lens.slug))
        assert result.panels, lens.slug
        if lens.slug == "verify":
            assert "agree exactly" in str(result.panels[0]), result.panels[0]
    assert hook_count(model.network) == 0
    assert [parameter._version for parameter in model.network.parameters()] == versions


def _short(slug: str) -> dict[str, Any]:
    """Choices that keep a sweep over 69 networks within minutes."""
    return {"prune-weights": {"step": 45}}.get(slug, {})
