"""List and build the networks whose weights ship with HookViz; they are named here alone."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from torch import nn

from hookviz.language.saying import mark
from hookviz.models import shapesnet, shapesvit, torchvision_models
from hookviz.models.model_source import ModelSource
from hookviz.settings import ASSETS
from hookviz.types import ModelSpec, Preprocess

FAMILY = mark("In the box")
"""The family that they are listed under."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BundledNetwork:
    """A network whose weights lie in `assets/`.

    Attributes:
        name: in the catalog.
        title: on the screen.
        trained_on: the data, in a few words.
        image_kind: ``"photo"`` or ``"drawn"``, the kind of its training images, as for samples.
        architecture: torchvision's name of it; empty for one whose code is HookViz's own.
        parts: the classes of that own code, in the order of its file; the last is the network.
        categories: a label per class, in the order of its outputs.
        preprocess: the steps from image to input.
        min_size: the smallest height and width in pixels that it is meant to take.
        weights_file: a safetensors file; half precision is loaded as float32.
        figures_file: JSON with ``"parameters"`` and ``"accuracy"``, top-1 in percent.
    """

    name: str
    title: str
    trained_on: str
    image_kind: str
    architecture: str = ""
    parts: tuple[type[nn.Module], ...] = ()
    categories: tuple[str, ...]
    preprocess: Preprocess
    min_size: int
    weights_file: Path
    figures_file: Path

    def build(self, classes: int) -> nn.Module:
        """Build an untrained network."""
        if self.architecture:
            return torchvision_models.build(self.architecture, classes)
        return self.parts[-1](classes)

    def spec(self) -> ModelSpec:
        """Return its catalog entry."""
        figures: dict[str, Any] = json.loads(self.figures_file.read_text("utf-8"))
        return ModelSpec(
            name=self.name,
            title=self.title,
            family=FAMILY,
            parameters=figures["parameters"],
            download_bytes=0,
            accuracy=figures["accuracy"],
            trained_on=self.trained_on,
            min_size=self.min_size,
            on_disk=True,
        )


_SQUEEZENET = "squeezenet1_1"

SQUEEZENET = BundledNetwork(
    name="squeezenet",
    title="SqueezeNet (photographs)",
    trained_on="ImageNet-1K",
    image_kind="photo",
    architecture=_SQUEEZENET,
    categories=torchvision_models.categories(_SQUEEZENET),
    preprocess=torchvision_models.preprocess(_SQUEEZENET),
    min_size=torchvision_models.min_size(_SQUEEZENET),
    weights_file=ASSETS / "squeezenet.safetensors",
    figures_file=ASSETS / "squeezenet.json",
)
"""SqueezeNet 1.1 with ImageNet weights; `scripts.make_squeezenet` writes its files."""

SHAPESNET = BundledNetwork(
    name="shapesnet",
    title="ShapesNet",
    trained_on=mark("drawn shapes and textures"),
    image_kind="drawn",
    parts=(shapesnet.ConvNorm, shapesnet.Stem, shapesnet.ResidualStage, shapesnet.ShapesNet),
    categories=shapesnet.CATEGORIES,
    preprocess=shapesnet.PREPROCESS,
    min_size=shapesnet.MIN_SIZE,
    weights_file=shapesnet.WEIGHTS_FILE,
    figures_file=shapesnet.FIGURES_FILE,
)
"""HookViz's own; `scripts.train_bundled` writes its files."""

SHAPESVIT = BundledNetwork(
    name="shapesvit",
    title="ShapesViT (drawings)",
    trained_on=mark("drawn shapes and textures"),
    image_kind="drawn",
    parts=(
        *(shapesvit.PatchEmbed, shapesvit.Attention, shapesvit.Mlp, shapesvit.Block),
        shapesvit.ShapesViT,
    ),
    categories=shapesnet.CATEGORIES,
    preprocess=shapesvit.PREPROCESS,
    min_size=shapesvit.MIN_SIZE,
    weights_file=shapesvit.WEIGHTS_FILE,
    figures_file=shapesvit.FIGURES_FILE,
)
"""HookViz's own transformer; `scripts.train_shapesvit` writes its files."""

BUNDLED: Mapping[str, BundledNetwork] = MappingProxyType(
    {network.name: network for network in (SQUEEZENET, SHAPESNET, SHAPESVIT)}
)
"""By name, in the order in which they are listed; the first is the one to start with."""

DEFAULT = next(iter(BUNDLED))
"""Name of the model to start with."""


@cache
def _specs() -> tuple[ModelSpec, ...]:
    return tuple(network.spec() for network in BUNDLED.values())


SOURCE = ModelSource(
    name="bundled",
    owns=BUNDLED.__contains__,
    specs=_specs,
    build=lambda name, classes: BUNDLED[name].build(classes),
    classes=lambda name: len(BUNDLED[name].categories),
    categories=lambda name: BUNDLED[name].categories,
    preprocess=lambda name: BUNDLED[name].preprocess,
    same_architecture=lambda name: BUNDLED[name].architecture or name,
    weights_file=lambda name: BUNDLED[name].weights_file,
)
