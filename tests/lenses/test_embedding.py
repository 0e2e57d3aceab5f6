from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import hookviz
from hookviz.drawing.panels import (
    GridPanel,
    ImagePanel,
    Panel,
    PicturesPanel,
    TablePanel,
    TextPanel,
)
from hookviz.lenses.contract.lens import LensResult
from hookviz.types import Model, Pixels
from tests.codegen.script_cases import CONVNEXT, SQUEEZENET, ScriptCase
from tests.networks import random_input
from tests.pictures import encoded, picture

SCRIPTS = (
    ScriptCase(),
    ScriptCase({"pool": "flat", "images": ("photo.png", "other.png")}, SQUEEZENET),
    ScriptCase({"layer": "features.1.0.block.3", "images": ("other.png",)}, CONVNEXT),
)
NOT_IN_SCRIPT = ("names",)  # the script has the files' own names, and no second one for one twice


def panels(result: LensResult, kind: type[Panel]) -> list[Any]:
    return [panel for panel in result.panels if isinstance(panel, kind)]


def expected(model: Model, images: list[Any], layer: str) -> Tensor:
    """The layer's output for each image, averaged over positions by torch."""
    inputs = torch.cat([hookviz.prepare_input(model, image).tensor for image in images])
    outputs: list[Tensor] = []
    network = model.network.get_submodule(layer)
    handle = network.register_forward_hook(lambda *call: outputs.append(call[2].clone()))
    with torch.no_grad():
        model.network(inputs)
    handle.remove()
    return F.adaptive_avg_pool2d(outputs[0], 1).flatten(1)


