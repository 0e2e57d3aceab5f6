"""Which models there are: those that ship with HookViz and torchvision's convolutional networks.

torchvision is asked for its list, its builders and the figures that come with its weights; no
model is named here by hand.
"""

import inspect
import re
import sys
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import torch
from torchvision import models

from hookviz.errors import UnknownModelError
from hookviz.language.saying import say
from hookviz.models import timm_models, torchvision_models
from hookviz.models.bundled import BUNDLED, DEFAULT
from hookviz.settings import settings
from hookviz.types import ModelSpec


def list_models() -> tuple[ModelSpec, ...]:
    """Every model in the catalog: the bundled ones, torchvision's by family and size, timm's.

    >>> [spec.name for spec in hookviz.list_models() if spec.family == "VGG"][:2]
    ['vgg11', 'vgg11_bn']
    """
    return (*described_models(), *timm_models.specs())


def described_models() -> tuple[ModelSpec, ...]:
    """The models whose size and weights are known before they are loaded: all but timm's."""
    there = _files_there()
    return _described(
        frozenset(name for name in _downloaded() if _file_name(weights_url(name)) in there)
    )


def find_model(name: str) -> ModelSpec:
    """The catalog's entry called `name`.

    Raises:
        UnknownModelError: there is none; the error names the nearest.
    """
    # timm takes seconds to import: only for its own
    for spec in timm_models.specs() if name.startswith(timm_models.PREFIX) else _specs():
        if spec.name == name:
            return replace(spec, on_disk=is_on_disk(name))
    raise UnknownModelError(say("model"), name, [spec.name for spec in list_models()])


def first_model() -> ModelSpec:
    """The model to start with: the one that a setting names, if it is there, or one in the box.

    Raises:
        UnknownModelError: the setting names none of the catalog's; the error names the nearest.
    """
    asked = settings().start
    wanted = find_model(asked) if asked else None
    return wanted if wanted and wanted.on_disk else find_model(DEFAULT)


def is_on_disk(name: str) -> bool:
    """Whether the pretrained weights of a catalog model are on this machine."""
    if name.startswith(timm_models.PREFIX):
        return False  # timm keeps its own weights, and does not say where
    return name in BUNDLED or weights_path(name).is_file()


def weights_url(name: str) -> str:
    """Where the pretrained weights of one of torchvision's models are downloaded from."""
    mirror, url = settings().weights_url.rstrip("/"), str(_own_weights(name).url)
    return f"{mirror}/{_file_name(url)}" if mirror else url


def weights_path(name: str) -> Path:
    """Where torch keeps the downloaded weights file of one of torchvision's models."""
    return _folder() / _file_name(weights_url(name))


def _files_there() -> frozenset[str]:
    """The names of the files in torch's folder of weights: one look instead of one for each."""
    try:
        return frozenset(path.name for path in _folder().iterdir())
    except OSError:
        return frozenset()


@lru_cache(maxsize=4)
def _described(there: frozenset[str]) -> tuple[ModelSpec, ...]:
    """The described models, of which those in `there` and the bundled ones are on disk."""
    return tuple(
        replace(spec, on_disk=spec.name in BUNDLED or spec.name in there) for spec in _specs()
    )


@cache
def _downloaded() -> tuple[str, ...]:
    """The names of the models whose weights are downloaded."""
    return tuple(spec.name for spec in _specs() if spec.name not in BUNDLED)


@cache
def _own_weights(name: str) -> Any:
    """The weights that torchvision has of one of its models; looking them up takes a while."""
    return models.get_model_weights(name).DEFAULT


def _file_name(url: str) -> str:
    return url.rpartition("/")[2]


def _folder() -> Path:
    return Path(torch.hub.get_dir()) / "checkpoints"


@cache
def _specs() -> tuple[ModelSpec, ...]:
    specs = [
        _torchvision_spec(name)
        for name in models.list_models(module=models)
        if not _has_attention(models.get_model_builder(name).__module__)
    ]
    specs.sort(key=lambda spec: (spec.family.casefold(), spec.parameters))
    return (*(network.spec() for network in BUNDLED.values()), *specs)


def _has_attention(module: str) -> bool:
    """Whether a file of torchvision's defines a transformer, as its source tells.

    Building each network to look inside would take the app's start a second; a test does that and
    compares.
    """
    return "attention" in inspect.getsource(sys.modules[module]).casefold()


def _torchvision_spec(name: str) -> ModelSpec:
    weights = models.get_model_weights(name).DEFAULT
    meta = weights.meta
    trained_on, figures = next(iter(meta["_metrics"].items()))
    return ModelSpec(
        name=name,
        title=_title(type(weights).__name__.removesuffix("_Weights")),
        family=_family(models.get_model_builder(name).__module__),
        parameters=int(meta["num_params"]),
        download_bytes=round(meta["_file_size"] * 1024 * 1024),
        accuracy=float(figures["acc@1"]),
        trained_on=trained_on,
        min_size=torchvision_models.min_size(name),
        on_disk=False,
    )


def _title(identifier: str) -> str:
    """``"Wide_ResNet50_2"`` as people write it: ``"Wide ResNet-50-2"``."""
    text = re.sub(r"(\d\d)_(\d+)", r"\1-\2", identifier)  # ResNeXt50_32X4D
    text = re.sub(r"(?<=[a-z])(?=\d_\d)", " ", text)  # SqueezeNet1_0
    text = re.sub(r"(?<=Net)(?=\d_)", " ", text)  # MNASNet0_5
    text = re.sub(r"(\d)_(\d)", r"\1.\2", text)
    text = re.sub(r"(?<=[a-zA-Z]{3})(?=\d)", "-", text)  # ResNet34
    return text.replace("_X", " ×" if "Shuffle" in text else " X").replace("_", " ")


def _family(module: str) -> str:
    """How the class that a file of torchvision's is about is spelled: resnet → ResNet."""
    plain = module.rpartition(".")[2]
    classes = [name for name, _ in inspect.getmembers(sys.modules[module], inspect.isclass)]
    spelled = [name for name in classes if name.casefold() == plain]
    return spelled[0] if spelled else plain.capitalize()
