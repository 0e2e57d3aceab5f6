import hashlib
import io
import pickle
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torchvision import models

import hookviz
from hookviz import catalog, loading
from hookviz.settings import settings
from tests.conftest import Tiny, random_input, seeded


@pytest.fixture(autouse=True)
def own_torch_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    yield tmp_path / "torch" / "hub" / "checkpoints"
    settings.cache_clear()


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
def test_a_checkpoint_of_either_kind_is_loaded(tmp_path: Path, suffix: str) -> None:
    state = models.mnasnet0_5().state_dict()  # this architecture looks at its file's version
    path = tmp_path / f"own{suffix}"
    save_file(state, path) if suffix == ".safetensors" else torch.save(state, path)
    model = hookviz.load_model("mnasnet0_5", path)
    assert model.weights == path.name
    loaded = model.network.state_dict()
    assert all(torch.equal(loaded[key], state[key]) for key in state)


def test_the_older_spelling_of_densenets_files_is_read(tmp_path: Path) -> None:
    state = models.densenet121().state_dict()
    old = {
        re.sub(r"(denselayer\d+\.(?:norm|relu|conv))([12]\.)", r"\1.\2", key): value
        for key, value in state.items()
        if not key.endswith("num_batches_tracked")
    }
    assert "features.denseblock1.denselayer1.norm.1.weight" in old
    torch.save(old, tmp_path / "old.pth")
    loaded = hookviz.load_model("densenet121", tmp_path / "old.pth").network.state_dict()
    assert all(torch.equal(loaded[key], state[key]) for key in state if "num_batches" not in key)


def test_what_does_not_fit_is_listed(tmp_path: Path) -> None:
    state = seeded(models.squeezenet1_1).state_dict()
    state["extra"] = torch.zeros(1)
    del state["features.0.bias"]
    torch.save(state, tmp_path / "odd.pth")
    with pytest.raises(hookviz.WeightsError, match=r"features\.0\.bias is missing; extra is not"):
        hookviz.load_model("squeezenet1_1", tmp_path / "odd.pth")
    state = seeded(models.squeezenet1_0).state_dict()
    torch.save(state, tmp_path / "other.pth")
    with pytest.raises(hookviz.WeightsError, match=r"features\.0\.weight is \(96, 3, 7, 7\) and"):
        hookviz.load_model("squeezenet1_1", tmp_path / "other.pth")


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (pytest.fail, ("a pickle was executed",))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "can't be read as a checkpoint"),
        (b"not a checkpoint at all", "can't be read as a checkpoint"),
        (pickle.dumps({"weight": Bomb()}, protocol=2), "can't be read as a checkpoint"),
    ],
)
@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
def test_a_file_that_is_no_checkpoint_is_refused(
    tmp_path: Path, content: bytes, reason: str, suffix: str
) -> None:
    path = tmp_path / f"broken{suffix}"
    path.write_bytes(content)
    with pytest.raises(hookviz.WeightsError, match=f"broken{suffix} {reason}"):
        hookviz.load_model("squeezenet1_1", path)


def test_no_file_and_no_state_dict(tmp_path: Path) -> None:
    with pytest.raises(hookviz.WeightsError, match="no checkpoint"):
        hookviz.load_model("squeezenet1_1", "pretraind")
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(hookviz.WeightsError, match="holds list, not a state dict"):
        hookviz.load_model("squeezenet1_1", tmp_path / "list.pth")


class Mirror(BaseHTTPRequestHandler):
    files: ClassVar[dict[str, bytes]] = {}

    def do_GET(self) -> None:
        body = self.files.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, bytes]]:
    """A web server on loopback, named by the setting; fill the dict to let it serve files."""
    Mirror.files = {}
    with ThreadingHTTPServer(("127.0.0.1", 0), Mirror) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("HOOKVIZ_WEIGHTS_URL", f"http://127.0.0.1:{server.server_port}/w/")
        settings.cache_clear()
        yield Mirror.files
        server.shutdown()
        thread.join()


def saved(state: dict[str, torch.Tensor]) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


def test_pretrained_weights_are_downloaded_checked_and_kept(
    mirror: dict[str, bytes], own_torch_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = models.squeezenet1_1().state_dict()
    body = saved(state)
    name = f"squeezenet1_1-{hashlib.sha256(body).hexdigest()[:8]}.pth"
    url = catalog.weights_url("squeezenet1_1").replace("squeezenet1_1-b8a52dc0.pth", name)
    monkeypatch.setattr(catalog, "weights_url", lambda _: url)
    mirror[f"/w/{name}"] = body
    model = hookviz.load_model("squeezenet1_1")
    loaded = model.network.state_dict()
    assert all(torch.equal(loaded[key], state[key]) for key in state)
    assert (own_torch_home / name).read_bytes() == body
    mirror.clear()
    assert hookviz.load_model("squeezenet1_1").digest == model.digest  # from disk


def test_weights_with_a_wrong_hash_are_refused_and_leave_nothing(
    mirror: dict[str, bytes], own_torch_home: Path
) -> None:
    mirror["/w/squeezenet1_1-b8a52dc0.pth"] = saved(models.squeezenet1_1().state_dict())
    with pytest.raises(hookviz.WeightsError, match="invalid hash value"):
        hookviz.load_model("squeezenet1_1")
    assert list(own_torch_home.iterdir()) == []


@pytest.mark.usefixtures("mirror")
def test_weights_that_are_not_there_say_what_works() -> None:
    with pytest.raises(hookviz.WeightsError, match=r"SqueezeNet 1\.1 \(5 MB\).*404.*Random"):
        hookviz.load_model("squeezenet1_1")


def test_an_unknown_device_says_so() -> None:
    with pytest.raises(hookviz.ModelError, match="'gpu' can't be used"):
        hookviz.load_model("shapesnet", device="gpu")


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
