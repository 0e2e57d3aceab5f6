"""Small networks with random weights, built by other people's libraries."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel
from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

from tests.networks import random_input

Build = Callable[[], nn.Module]


@dataclass(frozen=True)
class OtherNetwork:
    """Network of another library: how to build it, and the side of its input in pixels."""

    build: Build
    side: int = 32

    @property
    def image(self) -> Tensor:
        """Input of random numbers, ``(1, 3, side, side)``."""
        return random_input(0, self.side)


def library(name: str) -> Any:
    """Import a library, which downloads nothing; skip the test where it is not installed."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    return pytest.importorskip(name)


class Small(nn.Module):
    """Two conv layers with batch norm, dropout and five classes, for libraries that wrap one."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Dropout(0.5)),
            *(nn.Conv2d(4, 6, 3, stride=2), nn.BatchNorm2d(6), nn.ReLU(inplace=True)),
        )
        self.head = nn.Linear(6, 5)

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.head(self.features(images).mean((2, 3)))
        return scores


_VIT = MappingProxyType(
    {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "patch_size": 8}
    | {"image_size": 32}
)
_STAGES = MappingProxyType({"depths": [1, 1, 1, 1], "hidden_sizes": [8, 8, 16, 16]})
_RESNET = MappingProxyType({**_STAGES, "embedding_size": 8, "layer_type": "basic"})


def _hugging_face(model: str, config: str, settings: Mapping[str, Any]) -> nn.Module:
    """Build a class of transformers from its configuration."""
    transformers = library("transformers")
    network: nn.Module = getattr(transformers, model)(getattr(transformers, config)(**settings))
    return network


def _classifier(family: str, **settings: Any) -> Build:
    config = {**settings, "num_labels": 5}
    return partial(_hugging_face, f"{family}ForImageClassification", f"{family}Config", config)


def _detr() -> nn.Module:
    backbone = library("transformers").ResNetConfig(**_RESNET, out_features=["stage4"])
    sizes = {"d_model": 16, "num_queries": 4, "num_labels": 5, "backbone": None}
    for part in ("encoder", "decoder"):
        sizes |= {f"{part}_layers": 1, f"{part}_attention_heads": 2, f"{part}_ffn_dim": 16}
    config = {**sizes, "use_timm_backbone": False, "backbone_config": backbone}
    return _hugging_face("DetrForObjectDetection", "DetrConfig", config)


_SWIN = {"image_size": 32, "patch_size": 2, "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 2]}
_SEGFORMER = {**_STAGES, "num_attention_heads": [1, 1, 2, 2], "decoder_hidden_size": 16}
_DINOV2 = {**_VIT, "mlp_ratio": 2, "num_register_tokens": 2}
_CLIP = {**_VIT, "intermediate_size": 32}
_BEIT = {**_VIT, "intermediate_size": 32, "use_relative_position_bias": True}

HUGGING_FACE: Mapping[str, OtherNetwork] = MappingProxyType(
    {
        "ViT": OtherNetwork(_classifier("ViT", **_VIT, intermediate_size=32)),
        "ConvNeXt": OtherNetwork(_classifier("ConvNext", **_STAGES), 64),
        "ResNet": OtherNetwork(_classifier("ResNet", **_RESNET), 64),
        "Swin": OtherNetwork(_classifier("Swin", **_SWIN, window_size=4)),
        "DINOv2 with registers": OtherNetwork(
            lambda: _hugging_face("Dinov2WithRegistersModel", "Dinov2WithRegistersConfig", _DINOV2)
        ),
        "DETR": OtherNetwork(_detr, 64),
        "SegFormer": OtherNetwork(
            lambda: _hugging_face(
                "SegformerForSemanticSegmentation", "SegformerConfig", _SEGFORMER
            ),
            64,
        ),
        "CLIP's vision tower": OtherNetwork(
            lambda: _hugging_face("CLIPVisionModel", "CLIPVisionConfig", _CLIP)
        ),
        "BEiT": OtherNetwork(_classifier("Beit", **_BEIT)),
    }
)
"""Families of transformers, by the name that people call them by."""


@contextmanager
def _settings_put_back() -> Iterator[None]:
    """Keep the process's print options and `torch.save`, which importing ultralytics changes."""
    save, environment = torch.save, os.environ.copy()
    try:
        with np.printoptions():
            yield
    finally:
        torch.set_printoptions(profile="default")  # type: ignore[no-untyped-call]
        torch.save = save
        os.environ.clear()
        os.environ.update(environment)


