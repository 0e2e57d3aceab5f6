import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torchvision import models

import hookviz
from hookviz.models import architectures, catalog, networks
from hookviz.models.checkpoints.files import read_state_dict
from hookviz.models.networks import match
from hookviz.settings import settings
from hookviz.weights_digest import weights_digest
from tests.models.checkpoints.checkpoint_files import saved
from tests.models.state_dicts import (
    SMALL,
    State,
    built,
    prefixed,
    put_in,
    state_dict_mismatch,
)

WRAPPINGS: dict[str, Callable[[State], Any]] = {
    "bare": lambda state: state,
    "state_dict": lambda state: {"state_dict": state, "epoch": 3, "best": torch.tensor(1.0)},
    "model and optimizer": lambda state: {"model": state, "optimizer": {"state": {}}},
    "DataParallel": prefixed("module."),
    "compiled": prefixed("_orig_mod."),
    "compiled DataParallel": prefixed("module._orig_mod."),
    "Lightning": lambda state: {
        "state_dict": {**prefixed("model.")(state), "loss.weight": torch.ones(2)},
        "hyper_parameters": {"lr": 0.1},
    },
    "deeper": lambda state: {"net": {"params": prefixed("student.backbone.encoder.")(state)}},
    "averaged": lambda state: {**prefixed("module.")(state), "n_averaged": torch.tensor(3)},
    "normalised before": lambda state: {**prefixed("1.")(state), "0.mean": torch.ones(3)},
    "without counters": lambda state: {
        key: value for key, value in state.items() if "num_batches" not in key
    },
    "a part in parallel": lambda state: {
        re.sub(r"^(\w+)\.", r"\1.module.", key): value for key, value in state.items()
    },
}


@pytest.mark.parametrize("name", ["shapesnet", "mnasnet0_5"])
def test_every_wrapping_gives_the_same_network(name: str) -> None:
    network = built(name)
    state = network.state_dict()
    expected = weights_digest(network)
    assert weights_digest(put_in(name, state)) == expected
    for wrapping, wrap in WRAPPINGS.items():
        loaded = put_in(name, read_state_dict(saved(wrap(state)))).state_dict()
        counted = {key for key in loaded if "num_batches" in key}
        assert all(torch.equal(loaded[key], state[key]) for key in loaded if key not in counted), (
            wrapping
        )
        assert all(not loaded[key] for key in counted)
    safe = put_in(name, read_state_dict(safetensors.torch.save(state)))
    assert weights_digest(safe) == expected


def test_a_last_part_of_several_layers_does_not_fit() -> None:
    state = built("resnet18", 5).state_dict()
    for new in ("fc.1", "fc.head.0"):  # a last layer that was put in anew does
        renamed = {re.sub(r"^fc(?=\.)", new, key): value for key, value in state.items()}
        filled = put_in("resnet18", renamed).state_dict()
        assert torch.equal(filled["fc.weight"], state["fc.weight"])
    state = {key: value for key, value in state.items() if not key.startswith("fc.")}
    state |= {"fc.0.weight": torch.ones(64, 512), "fc.0.bias": torch.ones(64)}
    state |= {"fc.2.weight": torch.ones(5, 64), "fc.2.bias": torch.ones(5)}
    error = state_dict_mismatch("resnet18", state)
    assert error.missing == ("fc.weight", "fc.bias")
    assert len(error.unexpected) == 4


@pytest.mark.parametrize("heads", [True, False])
@pytest.mark.parametrize("name", ["googlenet", "inception_v3"])
def test_training_heads_may_be_in_the_file_or_not(name: str, heads: bool) -> None:
    outline = architectures.outline(name, 4, training_heads=heads)
    assert heads == any(key.casefold().startswith("aux") for key in outline)
    state = {key: torch.zeros(own.shape, dtype=own.dtype) for key, own in outline.items()}
    filled = put_in(name, state).eval()
    assert not any("aux" in child.casefold() for child, _ in filled.named_children())
    size = catalog.find_model(name).min_size
    assert filled(torch.zeros(1, 3, size, size)).shape == (1, 4)


@pytest.mark.parametrize("prefix", ["", "module."])
def test_the_older_spelling_of_densenets_files_is_read(prefix: str) -> None:
    outline = architectures.outline("densenet121", 1000)
    state = {key: torch.rand(own.shape) for key, own in outline.items() if "num_ba" not in key}
    old = {
        prefix + re.sub(r"(denselayer\d+\.(?:norm|relu|conv))([12]\.)", r"\1.\2", key): value
        for key, value in state.items()
    }
    assert f"{prefix}features.denseblock1.denselayer1.norm.1.weight" in old
    loaded = put_in("densenet121", old).state_dict()
    assert all(torch.equal(loaded[key], state[key]) for key in state)


@pytest.mark.parametrize("name", models.list_models(models.detection))
def test_a_detectors_own_weights_fit_it_with_any_number_of_classes(name: str) -> None:
    # RetinaNet and SSD have a row of their last layer for each class at each anchor.
    classes = architectures.spec_classes(name)
    for count in (classes, 7):
        matched = match(name, architectures.outline(name, count))
        assert not matched.faults
        assert matched.classes == count


