import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn
from torchvision import models

import hookviz
from hookviz.models import architectures, bundled, catalog, checkpoints, loading
from hookviz.settings import settings
from tests.conftest import seeded

State = dict[str, Tensor]

SMALL: dict[str, Callable[..., nn.Module]] = {
    "shapesnet": bundled.ShapesNet,
    "squeezenet1_1": models.squeezenet1_1,
    "mnasnet0_5": models.mnasnet0_5,  # looks at the version of its file
    "regnet_y_400mf": models.regnet_y_400mf,  # computes its widths with tensors
    "resnet18": models.resnet18,
}


def built(name: str, classes: int | None = None) -> nn.Module:
    if classes is None:
        return seeded(SMALL[name])
    option = "classes" if name == "shapesnet" else "num_classes"
    return seeded(lambda: SMALL[name](**{option: classes}))


def saved(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def prefixed(prefix: str) -> Callable[[State], State]:
    return lambda state: {prefix + key: value for key, value in state.items()}


def put_in(name: str, state: State) -> nn.Module:
    return architectures.with_weights(catalog.find_model(name), state, "own.pth")


def misfit(name: str, state: State) -> architectures.MisfitError:
    with pytest.raises(architectures.MisfitError) as caught:
        put_in(name, state)
    return caught.value


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


@pytest.mark.parametrize("name", SMALL)
def test_every_wrapping_gives_the_same_network(name: str) -> None:
    network = built(name)
    state = network.state_dict()
    expected = loading.weights_digest(network)
    assert loading.weights_digest(put_in(name, state)) == expected
    for wrapping, wrap in WRAPPINGS.items():
        loaded = put_in(name, checkpoints.read(saved(wrap(state)))).state_dict()
        counted = {key for key in loaded if "num_batches" in key}
        assert all(torch.equal(loaded[key], state[key]) for key in loaded if key not in counted), (
            wrapping
        )
        assert all(not loaded[key] for key in counted)
    safe = put_in(name, checkpoints.read(safetensors.torch.save(state)))
    assert loading.weights_digest(safe) == expected


@pytest.mark.parametrize("name", SMALL)
def test_a_network_filled_from_a_file_computes_what_the_saved_one_does(name: str) -> None:
    network = built(name, 7).eval()
    filled = put_in(name, network.state_dict()).eval()
    images = torch.randn(1, 3, 96, 96, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        assert torch.equal(filled(images), network(images))
    assert architectures.classes_of(name, filled) == 7


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_floating_point_types_are_converted(dtype: torch.dtype) -> None:
    network = built("shapesnet").to(dtype)
    filled = put_in("shapesnet", network.state_dict())
    assert {parameter.dtype for parameter in filled.parameters()} == {torch.float32}
    assert torch.equal(filled.head.weight, network.head.weight.float())  # type: ignore[arg-type, union-attr]


@pytest.mark.parametrize("classes", [1, 2, 999])
def test_any_class_count_is_taken(classes: int) -> None:
    filled = put_in("squeezenet1_1", built("squeezenet1_1", classes).state_dict())
    assert architectures.classes_of("squeezenet1_1", filled) == classes


@pytest.mark.parametrize("new", ["fc.1", "fc.head.0"])
def test_a_last_layer_that_was_put_in_anew_is_found(new: str) -> None:
    state = built("resnet18", 5).state_dict()
    renamed = {re.sub(r"^fc(?=\.)", new, key): value for key, value in state.items()}
    assert torch.equal(put_in("resnet18", renamed).state_dict()["fc.weight"], state["fc.weight"])


def test_a_last_part_of_several_layers_does_not_fit() -> None:
    state = built("resnet18").state_dict()
    state = {key: value for key, value in state.items() if not key.startswith("fc.")}
    state |= {"fc.0.weight": torch.ones(64, 512), "fc.0.bias": torch.ones(64)}
    state |= {"fc.2.weight": torch.ones(5, 64), "fc.2.bias": torch.ones(5)}
    error = misfit("resnet18", state)
    assert error.missing == ("fc.weight", "fc.bias")
    assert len(error.unexpected) == 4


@pytest.mark.parametrize("heads", [True, False])
@pytest.mark.parametrize("name", ["googlenet", "inception_v3"])
def test_training_heads_may_be_in_the_file_or_not(name: str, heads: bool) -> None:
    outline = architectures._outline(name, 4, training_heads=heads)
    assert heads == any(key.casefold().startswith("aux") for key in outline)
    state = {key: torch.zeros(own.shape, dtype=own.dtype) for key, own in outline.items()}
    filled = put_in(name, state).eval()
    assert not any("aux" in child.casefold() for child, _ in filled.named_children())
    size = catalog.find_model(name).min_size
    assert filled(torch.zeros(1, 3, size, size)).shape == (1, 4)


@pytest.mark.parametrize("prefix", ["", "module."])
def test_the_older_spelling_of_densenets_files_is_read(prefix: str) -> None:
    outline = architectures._outline("densenet121", 1000)
    state = {key: torch.rand(own.shape) for key, own in outline.items() if "num_ba" not in key}
    old = {
        prefix + re.sub(r"(denselayer\d+\.(?:norm|relu|conv))([12]\.)", r"\1.\2", key): value
        for key, value in state.items()
    }
    assert f"{prefix}features.denseblock1.denselayer1.norm.1.weight" in old
    loaded = put_in("densenet121", old).state_dict()
    assert all(torch.equal(loaded[key], state[key]) for key in state)


def test_what_does_not_fit_is_counted_and_the_first_three_are_named() -> None:
    state = built("shapesnet").state_dict()
    for number in range(4):
        state[f"extra{number}.weight"] = torch.ones(1)
    for key in ["stem.first.norm.weight", "stem.first.norm.running_mean"]:
        del state[key]
    state["stage1.first.conv.weight"] = torch.ones(48, 32, 5, 5)
    error = misfit("shapesnet", state)
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


def test_whole_numbers_are_no_weights() -> None:
    state = built("shapesnet").state_dict()
    state["head.weight"] = torch.ones_like(state["head.weight"], dtype=torch.int8)
    assert "head.weight holds int8, not floating point numbers" in str(misfit("shapesnet", state))


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
@pytest.mark.parametrize("classes", [None, 2, 3000])
def test_the_architecture_that_fits_is_named(chosen: str, name: str, classes: int | None) -> None:
    error = misfit(chosen, prefixed("module.")(built(name, classes).state_dict()))
    assert error.fits == name
    assert f"It fits {catalog.find_model(name).title}; choose that model." in str(error)


def test_the_likeliest_is_named_where_none_fits_wholly() -> None:
    state = built("resnet18").state_dict()
    del state["layer1.0.conv1.weight"]
    error = misfit("vgg11", state)
    assert error.fits is None
    assert "It is most like ResNet-18, which it does not fit either." in str(error)
    assert "most like" not in str(misfit("resnet18", state))


def test_a_state_dict_of_something_else_fits_nothing() -> None:
    error = misfit("resnet18", {"encoder.weight": torch.ones(4, 4), "x": torch.ones(1)})
    assert len(error.missing) == 102
    assert error.unexpected == ("encoder.weight", "x")
    assert "It fits" not in str(error)


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


def test_random_weights_do_not_depend_on_what_was_built_before() -> None:
    spec = catalog.find_model("shapesnet")
    first = loading.weights_digest(architectures.with_random_weights(spec))
    architectures._outline("shapesnet", 20)
    assert loading.weights_digest(architectures.with_random_weights(spec)) == first
