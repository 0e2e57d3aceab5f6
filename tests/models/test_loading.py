import io
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torchvision import models

import hookviz
from hookviz.models import bundled, catalog, loading
from hookviz.models.fetching import downloads
from hookviz.settings import settings
from tests.conftest import Tiny, picture, random_input, seeded
from tests.weights_server import WeightsServer, hashed_name


@pytest.fixture(autouse=True)
def own_torch_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    yield tmp_path / "torch" / "hub" / "checkpoints"
    monkeypatch.undo()
    settings.cache_clear()


def saved(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def test_a_loaded_model_is_frozen_and_in_eval_mode() -> None:
    model = hookviz.load_model("shapesnet")
    assert not model.network.training
    assert not any(parameter.requires_grad for parameter in model.network.parameters())
    assert (model.weights, len(model.categories)) == ("pretrained", 20)


def test_random_weights_are_the_same_every_time_and_leave_torchs_generator_alone() -> None:
    torch.manual_seed(123)
    expected = torch.rand(3)
    torch.manual_seed(123)
    first, second = (hookviz.load_model("squeezenet1_1", "random") for _ in range(2))
    assert first.digest == second.digest
    assert first.weights == "random"
    assert torch.equal(torch.rand(3), expected)


def test_digests_tell_weights_apart() -> None:
    networks = [seeded(Tiny), seeded(Tiny)]
    one, same = map(loading.weights_digest, networks)
    with torch.no_grad():
        networks[1].head.bias[0] += 1e-6
    assert one == same != loading.weights_digest(networks[1])


@pytest.mark.parametrize("name", ["googlenet", "inception_v3"])
def test_training_heads_are_gone(name: str) -> None:
    model = hookviz.load_model(name, "random")
    assert not any("aux" in child.casefold() for child, _ in model.network.named_children())
    size = model.min_size
    assert model.network(torch.zeros(1, 3, size, size)).shape == (1, 1000)


def test_preprocessing_is_that_of_the_weights() -> None:
    model = hookviz.load_model("efficientnet_b0", "random")
    assert model.preprocess == hookviz.Preprocess(
        resize=256, crop=224, interpolation="bicubic", antialias=True
    )
    assert model.categories[281] == "tabby"


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
    assert model.digest == uploaded.digest == loading.weights_digest(network)
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
        loading.load_checkpoint("squeezenet", state, "up.pt")


# Labels


def three_classes() -> bytes:
    return saved(seeded(lambda: bundled.ShapesNet(3)).state_dict())


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
    assert hookviz.load_model("shapesnet", labels=map_to_upper()).categories[0] == "CIRCLE"


def map_to_upper() -> list[str]:
    return [label.upper() for label in bundled.CATEGORIES]


def test_another_class_count_has_no_labels_unless_they_are_given() -> None:
    model = loading.load_checkpoint("shapesnet", three_classes(), "own.pth")
    assert model.categories == ()
    assert hookviz.capture(model, picture()).predictions(1)[0][0].startswith("class ")


def test_a_wrong_number_of_labels_says_both_counts(tmp_path: Path) -> None:
    path = tmp_path / "birds.txt"
    path.write_text("cat\ndog\n")
    with pytest.raises(hookviz.WeightsError, match=r"^Birds\.txt has 2 labels.* has 3 classes"):
        loading.load_checkpoint("shapesnet", three_classes(), "own.pth", labels=path)
    with pytest.raises(hookviz.WeightsError, match=r"^The list of labels has 1 .* 20 classes"):
        hookviz.load_model("shapesnet", labels=["one"])


# Pretrained weights


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
    server.add("squeezenet1_1-b8a52dc0.pth", saved(seeded(models.squeezenet1_1).state_dict()))
    wanted = r"^The pretrained weights of SqueezeNet 1\.1 \(5 MB\) can't be had: .*Random weights"
    with pytest.raises(hookviz.WeightsError, match=wanted):
        hookviz.load_model("squeezenet1_1")
    assert list(own_torch_home.iterdir()) == []


@pytest.mark.usefixtures("server")
def test_weights_that_are_not_there_say_what_works() -> None:
    wanted = r"SqueezeNet 1\.1 \(5 MB\).*404.*Random weights and the bundled model work without"
    with pytest.raises(hookviz.WeightsError, match=wanted):
        hookviz.load_model("squeezenet1_1")


def test_what_progress_raises_ends_the_loading(server: WeightsServer, own_torch_home: Path) -> None:
    class Enough(BaseException):
        pass

    def stop(_: downloads.Progress) -> None:
        raise Enough

    server.add("squeezenet1_1-b8a52dc0.pth", bytes(200_000))
    with pytest.raises(Enough):
        hookviz.load_model("squeezenet1_1", progress=stop)
    assert not catalog.is_on_disk("squeezenet1_1")


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


# Devices


def test_the_cpu_is_always_there() -> None:
    assert loading.list_devices()[-1] == "cpu"
    assert loading.find_device("cpu") == loading.find_device(" CPU ") == torch.device("cpu")
    assert str(loading.find_device("auto")) == loading.list_devices()[0]
    model = hookviz.load_model("shapesnet", device="auto")
    assert str(next(model.network.parameters()).device) == loading.list_devices()[0]


@pytest.mark.parametrize("device", ["tpu", "cuda:99", "cpu:1", "", "meta"])
def test_a_device_that_is_not_there_is_refused_with_those_that_are(device: str) -> None:
    with pytest.raises(hookviz.ModelError, match=rf"no device '{device}' here; there is .*cpu"):
        hookviz.load_model("shapesnet", device=device)


def test_half_precision_is_for_gpus() -> None:
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


# Networks of one's own


def test_wrap_takes_a_copy() -> None:
    module = seeded(Tiny).train()
    model = hookviz.wrap(module, categories=["a", "b"])
    before = hookviz.capture(model, random_input(1))["conv1"].values
    with torch.no_grad():
        module.conv1.weight.zero_()
    assert torch.equal(hookviz.capture(model, random_input(1))["conv1"].values, before)
    assert module.training
    assert all(parameter.requires_grad for parameter in module.parameters())
    assert model.categories == ("a", "b")


def test_wrap_refuses_what_is_no_module() -> None:
    with pytest.raises(hookviz.ModelError, match="not function"):
        hookviz.wrap(saved)  # type: ignore[arg-type]

    class Locked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Lock()

    with pytest.raises(hookviz.ModelError, match="Locked can't be copied"):
        hookviz.wrap(Locked())


def test_wrap_gives_a_model_back(tiny: hookviz.Model) -> None:
    assert hookviz.wrap(tiny) is tiny
    changed = hookviz.wrap(tiny, categories=["a"], name="mine")
    assert (changed.categories, changed.name, changed.title) == (("a",), "mine", "mine")
    assert changed.network is tiny.network
    assert changed.preprocess is tiny.preprocess


def pooled(channels: int) -> Callable[[], nn.Module]:
    return lambda: nn.Sequential(
        nn.Conv2d(channels, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
    )


def digits() -> nn.Module:
    """A LeNet: it takes 28×28 and nothing else."""
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 10)),
    )


