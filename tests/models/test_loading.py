from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torchvision import models

import hookviz
from hookviz.hooking.own_network import generators
from hookviz.models import architectures, catalog, loading, shapesnet
from hookviz.models.bundled import BUNDLED
from hookviz.settings import settings
from hookviz.weights_digest import weights_digest
from tests.models.checkpoints.checkpoint_files import saved
from tests.networks import seeded
from tests.pictures import picture
from tests.weights_server import WeightsServer, hashed_name


@pytest.fixture(autouse=True)
def own_torch_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    yield tmp_path / "torch" / "hub" / "checkpoints"
    monkeypatch.undo()
    settings.cache_clear()


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_a_checkpoint_is_the_same_by_path_and_by_upload(tmp_path: Path, suffix: str) -> None:
    network = seeded(models.squeezenet1_1)
    path = tmp_path / f"own{suffix}"
    if suffix == ".safetensors":
        save_file(network.state_dict(), path)
    else:
        torch.save({"state_dict": network.state_dict()}, path)
    model = hookviz.load_model("squeezenet1_1", path)
    uploaded = loading.load_checkpoint("squeezenet1_1", path.read_bytes(), path.name)
    assert model.digest == uploaded.digest == weights_digest(network.eval())
    assert model.weights == uploaded.weights == path.name
    assert model.categories[281] == "tabby"
    assert hookviz.load_model("squeezenet1_1", str(path)).digest == model.digest


def test_a_checkpoint_of_another_architecture_or_no_checkpoint_at_all(tmp_path: Path) -> None:
    state = saved(seeded(models.squeezenet1_0).state_dict())
    with pytest.raises(hookviz.WeightsError, match=r"^up\.pt does not .*fits SqueezeNet 1\.0; cho"):
        loading.load_checkpoint("squeezenet1_1", state, "up.pt")
    with pytest.raises(hookviz.WeightsError, match=r"^up\.pt can't be read as a checkpoint"):
        loading.load_checkpoint("squeezenet1_1", b"nothing", "up.pt")
    with pytest.raises(hookviz.WeightsError, match="There is no checkpoint 'pretraind'"):
        hookviz.load_model("squeezenet1_1", "pretraind")
    with pytest.raises(hookviz.UnknownModelError):
        loading.load_checkpoint("squeezenett", state, "up.pt")


def three_classes() -> bytes:
    return saved(seeded(lambda: shapesnet.ShapesNet(3)).state_dict())


def test_labels_come_along_in_any_form(tmp_path: Path) -> None:
    path = tmp_path / "labels.txt"
    path.write_text("cat\ndog\nowl\n")
    forms: list[Any] = [path, str(path), path.read_bytes(), ["cat", "dog", "owl"]]
    for labels in forms:
        model = loading.load_checkpoint("shapesnet", three_classes(), "own.pth", labels=labels)
        assert model.categories == ("cat", "dog", "owl")
        assert {label for label, _ in hookviz.capture(model, picture()).predictions()} == {
            "cat",
            "dog",
            "owl",
        }
    upper = [label.upper() for label in shapesnet.CATEGORIES]
    assert hookviz.load_model("shapesnet", labels=upper).categories[0] == "CIRCLE"
    model = loading.load_checkpoint("shapesnet", three_classes(), "own.pth")
    assert model.categories == ()  # of another class count
    assert hookviz.capture(model, picture()).predictions(1)[0][0].startswith("class ")


def test_a_wrong_number_of_labels_says_both_counts(tmp_path: Path) -> None:
    path = tmp_path / "birds.txt"
    path.write_text("cat\ndog\n")
    with pytest.raises(hookviz.WeightsError, match=r"^Birds\.txt has 2 labels.* has 3 classes"):
        loading.load_checkpoint("shapesnet", three_classes(), "own.pth", labels=path)
    with pytest.raises(hookviz.WeightsError, match=r"^The list of labels has 1 .* 20 classes"):
        hookviz.load_model("shapesnet", labels=["one"])


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WeightsServer]:
    """A mirror on loopback, named by the setting."""
    with WeightsServer() as weights:
        monkeypatch.setenv("HOOKVIZ_WEIGHTS_URL", weights.url)
        settings.cache_clear()
        yield weights


