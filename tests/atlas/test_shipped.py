import pytest

import hookviz
from hookviz.atlas.shipped import FOLDER, shipped_atlas
from hookviz.images.samples import samples
from hookviz.models.shapesnet import CATEGORIES

NETWORKS = ("shapesnet", "squeezenet")


@pytest.mark.parametrize("name", NETWORKS)
def test_it_belongs_to_its_network_and_shows_its_values(name: str) -> None:
    path = shipped_atlas(name)
    assert path is not None
    model, atlas = hookviz.load_model(name), hookviz.read_atlas(path)
    assert atlas.belongs_to(model)
    assert atlas.layers == {
        layer.name: layer.output_shape[0] for layer in hookviz.list_layers(model)
    }
    assert set(atlas.classes) == {*CATEGORIES, "photograph"}
    ours = {hookviz.read_image(sample.path).digest: sample.path for sample in samples()}
    last = list(atlas.layers)[-1]
    for channel in (0, 17):
        for entry in atlas.excites(last, channel):
            file = ours.get(entry.image.digest) or atlas.picture(entry.image)
            assert file is not None
            image = hookviz.read_image(file)
            assert image.digest == entry.image.digest
            values = hookviz.capture(model, image, last)[last].values[channel]
            assert abs(float(values[entry.cell]) - entry.value) < 1e-5 * float(values.abs().max())
            assert float(values.max()) == float(values[entry.cell])
            assert entry.patch is not None


def test_every_patch_can_be_read() -> None:
    for name in NETWORKS:
        atlas = hookviz.read_atlas(FOLDER / f"{name}.atlas")
        for layer in atlas.layers:
            assert all(patch is not None for patch in atlas.first_patches(layer))


def test_no_other_model_has_one() -> None:
    assert shipped_atlas("resnet18") is None
    assert shipped_atlas("../atlases/shapesnet") is None
