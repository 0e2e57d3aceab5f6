"""Declare a source of models: how its models are listed, built and filled with weights."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from torch import Tensor, nn

from hookviz.types import ModelSpec, Preprocess


@dataclass(frozen=True, kw_only=True, slots=True)
class ScriptCalls:
    """Lines of Python by which a script without HookViz makes a network of a library.

    Attributes:
        create: the function that builds it, of the name there and, if asked, ``num_classes=``.
        pretrained: the options of `create` for pretrained weights.
        steps: the lines that make ``values``, the normalised ``(C, H, W)``, of ``image``.
        mean: expression for the mean of each channel after `steps`.
        std: likewise for the standard deviation.
    """

    create: str
    pretrained: dict[str, object]
    steps: tuple[str, ...]
    mean: str
    std: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelSource:
    """A library or a folder of models, with the functions that list, build and fill them.

    Every function takes a model's name in the catalog, its prefix included. Pretrained weights come
    by exactly one of `weights_file`, `weights_url` and `build_pretrained`.

    Attributes:
        name: of the source; of a library its import name.
        prefix: how its names in the catalog begin; empty for none.
        owns: whether a name is one of its names.
        specs: its catalog entries, in the order in which they are listed.
        build: an untrained network with as many classes as asked for.
        classes: number of classes of the pretrained weights.
        categories: a label per class of the pretrained weights; empty where there is none for each.
        preprocess: the steps from image to input that belong to the pretrained weights.
        has_training_heads: whether the architecture has heads that only training uses.
        build_with_training_heads: as `build`, with those heads; None where no model has any.
        same_architecture: the catalog's name of the same architecture with other weights, or the
            name itself.
        weights_file: the file of weights that ships with HookViz.
        weights_url: where a file of weights is downloaded from, into torch's own folder.
        build_pretrained: the network with weights that the library finds and keeps by itself.
        is_listed: whether `specs` answers at once, without importing a large library.
        is_described: whether `specs` knows sizes and accuracies, and lists few enough models to
            offer them all together.
        about: a marked sentence that the page says in place of sizes and accuracies.
        script: how a script makes such a network; None where `hookviz.codegen` has lines for it.
    """

    name: str
    prefix: str = ""
    owns: Callable[[str], bool]
    specs: Callable[[], tuple[ModelSpec, ...]]
    build: Callable[[str, int], nn.Module]
    classes: Callable[[str], int]
    categories: Callable[[str], tuple[str, ...]]
    preprocess: Callable[[str], Preprocess | Callable[[Image.Image], Tensor]]
    has_training_heads: Callable[[str], bool] = lambda _: False
    build_with_training_heads: Callable[[str, int], nn.Module] | None = None
    same_architecture: Callable[[str], str] = lambda name: name
    weights_file: Callable[[str], Path] | None = None
    weights_url: Callable[[str], str] | None = None
    build_pretrained: Callable[[str], nn.Module] | None = None
    is_listed: Callable[[], bool] = lambda: True
    is_described: bool = True
    about: str = ""
    script: ScriptCalls | None = None
