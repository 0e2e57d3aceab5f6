from collections.abc import Callable
from typing import Any

import pytest
import timm
import torch
from segmentation_models_pytorch import Unet
from torch import Tensor, nn
from torchvision.models import resnet18
from torchvision.models.segmentation import lraspp_mobilenet_v3_large
from transformers import (
    CLIPVisionConfig,
    CLIPVisionModel,
    ResNetConfig,
    ResNetForImageClassification,
    ResNetModel,
)

import hookviz
from hookviz.models.stated_output import stated_output
from tests.networks import Tiny


def _headless() -> nn.Module:
    network: nn.Module = resnet18()
    network.fc = nn.Identity()
    return network


def _hugging_face(**options: Any) -> nn.Module:
    config = ResNetConfig(embedding_size=4, hidden_sizes=[4], depths=[1], **options)
    network: nn.Module = ResNetForImageClassification(config)
    return network


@pytest.mark.parametrize(
    ("build", "kind"),
    [
        (Tiny, ""),
        (resnet18, "logits"),
        (_headless, "embedding"),
        (lambda: nn.Sequential(Tiny(), nn.Softmax(1)), "probabilities"),
        (lambda: nn.Sequential(Tiny(), nn.Sigmoid()), "probabilities"),
        (lambda: nn.Sequential(Tiny(), nn.LogSoftmax(1)), "logits"),
        (lambda: lraspp_mobilenet_v3_large(weights=None, weights_backbone=None), "maps"),
        (
            lambda: Unet(
                "resnet18", encoder_weights=None, encoder_depth=3, decoder_channels=(8, 8, 8)
            ),
            "maps",
        ),
        (lambda: timm.create_model("resnet10t"), "logits"),
        (lambda: timm.create_model("resnet10t", num_classes=0), "embedding"),
        (lambda: _hugging_face(num_labels=3), "logits"),
        (lambda: _hugging_face(num_labels=1), "number"),
        (
            lambda: _hugging_face(num_labels=3, problem_type="multi_label_classification"),
            "multilabel",
        ),
        (lambda: _hugging_face(num_labels=3, problem_type="regression"), "number"),
        (
            lambda: ResNetModel(ResNetConfig(embedding_size=4, hidden_sizes=[4], depths=[1])),
            "embedding",
        ),
        (
            lambda: CLIPVisionModel(
                CLIPVisionConfig(
                    hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=2
                )
            ),
            "embedding",
        ),
    ],
)
def test_a_network_states_what_it_puts_out(build: Callable[[], nn.Module], kind: str) -> None:
    stated = stated_output(build())
    assert stated.kind == kind
    assert not stated.is_said


class DetectionModel(nn.Module):
    """Boxes as ultralytics puts them out: 4 numbers each, and a row for each class behind them."""

    __module__ = "ultralytics.nn.tasks"

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4 + 2, 1)
        self.names = {0: "cat", 1: "dog"}

    def forward(self, images: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        rows = self.conv(images).sigmoid().flatten(2)
        return rows, {"feats": rows}


def test_yolo_s_boxes_are_asked_by_class_and_its_images_are_not_normalised() -> None:
    network = DetectionModel().eval()
    model = hookviz.wrap(network)
    assert model.categories == ("cat", "dog")
    assert isinstance(model.preprocess, hookviz.Preprocess)
    assert (model.preprocess.mean, model.preprocess.std) == ((0.0,) * 3, (1.0,) * 3)
    image = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    cap = hookviz.capture(model, image, ())
    with torch.no_grad():
        best = network(image)[0][0, 4:].amax(-1)
    assert cap.answer is not None
    torch.testing.assert_close(cap.answer.values, best)
    assert cap.answer.is_share
