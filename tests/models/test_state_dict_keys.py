import re
from collections.abc import Callable
from typing import Any

import pytest
import safetensors.torch
import torch
from torchvision import models

from hookviz.models import architectures, catalog
from hookviz.models.checkpoints.reading import read_state_dict
from hookviz.models.state_dict_keys import match
from hookviz.weights_digest import weights_digest
from tests.models.checkpoints.checkpoint_files import saved
from tests.models.state_dicts import (
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
