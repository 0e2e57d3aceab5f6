"""Atlases of layers of tokens, with channels last and of blocks, against plain hooks."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import hookviz
from hookviz.errors import HookVizError, ModelError, SettingError, UnknownLayerError
from hookviz.explorer.excites import OF_CELLS
from hookviz.explorer.view import View
from hookviz.types import Model
from tests.atlas.folders import check_tops, save_folder
from tests.explorer.asking import ask, decoded, subject_of
from tests.plain_hooks import every_output
from tests.token_networks import TOKEN_NETWORKS, TokenNetwork

VIT = TOKEN_NETWORKS["torchvision's ViT"]
BLOCK = "encoder.layers.encoder_layer_1"


def by_plain_hooks(
    case: TokenNetwork, model: Model, layers: tuple[str, ...], images: list[Tensor]
) -> dict[str, NDArray[np.float32]]:
    """Maps of the layers, ``(N, C, H, W)``, cut out by hand, of one pass an image."""
    passes = [every_output(model.network, image) for image in images]
    return {
        name: case.maps(torch.cat([each[name][0] for each in passes])).numpy() for name in layers
    }


@pytest.mark.parametrize("name", ["timm's DeiT", "torchvision's Swin", "ConvNeXt"])
def test_every_channels_top_is_the_one_of_plain_hooks(name: str, tmp_path: Path) -> None:
    case = TOKEN_NETWORKS[name]
    model, images = case.model(), {str(seed): case.image(seed) for seed in range(11)}
    expected = by_plain_hooks(case, model, case.layers, list(images.values()))
    for batch, near in ((1, 0.0), (4, 1e-5)):
        atlas = hookviz.make_atlas(
            model, images, tmp_path / f"{batch}.atlas", layers=case.layers, batch=batch, top=4
        )
        check_tops(atlas, [*images], expected, near)
        check_means(atlas, expected)


def check_means(atlas: hookviz.Atlas, expected: Mapping[str, NDArray[np.float32]]) -> None:
    """Prefix tokens count in no mean."""
    for layer, maps in expected.items():
        means = maps.mean(axis=(0, 2, 3), dtype=np.float64)
        np.testing.assert_allclose(atlas.statistics(layer).mean, means, atol=1e-5)


def test_windows_of_several_images_are_put_back_into_their_maps(tmp_path: Path) -> None:
    case, layer = TOKEN_NETWORKS["timm's Swin"], "layers.0.blocks.0.attn"
    model, images = case.model(), {str(seed): case.image(seed) for seed in range(5)}

    class Windowed(TokenNetwork):
        def maps(self, found: Tensor) -> Tensor:  # 2×3 windows of 2×2, an image after the other
            parts = found.reshape(-1, 2, 3, 2, 2, found.shape[-1])
            return parts.permute(0, 5, 1, 3, 2, 4).reshape(len(parts), -1, 4, 6)

    windowed = Windowed(case.build, (), "")
    expected = by_plain_hooks(windowed, model, (layer,), list(images.values()))
    atlas = hookviz.make_atlas(model, images, tmp_path / "a.atlas", layers=layer, batch=3, top=3)
    check_tops(atlas, [*images], expected, 1e-5)


@pytest.fixture(scope="module")
def model() -> Model:
    return VIT.model()


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return save_folder(tmp_path_factory.mktemp("tokens") / "photos", 6)


@pytest.fixture(scope="module")
def atlas(model: Model, photos: list[Path]) -> hookviz.Atlas:
    return hookviz.make_atlas(model, photos, photos[0].parent.parent / "a.atlas", top=3)


def test_a_transformers_blocks_are_in_it_with_patches_of_their_tokens(
    model: Model, atlas: hookviz.Atlas, photos: list[Path]
) -> None:
    usual = hookviz.list_layers(model, kind="usual")
    assert list(atlas.layers.items()) == [(each.name, each.output_shape[0]) for each in usual]
    assert BLOCK in atlas.layers
    assert "conv_proj" not in atlas.of_cells
    assert set(atlas.layers) - {"conv_proj"} == atlas.of_cells
    for best in atlas.top_activations(BLOCK, 5):
        path = next(path for path in photos if path.name == best.image.name)
        crop, (row, column) = hookviz.prepare_input(model, path).crop, best.cell
        assert crop is not None
        down, across = (crop.bottom - crop.top) / 4, (crop.right - crop.left) / 4  # 4×4 patches
        edges = (
            crop.top + row * down,
            crop.left + column * across,
            crop.top + (row + 1) * down,
            crop.left + (column + 1) * across,
        )
        assert best.box is not None
        np.testing.assert_allclose(best.box, edges, atol=1.0)
        pixels = hookviz.read_image(path).pixels
        rows, columns = slice(best.box[0], best.box[2]), slice(best.box[1], best.box[3])
        np.testing.assert_array_equal(best.patch, pixels[rows, columns])  # so small it is exact


def test_the_explorer_shows_it_and_says_what_its_patches_are(
    model: Model, atlas: hookviz.Atlas, tmp_path: Path
) -> None:
    subject = subject_of(model, atlas=atlas)
    view = View(layer=BLOCK, patches=True)
    facts = ask(subject, "excites", view, channel=5).facts
    assert facts["note"] == OF_CELLS
    top = atlas.top_activations(BLOCK, 5)
    assert [each["leads"]["cell"] for each in facts["patches"]] == [
        f"{best.cell[0]},{best.cell[1]},4,4" for best in top
    ]
    assert decoded(facts["patches"][0]["picture"]).shape[:2] == top[0].patch.shape[:2]  # type: ignore[union-attr]
    tiles = ask(subject, "tiles", view).facts
    assert tiles["isPatches"]
    assert "".join(part for part, _ in tiles["legend"]).endswith(OF_CELLS)
    assert ask(subject, "layers", view).facts["isUsual"]
    seen = ask(subject, "excites", View(layer="conv_proj"), channel=0).facts
    assert (seen["known"], seen["note"]) == (True, "")
    page = tmp_path / "page.html"
    hookviz.save_page(hookviz.capture(model, "assets/samples/cat.jpg", BLOCK), page, atlas=atlas)
    assert page.stat().st_size


def test_layers_that_can_not_be_taken_are_refused(
    model: Model, photos: list[Path], atlas: hookviz.Atlas, tmp_path: Path
) -> None:
    def make(layers: object) -> None:
        hookviz.make_atlas(model, photos, tmp_path / "b.atlas", layers=layers)  # type: ignore[arg-type]

    with pytest.raises(ModelError, match=r"'heads.head' of .* puts out no maps.*'encoder'"):
        make([BLOCK, "heads.head"])
    with pytest.raises(UnknownLayerError, match="encoder_layer_1"):
        make("encoder.layers.encoder_layer_l")
    with pytest.raises(SettingError, match="No layer is named"):
        make([])
    with pytest.raises(SettingError, match="goes by its name"):
        make([3])
    with pytest.raises(HookVizError, match="another atlas: it is of other layers"):
        hookviz.make_atlas(model, photos, atlas.path, top=3, layers=BLOCK)
    assert not (tmp_path / "b.atlas").exists()


def test_what_an_earlier_version_began_goes_on(
    model: Model, photos: list[Path], tmp_path: Path
) -> None:
    def end(_progress: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hookviz.make_atlas(
            model, photos, tmp_path / "a.atlas", layers="conv_proj", batch=4, progress=end
        )
    begun = tmp_path / "a.atlas.part" / "plan.json"
    plan = json.loads(begun.read_text())
    assert plan.pop("layers") == ["conv_proj"]
    begun.write_text(json.dumps(plan))
    made = hookviz.make_atlas(model, photos, tmp_path / "a.atlas", layers="conv_proj", batch=4)
    assert list(made.layers) == ["conv_proj"]
