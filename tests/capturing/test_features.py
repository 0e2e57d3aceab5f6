import copy
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.profiler import profile
from torchvision import models

import hookviz
from hookviz.capturing.batch_images import name_images, named
from hookviz.capturing.features import VectorWork, features
from hookviz.capturing.image_shards import image_shards
from hookviz.types import Model
from tests.networks import as_model, hook_count, random_input, seeded
from tests.pictures import encoded, picture


def test_mean_and_flat_are_those_of_the_layers_output(tiny: Model) -> None:
    inputs = [random_input(seed) for seed in range(3)]
    with torch.no_grad():
        expected = tiny.network.get_submodule("conv1")(torch.cat(inputs))
    mean = features(tiny, inputs, "conv1")
    assert (mean.names, mean.vectors.shape) == (("image 1", "image 2", "image 3"), (3, 4))
    assert (mean.model, mean.layer, mean.pool) == ("Tiny", "conv1", "mean")
    means = expected.mean((2, 3)).numpy()
    np.testing.assert_allclose(mean.vectors, means, rtol=1e-5, atol=1e-6)
    flat = features(tiny, inputs, "conv1", "flat")
    assert flat.vectors.dtype == np.float32
    np.testing.assert_allclose(flat.vectors, expected.flatten(1).numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="read-only"):
        flat.vectors[0, 0] = 1
    assert features(tiny, [picture()]).layer == "conv2"  # by default the last maps
    head = features(tiny, [picture()], "head")
    np.testing.assert_array_equal(head.vectors[0], hookviz.capture(tiny, picture()).logits)


@pytest.mark.parametrize(("name", "classifier"), [("resnet18", "fc"), ("shapesnet", "head")])
def test_by_default_the_mean_is_what_the_classes_are_read_off(name: str, classifier: str) -> None:
    model = hookviz.load_model(name, "random")
    image = random_input(0, 64)
    read: list[Tensor] = []
    layer = model.network.get_submodule(classifier)
    hook = layer.register_forward_pre_hook(lambda _layer, inputs: read.extend(inputs))
    with torch.no_grad():
        model.network(image)
    hook.remove()
    found = features(model, [image])
    np.testing.assert_allclose(found.vectors, read[0].numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("part", "dims"),
    [("0", (2, 3)), ("3", (1, 2))],
)
def test_channels_can_be_last(part: str, dims: tuple[int, int]) -> None:
    """In ConvNeXt's blocks they are, between two permutations."""
    layer = f"features.1.0.block.{part}"
    network = seeded(models.convnext_tiny).eval()
    outputs: list[Tensor] = []
    network.get_submodule(layer).register_forward_hook(lambda *call: outputs.append(call[2]))
    with torch.no_grad():
        network(random_input(0, 64))
    found = features(as_model(network), [random_input(0, 64)], layer)
    np.testing.assert_allclose(found.vectors, outputs[0].mean(dims).numpy(), rtol=1e-4, atol=1e-6)


def test_a_broken_image_is_told_and_the_others_go_on(tiny: Model, tmp_path: Path) -> None:
    picture(1).save(tmp_path / "one.png")
    (tmp_path / "broken.png").write_bytes(encoded(picture())[:60])
    paths = [tmp_path / name for name in ("gone.png", "one.png", "broken.png")]
    found = features(tiny, [*paths, picture(2)])
    assert (found.names, len(found.vectors)) == (("one.png", "image 4"), 2)
    assert set(found.failed) == {"gone.png", "broken.png"}
    assert "damaged" in found.failed["broken.png"]
    np.testing.assert_array_equal(found.vectors[1:], features(tiny, [picture(2)]).vectors)
    for images, reason in (
        (paths[:1], r"gone\.png"),
        (
            [tmp_path / "a.png", tmp_path / "b.png"],
            r"No image gave features\. a\.png: There is no image file",
        ),
        ([], "at least one"),
    ):
        with pytest.raises(hookviz.HookVizError, match=reason):
            features(tiny, images)


def test_what_does_not_exist_is_refused_before_any_pass(tiny: Model) -> None:
    with pytest.raises(hookviz.UnknownLayerError, match="conv2"):
        features(tiny, [picture()], "conv22")
    with pytest.raises(hookviz.UnknownLayerError, match="conv2"):
        features(tiny, [picture()], ["conv1", "conv22"])
    with pytest.raises(hookviz.SettingError, match="at least one"):
        features(tiny, [picture()], [])
    with pytest.raises(hookviz.SettingError, match="mean, flat"):
        features(tiny, [picture()], pool="max")
    with pytest.raises(
        hookviz.SettingError, match=r"'conv\*' chooses 2 layers, such as 'conv1'; in a list"
    ):
        features(tiny, [picture()], "conv*")
    assert features(tiny, [picture()], "conv2*").layer == "conv2"
    assert list(features(tiny, [picture()], ["conv*"])) == ["conv1", "conv2"]