def test_the_first_conv_layer_says_how_many_channels_a_network_takes() -> None:
    colour, grey = (hookviz.wrap(seeded(pooled(channels))) for channels in (3, 1))
    assert colour.preprocess == hookviz.Preprocess(resize=256, crop=224)
    assert grey.preprocess == hookviz.Preprocess(resize=256, crop=224, mean=(0.5,), std=(0.5,))
    seen = hookviz.capture(grey, picture())
    assert seen.input.shape == (1, 1, 224, 224)
    assert seen["0"].values.shape == (4, 222, 222)
    assert -1 <= seen.input.min() < seen.input.max() <= 1


def test_a_network_of_one_size_is_looked_at_in_that_size() -> None:
    model = hookviz.wrap(seeded(digits))
    assert model.preprocess == hookviz.Preprocess(resize=28, crop=28, mean=(0.5,), std=(0.5,))
    assert [layer.output_shape for layer in hookviz.list_layers(model)] == [
        (6, 28, 28),
        (16, 10, 10),
    ]
    assert len(hookviz.capture(model, picture()).predictions(3)) == 3


def test_other_channel_counts_take_tensors_and_say_so() -> None:
    model = hookviz.wrap(seeded(pooled(5)))
    assert [layer.input_shape for layer in hookviz.list_layers(model)] == [(5, 224, 224)]
    with pytest.raises(hookviz.HookVizError, match=r"takes 5 channels.*tensor"):
        hookviz.capture(model, picture())
    assert hookviz.capture(model, torch.randn(5, 40, 40))["0"].values.shape == (4, 38, 38)

    def five(image: Any) -> Tensor:
        return torch.ones(5, *reversed(image.size))

    own = hookviz.wrap(seeded(pooled(5)), five)
    assert hookviz.capture(own, picture())["0"].values.shape == (4, 28, 38)


def test_a_networks_own_failures_leave_the_usual_preprocess() -> None:
    class Never(nn.Module):
        def forward(self, _: Tensor) -> Tensor:
            raise LookupError

    assert hookviz.wrap(Never()).preprocess == hookviz.Preprocess(resize=256, crop=224)
