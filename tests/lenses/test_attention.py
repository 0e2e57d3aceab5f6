from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import hookviz
from hookviz.drawing.attention_panel import AttentionPanel
from hookviz.drawing.panels import TextPanel
from hookviz.hooking.attention_calls import multi_head_weights
from hookviz.types import Model
from tests.attending import Patches, model_of, vit
from tests.codegen.script_cases import PVT, ScriptCase
from tests.explaining.attention.test_places import Pooled, swin
from tests.networks import as_model, random_input, seeded

SCRIPTS = (ScriptCase({"rollout": False}, PVT, 1e-6),)
NOT_IN_SCRIPT = ("maps", "mean", "query_cells", "key_cells", "class_map")

SLUG = "attention"
LAYER = "encoder.layers.encoder_layer_1.self_attention"


@pytest.fixture
def model() -> Model:
    network = seeded(vit)
    nn.init.normal_(network.heads.head.weight)  # torchvision's begin as zeros
    return as_model(network)


def panel_of(result: hookviz.LensResult) -> AttentionPanel:
    (panel,) = (each for each in result.panels if isinstance(each, AttentionPanel))
    return panel


def test_its_numbers_are_the_attention_laid_out(model: Model) -> None:
    image = random_input(0)
    result = hookviz.run_lens(SLUG, model, image, layer=LAYER, query=6, target=3)
    found = hookviz.attention(model, image, target=3)
    weights = found[LAYER].numpy()
    np.testing.assert_allclose(result.values["weights"], weights, atol=1e-6)
    np.testing.assert_allclose(result.values["maps"], weights[:, 7, 1:].reshape(4, 4, 4), atol=1e-6)
    np.testing.assert_allclose(
        result.values["mean"], weights[:, 7, 1:].mean(0).reshape(4, 4), atol=1e-6
    )
    np.testing.assert_allclose(
        result.values["class_map"], weights[:, 0, 1:].mean(0).reshape(4, 4), atol=1e-6
    )
    np.testing.assert_allclose(result.values["rollout"], found.rollout(), atol=1e-6)
    np.testing.assert_allclose(
        result.values["gradient_rollout"], found.gradient_rollout(), atol=1e-6
    )
    panel = panel_of(result)
    assert (panel.grid, panel.query, panel.head, panel.class_token) == ((4, 4), 6, None, 0)
    names = [each.name for each in panel.fixed]
    assert names == ["class token", "rollout", "gradient rollout, class 3"]
    relevance = found.gradient_rollout()[0, 1:].reshape(4, 4)
    np.testing.assert_allclose(panel.fixed[2].values, relevance, atol=1e-6)


def test_without_the_rollouts_one_layer_is_looked_at_alone(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = []

    def count(*args: Any, **kwargs: Any) -> torch.Tensor:
        looked.append(True)
        return multi_head_weights(*args, **kwargs)

    monkeypatch.setattr("hookviz.hooking.attention_calls.multi_head_weights", count)
    result = hookviz.run_lens(SLUG, model, random_input(0), layer=LAYER, rollout=False)
    assert len(looked) == 1
    assert "rollout" not in result.values
    assert [each.name for each in panel_of(result).fixed] == ["class token"]


def test_windows_are_laid_out_and_let_no_rollout_through() -> None:
    image = random_input(0, 24)
    model = model_of(seeded(swin), 24)
    result = hookviz.run_lens(SLUG, model, image, layer="features.1.1.attn", query=0)
    maps = result.values["maps"]
    assert maps.shape == (2, 6, 6)
    np.testing.assert_allclose(np.nansum(maps, (1, 2)), 1, rtol=1e-5)
    assert np.isfinite(maps).sum() == 2 * 9  # a window of 3 × 3, which the shift has cut in four
    assert np.isfinite(maps[0, [0, 0, 5, 5], [0, 5, 0, 5]]).all()
    assert "Windows let no rollout through" in str(result.panels[-1])
    assert panel_of(result).class_token is None


def test_what_can_t_be_laid_out_is_not_drawn() -> None:
    model = as_model(seeded(lambda: Patches(nn.Sequential(nn.LayerNorm(8), Pooled()))))
    result = hookviz.run_lens(SLUG, model, random_input(0))
    (panel,) = result.panels
    assert isinstance(panel, TextPanel)
    assert "can't be proven" in panel.text
    assert result.values["weights"].shape == (2, 16, 4)


def test_what_is_not_there_is_told(model: Model, tiny: Model) -> None:
    image = random_input(0)
    with pytest.raises(hookviz.SettingError, match=r"No patch 16 asks in .*: it has 4 × 4 patches"):
        hookviz.run_lens(SLUG, model, image, query=16, rollout=False)
    with pytest.raises(hookviz.SettingError, match=r"no head 4 in .*: it has 4, 0 to 3"):
        hookviz.run_lens(SLUG, model, image, head=4, rollout=False)
    with pytest.raises(hookviz.ModelError, match=r"Tiny computes no attention.*ShapesViT"):
        hookviz.run_lens(SLUG, tiny, image)
