from collections.abc import Callable
from typing import Any

import pytest
import timm
from segmentation_models_pytorch import Unet
from torch import nn
from torchvision.models import resnet18
from torchvision.models.segmentation import lraspp_mobilenet_v3_large
from transformers import (
    CLIPVisionConfig,
    CLIPVisionModel,
    ResNetConfig,
    ResNetForImageClassification,
    ResNetModel,
)

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