def test_several_layers_have_features_each_of_one_pass(tiny: Model, tmp_path: Path) -> None:
    (tmp_path / "broken.png").write_bytes(encoded(picture())[:60])
    inputs = [random_input(seed) for seed in range(2)]
    outputs: dict[str, Tensor] = {}
    network = copy.deepcopy(tiny.network)
    for name in ("conv2", "head"):
        network.get_submodule(name).register_forward_hook(
            lambda module, args, output, name=name: outputs.update({name: output.clone()})
        )
    with torch.no_grad():
        network(torch.cat(inputs))
    found = features(tiny, [*inputs, tmp_path / "broken.png"], ["head", "conv2", "head"])
    assert list(found) == ["head", "conv2"]
    for name, expected in (("conv2", outputs["conv2"].mean((2, 3))), ("head", outputs["head"])):
        np.testing.assert_allclose(found[name].vectors, expected.numpy(), rtol=1e-5, atol=1e-6)
        assert (found[name].layer, found[name].names) == (name, ("image 1", "image 2"))
        assert list(found[name].failed) == ["broken.png"]
    assert list(features(tiny, inputs, ("conv1",))) == ["conv1"]
    path = tmp_path / "cat.jpg"
    picture().save(path)
    of_one = [path, str(path), b"...", hookviz.read_image(path)]
    assert tuple(named(of_one)) == ("cat.jpg", "cat.jpg (2)", "image 3", "cat.jpg (3)")
    assert tuple(name_images(tiny, str(path))) == (("cat.jpg", str(path)),)
    # A folder a day has the same names in each. Compared in pairs, these would take hours.
    many = named([f"{day}/image.jpg" for day in range(100_000)])
    assert list(many)[:3] == ["image.jpg", "image.jpg (2)", "image.jpg (3)"]
    images = {"wide": picture(0, 40, 20), "square": picture(0, 20, 20)}
    found = features(tiny, images, ["conv2", "head"], pool="flat", whole=True)
    assert (found["conv2"].names, found["head"].names) == (("wide",), ("wide", "square"))
    assert "mean" in found["conv2"].failed["square"]


def test_progress_rises_to_1_and_can_cancel(tiny: Model) -> None:
    shares: list[float] = []
    features(tiny, [picture(), picture(1)], progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1

    class Cancelled(hookviz.HookVizError):
        """Not to be taken for a broken image."""

    told: list[float] = []

    def cancel(share: float) -> None:
        told.append(share)
        if len(told) == 2:
            raise Cancelled

    with pytest.raises(Cancelled):
        features(tiny, [picture(), picture(1)], progress=cancel)
    assert len(told) == 2
    assert hook_count(tiny.network) == 0


def test_npz_and_parquet_hold_the_vectors_and_where_they_come_from(tiny: Model) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    found = features(tiny, {"a.png": picture(), "b\udc80.png": picture(1)})
    with np.load(io.BytesIO(found.npz()), allow_pickle=False) as loaded:
        assert loaded["names"].tolist() == list(found.names)
        np.testing.assert_array_equal(loaded["vectors"], found.vectors)
        assert str(loaded["layer"]) == "conv2"
        assert str(loaded["digest"]) == tiny.digest
    table = parquet.read_table(io.BytesIO(found.parquet()))
    assert table["name"].to_pylist() == ["a.png", "b\\udc80.png"]
    np.testing.assert_array_equal(np.array(table["vector"].to_pylist(), "f4"), found.vectors)
    assert table.schema.metadata[b"layer"] == b"conv2"


def test_all_layers_come_of_one_pass_which_ends_at_the_last_of_them(tiny: Model) -> None:
    work = VectorWork(tiny, ("relu", "conv1"), "mean", None)
    images: dict[str, Any] = {"a": random_input(0), "b": torch.ones(1, 2, 16, 16)}
    (shard,) = image_shards(images.items(), 16)
    outcomes = work(shard, lambda done, left_out: None)
    assert work.names(shard) == ("a", "b")
    assert isinstance(outcomes["b"], hookviz.HookVizError)
    assert isinstance(outcomes["a"], tuple)
    with torch.no_grad():
        first = tiny.network.get_submodule("conv1")(random_input(0))
    for found, expected in zip(outcomes["a"], (first.relu(), first), strict=True):
        np.testing.assert_allclose(found, expected.mean((2, 3))[0].numpy(), rtol=1e-5, atol=1e-6)

    (shard,) = image_shards([("c", random_input(1))], 16)  # of a shape that has been traced
    work = VectorWork(tiny, ("conv2", "conv1"), "mean", None)
    with profile() as run:
        work(shard, lambda done, left_out: None)
    counts = {event.key: event.count for event in run.key_averages()}
    assert counts["aten::conv2d"] == 2  # and not 4
    assert "aten::linear" not in counts


@pytest.mark.parametrize("mixes", [False, True])
def test_images_of_a_batch_have_the_vectors_that_they_have_alone(
    tmp_path: Path, mixes: bool
) -> None:
    """Also where a batch norm takes its statistics from the batch, so that it is not used."""
    norm = nn.BatchNorm2d(4, track_running_stats=not mixes)
    conv = nn.Conv2d(3, 4, 3)
    model = hookviz.wrap(nn.Sequential(conv, norm, nn.ReLU()).eval())
    (tmp_path / "broken.png").write_bytes(encoded(picture())[:60])
    images: dict[str, Any] = {f"{seed}": random_input(seed) for seed in range(5)}
    images |= {"broken": tmp_path / "broken.png", "wide": torch.rand(1, 3, 16, 40)}
    (shard,) = image_shards(images.items(), 16)
    sizes: list[int] = []
    conv.register_forward_hook(lambda *call: sizes.append(len(call[2])))

    def vectors(*, in_batches: bool) -> dict[str, Any]:
        sizes.clear()
        work = VectorWork(model, ("0", "2"), "mean", None, in_batches=in_batches)
        return work(shard, lambda done, left_out: None)

    one_by_one = vectors(in_batches=False)
    assert set(sizes) == {1}
    together = vectors(in_batches=True)
    assert sizes.count(1) == (7 if mixes else 2)  # the proof, and the image of another shape
    assert max(sizes) == 5
    assert str(together.pop("broken")) == str(one_by_one.pop("broken"))
    for name, expected in one_by_one.items():
        for found, alone in zip(together[name], expected, strict=True):
            np.testing.assert_allclose(found, alone, rtol=1e-5, atol=1e-6)
