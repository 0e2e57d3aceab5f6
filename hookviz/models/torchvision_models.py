"""List and build torchvision's networks for images.

torchvision is asked for its list, its builders and the figures that come with its weights; no
model is named here by hand.
"""

import inspect
import re
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any

from torch import nn
from torchvision import models

from hookviz.language.saying import mark
from hookviz.models.model_source import ModelSource
from hookviz.types import ModelSpec, Preprocess

_TASKS: dict[str, Any] = {
    "classification": models,
    "segmentation": models.segmentation,
    "detection": models.detection,
    "video": models.video,
}
_METRICS = {
    "classification": ("acc@1", mark("top-1")),
    "segmentation": ("miou", mark("mean IoU")),
    "detection": ("box_map", mark("box AP")),
    "video": ("acc@1", mark("top-1")),
}
_LEAST = {"classification": 1, "segmentation": 64, "detection": 64, "video": 64}  # pixels
_MOST_FRAMES = 32  # of a clip: S3D was measured on 128, which would take gigabytes
_DETECTED = 800  # pixels of the shorter side, to which most detectors bring an image themselves
_VIT_SIDE = 224  # pixels of the images that a ViT is built for, unless told
_SHORT = {
    "FasterRCNN": "Faster R-CNN",
    "MaskRCNN": "Mask R-CNN",
    "KeypointRCNN": "Keypoint R-CNN",
    "Ssdlite": "SSDlite",
    "VisionTransformer": "ViT",
    "SwinTransformer": "Swin",
    "MaxVit": "MaxViT",
    "Maxvit": "MaxViT",
    "SwinTransformer3d": "Swin3D",
    "mvit": "MViT",
    "VideoResNet": "Video ResNet",
}
"""Families by the names of torchvision's classes."""
_TITLES = {"MC3_18": "MC3-18", "R3D_18": "R3D-18", "R2Plus1D_18": "R(2+1)D-18", "S3D": "S3D"}
"""As the papers write those that are no word with a number."""


@cache
def specs() -> tuple[ModelSpec, ...]:
    """Return a catalog entry for each network, by task, family and number of parameters.

    What is on disk is left to the catalog.
    """
    listed = [_spec(name) for name in _names()]
    tasks = list(_TASKS)

    def sort_key(spec: ModelSpec) -> tuple[int, str, int]:
        return tasks.index(spec.task), spec.family.casefold(), spec.parameters

    return tuple(sorted(listed, key=sort_key))


def categories(name: str) -> tuple[str, ...]:
    """Return the labels of the data that the model's own weights were trained on."""
    return tuple(_weights(name).meta["categories"])


def min_size(name: str) -> int:
    """Return the smallest height and width in pixels that the model takes."""
    return max(_LEAST[task(name)], *map(int, _weights(name).meta["min_size"]))


@cache
def task(name: str) -> str:
    """Return the task of the model, as in `ModelSpec.task`."""
    return next(
        each for each, module in _TASKS.items() if name in models.list_models(module=module)
    )


def preprocess(name: str) -> Preprocess:
    """Return the steps from image to input that come with the model's own weights."""
    steps = _weights(name).transforms()
    if task(name) == "detection":  # the network itself resizes and normalises
        side = next((int(part) for part in re.findall(r"\d{3}", name)), _DETECTED)
        return Preprocess(side, side, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0))
    if task(name) == "segmentation":
        side = steps.resize_size[0]
        return Preprocess(side, side, mean=tuple(steps.mean), std=tuple(steps.std))
    frames = 0
    if task(name) == "video":  # which tells how many frames it was measured on in words alone
        match = re.search(r"`clip_len=(\d+)`", _weights(name).meta["_docs"])
        frames = min(_MOST_FRAMES, int(match[1])) if match else _MOST_FRAMES
    return Preprocess(
        resize=steps.resize_size[0],
        crop=steps.crop_size[0],
        mean=tuple(steps.mean),
        std=tuple(steps.std),
        interpolation=steps.interpolation.value,
        antialias=bool(getattr(steps, "antialias", False)),
        frames=frames,
    )


def has_training_heads(name: str) -> bool:
    """Return whether the model has heads that only training uses, such as GoogLeNet's."""
    if task(name) == "video":
        return False
    if task(name) != "classification":
        return "aux_loss" in inspect.signature(models.get_model_builder(name)).parameters
    return "aux_logits" in inspect.signature(_class_of(name)).parameters


def _class_of(name: str) -> Any:
    return inspect.signature(models.get_model_builder(name)).return_annotation