@pytest.mark.parametrize("name", SMALL)
def test_a_network_filled_from_a_file_computes_what_the_saved_one_does(name: str) -> None:
    network = built(name, 7).eval()
    filled = put_in(name, network.state_dict()).eval()
    images = torch.randn(1, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(filled(images), network(images))
    assert architectures.classes_of(name, filled) == 7
    for dtype in (torch.float16, torch.bfloat16, torch.float64):  # which are converted
        state = {key: value.to(dtype) for key, value in network.state_dict().items()}
        filled = put_in(name, state)
        assert {parameter.dtype for parameter in filled.parameters()} == {torch.float32}
        weights = dict(filled.named_parameters()).items()
        assert all(torch.equal(value, state[key].float()) for key, value in weights)
    for classes in (1, 2, 999):
        filled = put_in(name, built(name, classes).state_dict())
        assert architectures.classes_of(name, filled) == classes


@pytest.fixture
def five_megabytes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HOOKVIZ_MODELS_MB", "5")
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()


@pytest.mark.usefixtures("five_megabytes")
def test_a_model_that_cannot_fit_is_refused_before_it_is_loaded(tmp_path: Path) -> None:
    for weights in ("random", "pretrained"):
        with pytest.raises(
            hookviz.ModelError,
            match=r"ResNet-18 takes 45 MB .* may take 5 MB .*\(HOOKVIZ_MODELS_MB\)\. .* fits\.",
        ):
            hookviz.load_model("resnet18", weights)
    (tmp_path / "many.pth").write_bytes(saved(built("squeezenet1_1", 3000).state_dict()))
    with pytest.raises(hookviz.ModelError, match=r"SqueezeNet 1\.1 takes 9 MB"):
        hookviz.load_model("squeezenet1_1", tmp_path / "many.pth")
    assert hookviz.load_model("squeezenet1_1", "random").weights == "random"


def test_random_weights_are_the_same_every_time_and_leave_torchs_generator_alone() -> None:
    torch.manual_seed(123)
    expected = torch.rand(3)
    torch.manual_seed(123)
    first, second = (hookviz.load_model("squeezenet1_1", "random") for _ in range(2))
    assert first.digest == second.digest
    assert first.weights == "random"
    assert torch.equal(torch.rand(3), expected)
    spec = catalog.find_model("shapesnet")
    before = weights_digest(networks.with_random_weights(spec))
    architectures.outline("shapesnet", 20)  # what was built before is nothing to them
    assert weights_digest(networks.with_random_weights(spec)) == before


def test_what_no_file_has_is_computed(tmp_path: Path) -> None:
    # timm keeps indices of relative positions in buffers that it leaves out of its files.
    name = "timm/levit_128s"
    network = hookviz.load_model(name, "random").network
    path = tmp_path / "levit.pth"
    torch.save(network.state_dict(), path)
    filled = hookviz.load_model(name, path).network
    images = torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(filled(images), network(images))


def test_what_does_not_fit_is_counted_and_the_first_three_are_named() -> None:
    state = built("shapesnet").state_dict()
    for number in range(4):
        state[f"extra{number}.weight"] = torch.ones(1)
    for key in ["stem.first.norm.weight", "stem.first.norm.running_mean"]:
        del state[key]
    state["stage1.first.conv.weight"] = torch.ones(48, 32, 5, 5)
    error = state_dict_mismatch("shapesnet", state)
    text = str(error)
    assert text.startswith("own.pth does not fit ShapesNet: 2 keys are missing (stem.first.norm.w")
    assert (
        "4 keys are not in the architecture (extra0.weight, extra1.weight, extra2.weight, …)"
        in text
    )
    assert (
        "1 key has another shape (stage1.first.conv.weight is (48, 32, 5, 5) and should be "
        "(48, 32, 3, 3))" in text
    )
    assert len(error.unexpected) == 4
    assert error.fits is None
    state = built("shapesnet").state_dict()
    state["head.weight"] = torch.ones_like(state["head.weight"], dtype=torch.int8)
    said = "head.weight holds int8, not floating point numbers"
    assert said in str(state_dict_mismatch("shapesnet", state))


@pytest.mark.parametrize(
    ("chosen", "name"),
    [
        ("resnet50", "resnet18"),
        ("squeezenet1_0", "squeezenet1_1"),
        ("mnasnet1_0", "mnasnet0_5"),
        ("resnet18", "shapesnet"),
        ("shapesnet", "regnet_y_400mf"),
    ],
)
@pytest.mark.parametrize("classes", [None, 3000])
def test_the_architecture_that_fits_is_named(chosen: str, name: str, classes: int | None) -> None:
    error = state_dict_mismatch(chosen, prefixed("module.")(built(name, classes).state_dict()))
    assert error.fits == name
    assert f"It fits {catalog.find_model(name).title}; choose that model." in str(error)


def test_the_likeliest_is_named_where_none_fits_wholly() -> None:
    state = built("resnet18").state_dict()
    del state["layer1.0.conv1.weight"]
    error = state_dict_mismatch("vgg11", state)
    assert error.fits is None
    assert "It is most like ResNet-18, which it does not fit either." in str(error)
    assert "most like" not in str(state_dict_mismatch("resnet18", state))
    else_ = {"encoder.weight": torch.ones(4, 4), "x": torch.ones(1)}
    error = state_dict_mismatch("resnet18", else_)
    assert (len(error.missing), error.unexpected) == (102, ("encoder.weight", "x"))
    assert "It fits" not in str(error)