def ultralytics(model: str, config: str) -> nn.Module:
    with _settings_put_back(), TemporaryDirectory() as folder:
        os.environ |= {"YOLO_CONFIG_DIR": folder, "YOLO_OFFLINE": "true"}
        tasks = library("ultralytics.nn.tasks")
        network: nn.Module = getattr(tasks, model)(config, verbose=False)
        return network


def _unet() -> nn.Module:
    sizes = {"encoder_depth": 3, "decoder_channels": (16, 8, 8)}
    unet: nn.Module = library("segmentation_models_pytorch").Unet(encoder_weights=None, **sizes)
    return unet


def _with_checkpointing(name: str, **settings: Any) -> nn.Module:
    network: Any = library("timm").create_model(name, num_classes=5, **settings)
    network.set_grad_checkpointing()
    return network  # type: ignore[no-any-return]


def _faster_rcnn() -> nn.Module:
    settings = {"num_classes": 3, "min_size": 64, "max_size": 64}
    network: nn.Module = fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, **settings
    )
    return network


def _lightning_module() -> nn.Module:
    lightning: Any = library("lightning.pytorch")

    class Classifier(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = Small()

        def forward(self, images: Tensor) -> Tensor:
            scores: Tensor = self.network(images)
            self.log("mean score", scores.mean())
            return scores

    module: nn.Module = Classifier()
    return module


def _averaged() -> nn.Module:
    network = Small()
    averaged = AveragedModel(network)
    averaged.update_parameters(network)
    return averaged


def _ema() -> nn.Module:
    ema: nn.Module = library("timm.utils").ModelEmaV3(Small())
    return ema


def _autoencoder() -> nn.Module:
    sizes = {"block_out_channels": (8,), "norm_num_groups": 4, "latent_channels": 2}
    autoencoder: nn.Module = library("diffusers").AutoencoderKL(**sizes)
    return autoencoder


_TIMM_VIT = {"img_size": 32, "patch_size": 8, "depth": 2, "embed_dim": 12}

OTHERS: Mapping[str, OtherNetwork] = MappingProxyType(
    {
        "ultralytics, classification": OtherNetwork(
            partial(ultralytics, "ClassificationModel", "yolov8n-cls.yaml"), 64
        ),
        "ultralytics, detection": OtherNetwork(
            partial(ultralytics, "DetectionModel", "yolov8n.yaml"), 64
        ),
        "segmentation_models_pytorch": OtherNetwork(_unet),
        "timm's ResNet with checkpointing": OtherNetwork(partial(_with_checkpointing, "resnet10t")),
        "timm's ViT with checkpointing": OtherNetwork(
            lambda: _with_checkpointing("vit_tiny_patch16_224", **_TIMM_VIT)
        ),
        "torchvision's Faster R-CNN": OtherNetwork(_faster_rcnn, 64),
        "LightningModule": OtherNetwork(_lightning_module),
        "AveragedModel": OtherNetwork(_averaged),
        "timm's ModelEmaV3": OtherNetwork(_ema),
        "diffusers' AutoencoderKL": OtherNetwork(_autoencoder),
    }
)
"""Networks of other libraries that take an image alone and hold no state."""


def diffusion_unet() -> nn.Module:
    """Network of diffusers that takes an image and a time step."""
    unet: nn.Module = library("diffusers").UNet2DModel(
        sample_size=32,
        block_out_channels=(8, 16),
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        layers_per_block=1,
        attention_head_dim=4,
    )
    return unet


def snntorch_network() -> nn.Module:
    """Spiking network whose membranes are buffers."""
    leaky = library("snntorch").Leaky
    return nn.Sequential(
        *(nn.Conv2d(3, 4, 3), leaky(beta=0.9, init_hidden=True), nn.Flatten()),
        *(nn.Linear(3600, 5), leaky(beta=0.5, init_hidden=True, output=True)),
    )


def spikingjelly_network() -> nn.Module:
    """Spiking network whose membranes are in a dict of the library's own."""
    neuron = library("spikingjelly.activation_based.neuron")
    return nn.Sequential(
        *(nn.Conv2d(3, 4, 3), neuron.LIFNode(), nn.Flatten(), nn.Linear(3600, 5), neuron.IFNode())
    )