def build(name: str, classes: int, *, training_heads: bool = False) -> nn.Module:
    """Build an untrained network, with its auxiliary heads for training where asked for."""
    builder: Callable[..., nn.Module] = models.get_model_builder(name)
    return builder(num_classes=classes, **builder_options(name, training_heads=training_heads))


def builder_options(name: str, *, training_heads: bool) -> dict[str, Any]:
    """Return the options of a builder for a network without weights, beside its classes."""
    options: dict[str, Any] = {}
    if task(name) in {"segmentation", "detection"}:
        options |= {"weights_backbone": None}
        options |= {"aux_loss": training_heads} if has_training_heads(name) else {}
    elif has_training_heads(name):
        # GoogLeNet and Inception: their weights come with extra heads and with inputs in another
        # range, and they warn unless told whether they are to be initialised.
        options = {"aux_logits": training_heads, "transform_input": True, "init_weights": True}
    elif _class_of(name) is models.VisionTransformer and min_size(name) != _VIT_SIDE:
        options = {"image_size": min_size(name)}  # it has an embedding for each patch
    return options


@cache
def _names() -> frozenset[str]:
    return frozenset(
        name for module in _TASKS.values() for name in models.list_models(module=module)
    )


@cache
def _weights(name: str) -> Any:
    """Return the weights that torchvision has of a model; looking them up takes a while."""
    return models.get_model_weights(name).DEFAULT


def _spec(name: str) -> ModelSpec:
    weights = _weights(name)
    trained_on, figures = next(iter(weights.meta["_metrics"].items()))
    key, metric = _METRICS[task(name)]
    return ModelSpec(
        name=name,
        title=_title(type(weights).__name__.removesuffix("_Weights")),
        family=_family(models.get_model_builder(name).__module__),
        parameters=int(weights.meta["num_params"]),
        download_bytes=round(weights.meta["_file_size"] * 1024 * 1024),
        accuracy=float(figures[key]),
        trained_on=trained_on,
        min_size=min_size(name),
        on_disk=False,
        task=task(name),
        metric=metric,
    )


def _title(identifier: str) -> str:
    """Write ``"Wide_ResNet50_2"`` as people do: ``"Wide ResNet-50-2"``."""
    transformer = re.fullmatch(
        r"(ViT|Swin3D|Swin|MaxVit|MViT)_(?:(V\d)_)?([A-Z])(?:_(\d+))?", identifier
    )
    if transformer:
        name, version, size, patch = transformer.groups()
        return (
            " ".join(filter(None, (_SHORT.get(name, name), version)))
            + f"-{size}"
            + (f"/{patch}" if patch else "")
        )
    if identifier in _TITLES:
        return _TITLES[identifier]
    text = re.sub(r"(\d\d)_(\d+)", r"\1-\2", identifier)  # ResNeXt50_32X4D
    text = re.sub(r"(?<=[a-z])(?=\d_\d)", " ", text)  # SqueezeNet1_0
    text = re.sub(r"(?<=Net)(?=\d_)", " ", text)  # MNASNet0_5
    text = re.sub(r"(\d)_(\d)", r"\1.\2", text)
    text = re.sub(r"(?<=[a-zA-Z]{3})(?=\d)", "-", text)  # ResNet34
    text = text.replace("RCNN", " R-CNN").replace("V-3 ", "V3 ").replace("V-3_", "V3 ")
    return text.replace("_X", " ×" if "Shuffle" in text else " X").replace("_", " ")


def _family(module: str) -> str:
    """Spell a file's name like the class that it is about: resnet → ResNet.

    Those for video have theirs in files of the same names.
    """
    plain = module.rpartition(".")[2]
    if module.startswith(models.video.__name__):
        plain = {"resnet": "VideoResNet", "swin_transformer": "SwinTransformer3d"}.get(plain, plain)
        return _SHORT.get(plain, plain.upper())
    classes = [name for name, _ in inspect.getmembers(sys.modules[module], inspect.isclass)]
    joined = plain.replace("_", "")
    spelled = [name for name in classes if name.casefold() == joined]
    named = spelled[0] if spelled else plain.capitalize()
    return _SHORT.get(named, named)


SOURCE = ModelSource(
    name="torchvision",
    owns=lambda name: name in _names(),
    specs=specs,
    build=build,
    build_with_training_heads=partial(build, training_heads=True),
    classes=lambda name: len(categories(name)),
    categories=categories,
    preprocess=preprocess,
    has_training_heads=has_training_heads,
    weights_url=lambda name: str(_weights(name).url),
)
