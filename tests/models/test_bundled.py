"""The networks that ship: first in the catalog, loaded without a download, and often right."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torchvision import models

import hookviz
from hookviz.images.samples import samples
from hookviz.models import bundled
from hookviz.models.bundled import BUNDLED
from tests.models.state_dicts import state_dict_mismatch
from tests.networks import seeded


@pytest.fixture(autouse=True)
def no_downloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))


def test_they_are_listed_first_as_one_family_that_needs_no_download() -> None:
    specs = hookviz.list_models()
    boxed = [spec.name for spec in specs if spec.family == bundled.FAMILY]
    assert boxed == ["squeezenet", "shapesnet", "shapesvit"] == list(BUNDLED)
    assert [spec.name for spec in specs[: len(BUNDLED)]] == boxed
    assert all(spec.on_disk and not spec.download_bytes for spec in specs[: len(BUNDLED)])
    assert specs[0].name == bundled.DEFAULT == "squeezenet"
    assert (samples()[0].name, samples()[0].kind) == ("cat", bundled.SQUEEZENET.image_kind)
    assert {network.image_kind for network in BUNDLED.values()} == {each.kind for each in samples()}


@pytest.mark.parametrize("name", BUNDLED)
def test_what_the_table_says_is_what_is_loaded(name: str) -> None:
    listed, spec = BUNDLED[name], BUNDLED[name].spec()
    model = hookviz.load_model(name)
    assert (model.name, model.title, model.weights) == (name, listed.title, "pretrained")
    assert (model.categories, model.preprocess) == (listed.categories, listed.preprocess)
    assert model.min_size == spec.min_size == listed.min_size
    parameters = list(model.network.parameters())
    assert spec.parameters == sum(tensor.numel() for tensor in parameters)
    assert {tensor.dtype for tensor in parameters} == {torch.float32}
    assert model.digest == hookviz.load_model(name).digest


@pytest.mark.parametrize(
    ("sample", "label", "least"),
    [("cat", "Egyptian cat", 0.5), ("coffee", "espresso", 0.8), ("rocket", "missile", 0.4)],
)
def test_the_first_model_recognises_photographs(sample: str, label: str, least: float) -> None:
    cap = hookviz.capture(
        hookviz.load_model(bundled.DEFAULT),
        next(each.path for each in samples() if each.name == sample),
    )
    assert len(cap) == 26
    said, probability = cap.predictions(1)[0]
    assert said == label
    assert probability > least


@pytest.mark.parametrize(("network", "most"), [("squeezenet", 2_500_000), ("shapesvit", 1_000_000)])
def test_half_precision_on_file_becomes_the_same_numbers_in_float32(
    network: str, most: int
) -> None:
    file = BUNDLED[network].weights_file
    on_file = load_file(file)
    loaded = hookviz.load_model(network).network.state_dict()
    assert set(on_file) == set(loaded)
    for name, tensor in on_file.items():
        assert tensor.dtype == torch.float16
        assert torch.equal(loaded[name], tensor.float())
        assert tensor.isfinite().all()
    assert file.stat().st_size < most


def test_torchvisions_own_of_that_architecture_stays_what_it_is(tmp_path: Path) -> None:
    own = next(spec for spec in hookviz.list_models() if spec.name == "squeezenet1_1")
    assert (own.title, own.family, own.on_disk) == ("SqueezeNet 1.1", "SqueezeNet", False)
    assert own.download_bytes > 4_000_000
    assert own.accuracy == 58.178
    random, same = (hookviz.load_model(name, "random") for name in ("squeezenet", "squeezenet1_1"))
    assert random.digest == same.digest  # one architecture
    assert random.digest != hookviz.load_model("squeezenet").digest
    path = tmp_path / "three.safetensors"  # of one's own, with its own classes
    save_file(seeded(lambda: models.squeezenet1_1(num_classes=3)).state_dict(), path)
    model = hookviz.load_model("squeezenet", path, labels=["a", "b", "c"])
    assert (model.weights, model.categories) == ("three.safetensors", ("a", "b", "c"))
    # A file that fits the architecture is sent to torchvision's name for it.
    error = state_dict_mismatch("resnet18", seeded(models.squeezenet1_1).state_dict())
    assert error.fits == "squeezenet1_1"
