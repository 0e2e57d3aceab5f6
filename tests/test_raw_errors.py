"""What a person may well give by mistake: one sentence each, and what just works."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torchvision.models import ResNet18_Weights, ResNet50_Weights

import hookviz
from hookviz.models import loading, networks
from tests.networks import random_input
from tests.pictures import picture

SAMPLES = Path(__file__).parent.parent / "assets" / "samples"
IMAGE = random_input(0)


def nested() -> torch.Tensor:
    return torch.nested.nested_tensor([torch.zeros(3, 4, 4), torch.zeros(3, 5, 5)])


hv: Any = hookviz  # for what its types would not let pass
MISTAKES: dict[str, tuple[Callable[[hookviz.Model], Any], str]] = {
    "sparse input": (lambda m: hv.capture(m, IMAGE.to_sparse()), "sparse tensor.*to_dense"),
    "nested input": (lambda m: hv.capture(m, nested()), "is a nested tensor"),
    "meta input": (lambda m: hv.capture(m, IMAGE.to("meta")), "without values"),
    "layer by number": (lambda m: hv.capture(m, IMAGE, [0]), r"layers=\[0\].*'conv1'"),
    "one number": (lambda m: hv.capture(m, IMAGE, 5), "layers=5: a layer goes by its name"),
    "feature layer": (lambda m: hv.extract_features(m, IMAGE, 0), "called '0'"),
    "lens layer": (lambda m: hv.run_lens("grad-cam", m, IMAGE, layer=0), "'0'"),
    "size as text": (
        lambda m: hv.capture(m, picture(), size="64"),
        "size='64' is not",
    ),
    "size of a tensor": (lambda m: hv.capture(m, IMAGE, size=64), "size=64 is for images"),
    "whole tensor": (lambda m: hv.prepare(m, IMAGE, whole=True), "whole=True is for images"),
    "size of an input": (
        lambda m: hv.capture(m, hv.prepare(m, IMAGE), size=64),
        "a ModelInput is used as it is",
    ),
    "number of images": (lambda m: hv.extract_features(m, 5), "images=5 is no image"),
    "more images": (lambda m: hv.run_lens("embedding", m, IMAGE, images=5), "images=.*5.*not"),
    "channels": (
        lambda m: hv.run_lens("ablate", m, IMAGE, channels=1.5),
        "channels=1.5 is",
    ),
    "weights": (lambda m: hv.load_model("shapesnet", None), "weights=None is none of"),
    "other weights": (
        lambda m: hv.load_model("resnet18", ResNet50_Weights.DEFAULT),
        "ResNet50_Weights.* are not the weights that ResNet-18 comes with",
    ),
    "watch": (lambda m: hv.watch(m.name).__enter__(), "watch takes a torch.nn.Module"),
}


@pytest.mark.parametrize(("mistake", "reason"), MISTAKES.values(), ids=MISTAKES)
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_a_mistake_is_told_in_a_sentence(
    mistake: Callable[[hookviz.Model], Any], reason: str, tiny: hookviz.Model
) -> None:
    with pytest.raises(hookviz.HookVizError) as told:
        mistake(tiny)
    assert re.search(reason, str(told.value)), told.value
    assert "\n" not in str(told.value)


def test_one_channel_is_a_number(tiny: hookviz.Model) -> None:
    one = hookviz.run_lens("ablate", tiny, IMAGE, channels=0)
    text = hookviz.run_lens("ablate", tiny, IMAGE, channels="0")
    assert one.chosen["channels"] == text.chosen["channels"] == (0,)


def test_an_image_given_by_two_paths_counts_twice(tiny: hookviz.Model) -> None:
    path = SAMPLES / "star.jpg"
    found = hookviz.extract_features(tiny, [path, path.parent / ".." / "samples" / "star.jpg"])
    assert found.names == ("star.jpg", "star.jpg (2)")


def test_torchs_own_words_for_device_and_weights_work(monkeypatch: pytest.MonkeyPatch) -> None:
    model = hookviz.load_model("shapesnet", device=torch.device("cpu"))
    assert next(model.network.parameters()).device == torch.device("cpu")
    asked: list[str] = []

    def pretrained(spec: hookviz.ModelSpec, _progress: Any) -> torch.nn.Module:
        asked.append(spec.name)
        return networks.with_random_weights(spec)

    monkeypatch.setattr(loading, "_pretrained", pretrained)
    for weights in (ResNet18_Weights.DEFAULT, ResNet18_Weights.IMAGENET1K_V1):
        assert hookviz.load_model("resnet18", weights).weights == "pretrained"
    assert asked == ["resnet18", "resnet18"]
