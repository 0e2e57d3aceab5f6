"""List and build timm's models, where it is installed (``pip install hookviz[timm]``)."""

import math
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

from PIL import Image
from torch import Tensor, nn
from torchvision import models

from hookviz.errors import WeightsError, shorten
from hookviz.language.saying import mark, say
from hookviz.models.model_source import ModelSource, ScriptCalls
from hookviz.types import ModelSpec, Preprocess

_PREFIX = "timm/"

_LIST = """
import os
if hasattr(os, "nice"):
    os.nice(10)  # whoever looks at a network comes first
import timm
for name in timm.list_models():
    print(name, timm.models.model_entrypoint(name).__module__.rpartition(".")[2])
"""

_listed_apart: list[list[str]] = []  # names and families


@cache
def specs() -> tuple[ModelSpec, ...]:
    """Return a catalog entry for each of timm's models; none without timm.

    Parameters, sizes and accuracies are 0 and NaN, since timm does not tell them before a model is
    built. It keeps its weights by itself.
    """
    if find_spec("timm") is None:
        return ()
    listed = [
        ModelSpec(
            name=_PREFIX + name,
            title=_PREFIX + name,
            family=f"timm {family}",
            parameters=0,
            download_bytes=0,
            accuracy=math.nan,
            trained_on="",
            min_size=1,
            on_disk=False,
        )
        for name, family in _names()
    ]
    return tuple(sorted(listed, key=lambda spec: (spec.family, spec.name)))


def list_apart() -> None:
    """Have a process of its own list the models, where timm is installed and not imported yet.

    Importing it takes seconds and memory, which only who loads one of its models should pay.
    """
    if find_spec("timm") is None or "timm" in sys.modules or _listed_apart:
        return
    ended = subprocess.run(  # noqa: S603 - our own few lines
        [sys.executable, "-c", _LIST], capture_output=True, text=True, check=False
    )
    if ended.returncode == 0:
        _listed_apart.extend(line.split() for line in ended.stdout.splitlines())


def _names() -> list[list[str]]:
    """Return each model's name and its family."""
    if _listed_apart:
        return _listed_apart
    import timm  # noqa: PLC0415 - takes seconds, and most people don't have it

    return [
        [name, timm.models.model_entrypoint(name).__module__.rpartition(".")[2]]
        for name in timm.list_models()
    ]


def is_listed() -> bool:
    """Return whether `specs` answers at once: it was asked before, or timm is not installed."""
    return specs.cache_info().currsize > 0 or find_spec("timm") is None


def build(name: str, classes: int) -> nn.Module:
    """Build an untrained network."""
    import timm  # noqa: PLC0415

    network: nn.Module = timm.create_model(_plain(name), num_classes=classes)
    return network


def build_pretrained(name: str) -> nn.Module:
    """Build a network with the weights that timm has for it, downloaded or from its own cache.

    Raises:
        WeightsError: timm can't get them.
    """
    import timm  # noqa: PLC0415

    try:
        network: nn.Module = timm.create_model(_plain(name), pretrained=True)
    # Behind timm stands a hub client that raises what its own web library raises.
    except Exception as error:
        raise WeightsError(
            say(
                "The pretrained weights of {name} can't be had by timm: {error}. Random "
                "weights and the bundled models work without a network.",
                name=name,
                error=shorten(str(error), 200),
            )
        ) from error
    return network


def preprocess(name: str) -> Preprocess | Callable[[Image.Image], Tensor]:
    """Return the steps from image to input that come with a model's weights.

    As a `Preprocess` where they are a resize, a centre crop and a normalisation, so that the crop
    is known; else as the function that timm makes of them.
    """
    from timm import data  # noqa: PLC0415

    steps: dict[str, Any] = data.resolve_data_config({}, pretrained_cfg=_config(name).to_dict())
    _, height, width = steps["input_size"]
    plain = steps["crop_mode"] == "center" and height == width
    if plain and steps["interpolation"] in ("bilinear", "bicubic"):
        return Preprocess(
            resize=math.floor(height / steps["crop_pct"]),
            crop=height,
            mean=tuple(steps["mean"]),
            std=tuple(steps["std"]),
            interpolation=steps["interpolation"],
        )
    transform: Callable[[Image.Image], Tensor] = data.create_transform(**steps)
    return transform


def classes(name: str) -> int:
    """Return the number of classes of a model's own weights."""
    return int(_config(name).num_classes)


def categories(name: str) -> tuple[str, ...]:
    """Return ImageNet's labels where a model has as many classes.

    timm orders them as torchvision does.
    """
    labels = tuple(models.get_model_weights("resnet18").DEFAULT.meta["categories"])
    return labels if classes(name) == len(labels) else ()


def _plain(name: str) -> str:
    return name.removeprefix(_PREFIX)


def _config(name: str) -> Any:
    import timm  # noqa: PLC0415

    return timm.models.get_pretrained_cfg(_plain(name))


SOURCE = ModelSource(
    name="timm",
    prefix=_PREFIX,
    owns=lambda name: name.startswith(_PREFIX),
    specs=specs,
    is_listed=is_listed,
    is_described=False,
    about=mark("from timm, with its own preprocessing"),
    build=build,
    build_pretrained=build_pretrained,
    classes=classes,
    categories=categories,
    preprocess=preprocess,
    script=ScriptCalls(
        create="timm.create_model",
        pretrained={"pretrained": True},
        steps=(
            "steps = timm.data.resolve_data_config({}, pretrained_cfg=model.pretrained_cfg)",
            "values = timm.data.create_transform(**steps)(image)",
        ),
        mean='steps["mean"]',
        std='steps["std"]',
    ),
)