def test_pretrained_weights_are_downloaded_once_with_progress(
    server: WeightsServer, own_torch_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = seeded(models.squeezenet1_1).state_dict()
    body = saved(state)
    name = hashed_name(body, "squeezenet1_1")
    url = server.add(name, body)
    monkeypatch.setattr(catalog, "weights_url", lambda _: url)
    told: list[int] = []
    model = hookviz.load_model(
        "squeezenet1_1", progress=lambda progress: told.append(progress.received)
    )
    loaded = model.network.state_dict()
    assert all(torch.equal(loaded[key], state[key]) for key in state)
    assert model.weights == "pretrained"
    assert (own_torch_home / name).read_bytes() == body
    assert told[-1] == len(body)
    assert hookviz.load_model("squeezenet1_1").digest == model.digest
    assert len([request for request in server.requests if request.method == "GET"]) == 1


def test_weights_with_a_wrong_hash_are_refused_and_leave_nothing(
    server: WeightsServer, own_torch_home: Path
) -> None:
    wanted = r"SqueezeNet 1\.1 \(5 MB\).*404.*Random weights and the bundled models work without"
    with pytest.raises(hookviz.WeightsError, match=wanted):  # where they are not there
        hookviz.load_model("squeezenet1_1")
    server.add("squeezenet1_1-b8a52dc0.pth", saved(seeded(models.squeezenet1_1).state_dict()))
    wanted = r"^The pretrained weights of SqueezeNet 1\.1 \(5 MB\) can't be had: .*Random weights"
    with pytest.raises(hookviz.WeightsError, match=wanted):
        hookviz.load_model("squeezenet1_1")
    assert list(own_torch_home.iterdir()) == []


@pytest.mark.parametrize("body", [b"", b"broken", saved({"a": torch.ones(1)})])
def test_a_bad_file_among_the_downloads_is_named(own_torch_home: Path, body: bytes) -> None:
    own_torch_home.mkdir(parents=True)
    path = catalog.weights_path("squeezenet1_1")
    path.write_bytes(body)
    with pytest.raises(
        hookviz.WeightsError, match=r"can't be used from .*`hookviz fetch --check`"
    ) as e:
        hookviz.load_model("squeezenet1_1")
    assert str(path) in str(e.value)


def test_the_first_of_several_networks_in_a_file_is_named(tmp_path: Path) -> None:
    first = hookviz.load_model("shapesnet").network.state_dict()
    second = hookviz.load_model("shapesnet", "random").network.state_dict()
    flat = {f"student.{key}": tensor for key, tensor in first.items()}
    flat |= {f"teacher.{key}": tensor for key, tensor in second.items()}
    for number, content in enumerate(({"student": first, "teacher": second}, flat)):
        path = tmp_path / f"{number}.pth"
        torch.save(content, path)
        model = hookviz.load_model("shapesnet", path)
        assert "'student' was taken. load_model(…, key='teacher')" in model.note
        assert hookviz.capture(model, "assets/samples/cat.jpg").note == model.note
        other = hookviz.load_model("shapesnet", path, key="teacher")
        assert other.note == ""
        assert other.digest == hookviz.load_model("shapesnet", "random").digest != model.digest
        uploaded = loading.load_checkpoint("shapesnet", path.read_bytes(), path.name)
        assert uploaded.note == model.note
    with pytest.raises(hookviz.WeightsError, match="key='teacher' is for the path"):
        hookviz.load_model("shapesnet", key="teacher")


def test_the_cpu_is_always_there() -> None:
    model = hookviz.load_model("shapesnet")
    assert not model.network.training
    assert not any(parameter.requires_grad for parameter in model.network.parameters())
    assert (model.weights, len(model.categories)) == ("pretrained", 20)
    assert loading.list_devices()[-1] == "cpu"
    assert loading.find_device("cpu") == loading.find_device(" CPU ") == torch.device("cpu")
    assert str(loading.find_device("auto")) == loading.list_devices()[0]
    model = hookviz.load_model("shapesnet", device="auto")
    assert str(next(model.network.parameters()).device) == loading.list_devices()[0]


@pytest.mark.parametrize("device", ["tpu", "cuda:99", "cpu:1", "", "meta"])
def test_a_device_that_is_not_there_is_refused_with_those_that_are(device: str) -> None:
    with pytest.raises(hookviz.ModelError, match=rf"no device '{device}' here; there is .*cpu"):
        hookviz.load_model("shapesnet", device=device)
    with pytest.raises(hookviz.ModelError, match="Half precision is for GPUs"):
        hookviz.load_model("shapesnet", device="cpu", half=True)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_a_gpu_computes_and_half_precision_is_a_choice() -> None:
    whole = hookviz.load_model("shapesnet", device="cuda")
    half = hookviz.load_model("shapesnet", device="cuda:0", half=True)
    assert next(whole.network.parameters()).dtype == torch.float32
    assert next(half.network.parameters()).dtype == torch.float16
    assert next(half.network.parameters()).device == torch.device("cuda:0")
    assert whole.digest == hookviz.load_model("shapesnet").digest != half.digest


@pytest.mark.parametrize("name", [*BUNDLED, "ssdlite320_mobilenet_v3_large"])
def test_loading_leaves_the_random_generators_alone(name: str, tmp_path: Path) -> None:
    weights: Any = "pretrained"
    if name not in BUNDLED:
        weights = tmp_path / "weights.pth"
        torch.save(hookviz.load_model(name, "random").network.state_dict(), weights)
    architectures.outline.cache_clear()
    before = generators()
    hookviz.load_model(name, weights)
    assert generators() == before