def test_it_agrees_with_torchs_pooling_and_cosine_similarity(tiny: Model) -> None:
    images = [picture(seed) for seed in range(4)]
    result = hookviz.run_lens("embedding", tiny, images[0], images=images[1:])
    vectors = expected(tiny, images, "conv2")
    similarity = F.cosine_similarity(vectors[:, None], vectors[None], dim=2)
    assert result.values["vectors"].shape == (4, 6)
    np.testing.assert_allclose(result.values["vectors"], vectors.numpy(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(result.values["similarity"], similarity.numpy(), atol=1e-5)
    assert result.values["names"].tolist() == ["image", "image 2", "image 3", "image 4"]


def test_the_table_names_the_nearest(tiny: Model) -> None:
    images = [picture(seed) for seed in (0, 1, 0)]
    result = hookviz.run_lens("embedding", tiny, images[0], images=images[1:], layer="conv1")
    nearest, numbers = panels(result, TablePanel)
    similarity = result.values["similarity"]
    other = f"{similarity[0, 1]:.3g}"
    assert [row[:4] for row in nearest.rows] == [
        (0, "image", "image 3", "1.00"),
        (1, "image 2", "image", other),
        (2, "image 3", "image", "1.00"),
    ]
    assert [row[4] for row in nearest.rows] == ["image 2", "image 3", "image 2"]
    assert numbers.columns[1:] == tuple(result.values["names"])
    assert numbers.rows[0][1:] == tuple(f"{share:.3f}" for share in similarity[0])
    assert "Most alike are 'image' and 'image 3' (1.00)" in result.panels[1].text  # type: ignore[attr-defined]


def test_the_most_alike_come_with_their_pictures(tiny: Model) -> None:
    images = [picture(seed) for seed in (0, 3, 1, 0, 2, 4, 5, 6)]
    result = hookviz.run_lens("embedding", tiny, images[0], images=images[1:])
    (row,) = panels(result, PicturesPanel)
    similarity = result.values["similarity"][0]
    order = [place for place in np.argsort(-similarity, kind="stable") if place][:6]
    assert row.names == tuple(result.values["names"][order])
    assert row.names[0] == "image 4"  # the same picture again, and not the one looked at
    assert row.notes == tuple(f"{similarity[place]:.2f}" for place in order)
    for place, shown in zip(order, row.pictures, strict=True):
        seen: Any = hookviz.prepare_input(tiny, images[place]).picture
        assert np.abs(shown.mean((0, 1)) - seen.mean((0, 1))).max() < 3


def test_the_picture_has_the_images_along_its_edges_and_colours_for_similarity(tiny: Model) -> None:
    images = [picture(seed) for seed in (0, 0, 1)]
    result = hookviz.run_lens("embedding", tiny, images[0], images=images[1:])
    (panel,) = panels(result, ImagePanel)
    cell = 96
    shown: Pixels = panel.picture
    assert shown.shape == (4 * cell, 4 * cell, 3)
    blocks = shown.reshape(4, cell, 4, cell, 3).swapaxes(1, 2)
    assert (blocks[1:, 1:] == blocks[1:, 1:, :1, :1]).all()  # one colour each
    colours = blocks[1:, 1:, 0, 0]
    yellow, violet = [253, 231, 36], [68, 1, 84]  # the ends of viridis
    assert np.abs(colours[0, 0].astype(int) - yellow).max() <= 1
    assert np.abs(colours[0, 2].astype(int) - violet).max() <= 1
    np.testing.assert_array_equal(colours[0, 1], colours[0, 0])
    np.testing.assert_array_equal(blocks[0, 1:], blocks[1:, 0])
    np.testing.assert_array_equal(blocks[0, 1], blocks[0, 2])
    small: Any = hookviz.prepare_input(tiny, images[2]).picture
    assert np.abs(blocks[0, 3].mean((0, 1)) - small.mean((0, 1))).max() < 3


def test_one_image_alone_is_a_vector_and_a_hint(tiny: Model) -> None:
    result = hookviz.run_lens("embedding", tiny, picture(), layer="head")
    (grid,) = panels(result, GridPanel)
    assert grid.grid.shape == (5, 1, 1)
    np.testing.assert_array_equal(grid.grid.stats.mean, result.values["vectors"][0])
    assert set(result.values) == {"vectors"}
    assert any("Add more images" in panel.text for panel in panels(result, TextPanel))
    (table,) = panels(result, TablePanel)
    strongest = int(np.abs(result.values["vectors"][0]).argmax())
    assert table.rows[0][0] == strongest


def test_a_broken_image_is_told_of_and_the_others_are_compared(tiny: Model, tmp_path: Path) -> None:
    broken = tmp_path / "broken.png"
    broken.write_bytes(encoded(picture())[:50])
    result = hookviz.run_lens("embedding", tiny, picture(), images=[broken, picture(1)])
    assert result.values["names"].tolist() == ["image", "image 3"]
    (bad,) = [panel for panel in panels(result, TextPanel) if panel.tone == "bad"]
    assert bad.text.startswith("broken.png is left out: ")
    assert "damaged" in bad.text


def test_where_the_image_looked_at_fails_the_lens_says_why(tiny: Model) -> None:
    with pytest.raises(hookviz.ModelError, match="can't take an input of 1×8×8"):
        hookviz.run_lens("embedding", tiny, torch.zeros(1, 8, 8))
    with pytest.raises(hookviz.HookVizError, match="can't take an input of 1×8×8"):
        hookviz.run_lens("embedding", tiny, torch.zeros(1, 8, 8), images=[picture()])


def test_values_that_are_not_finite_have_no_similarity(tiny: Model) -> None:
    broken = torch.full((1, 3, 16, 16), torch.nan)
    images = [random_input(1), broken]
    result = hookviz.run_lens("embedding", tiny, random_input(0), images=images)
    similarity = result.values["similarity"]
    assert np.isnan(similarity[2]).all()
    assert np.isfinite(similarity[:2, :2]).all()
    (picture_panel,) = panels(result, ImagePanel)
    assert "Magenta" in picture_panel.caption
    alone = hookviz.run_lens("embedding", tiny, broken, images=[broken])
    assert "not finite" in alone.panels[0].text  # type: ignore[attr-defined]


def test_many_images_still_make_one_picture(tiny: Model) -> None:
    images = [random_input(seed) for seed in range(1, 70)]
    result = hookviz.run_lens("embedding", tiny, random_input(0), images=images)
    (panel,) = panels(result, ImagePanel)
    assert panel.picture.shape == (700, 700, 3)
    assert len(panels(result, TablePanel)) == 1  # 70 columns would be no table
    (grid,) = panels(result, GridPanel)
    np.testing.assert_allclose(
        np.square(grid.grid.stats.mean) + grid.grid.stats.variance, 1 / 6, rtol=1e-4
    )
