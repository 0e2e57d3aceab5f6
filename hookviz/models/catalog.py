"""List the sources of models and their models, and say where weights are on this machine."""

from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path

import torch

from hookviz.errors import UnknownModelError
from hookviz.language.saying import say
from hookviz.models import bundled, timm_models, torchvision_models
from hookviz.models.bundled import DEFAULT
from hookviz.models.model_source import ModelSource
from hookviz.settings import settings
from hookviz.types import ModelSpec

SOURCES = (bundled.SOURCE, torchvision_models.SOURCE, timm_models.SOURCE)
"""In the order in which their models are listed."""


def list_models() -> tuple[ModelSpec, ...]:
    """Return every model in the catalog: those that ship, torchvision's by family and size, timm's.

    >>> [spec.name for spec in hookviz.list_models() if spec.family == "VGG"][:2]
    ['vgg11', 'vgg11_bn']
    """
    others = (spec for source in SOURCES if not source.is_described for spec in source.specs())
    return (*described_models(), *others)


def described_models() -> tuple[ModelSpec, ...]:
    """Return the models whose sizes are known before they are loaded: all but timm's."""
    files = _downloaded_files()
    return _described(
        frozenset(name for name in _downloadable() if _file_name(weights_url(name)) in files)
    )


def models_at_once(*words: str) -> tuple[ModelSpec, ...]:
    """Return `list_models`, or the described models where that would take seconds.

    The first import of timm takes seconds. The call waits for it where one of `words`, a model's
    title or a family from a link, begins with that source's name.
    """
    slow = tuple(source.name for source in SOURCES if not source.is_listed())
    waits = any(word.startswith(slow) for word in words)
    return list_models() if waits or not slow else described_models()


def find_model(name: str) -> ModelSpec:
    """Return the catalog's entry called `name`.

    Raises:
        UnknownModelError: there is none; the error names the nearest.
    """
    source = find_source(name)  # timm takes seconds to import: only for its own
    for spec in source.specs() if source else ():
        if spec.name == name:
            return replace(spec, on_disk=is_on_disk(name))
    raise UnknownModelError(say("model"), name, [spec.name for spec in list_models()])


def first_model() -> ModelSpec:
    """Return the model to start with: the one that a setting names, if its weights are there.

    Else the first bundled one.

    Raises:
        UnknownModelError: the setting names none of the catalog's; the error names the nearest.
    """
    name = settings().start
    model = find_model(name) if name else None
    return model if model and model.on_disk else find_model(DEFAULT)


def is_on_disk(name: str) -> bool:
    """Return whether the pretrained weights of a catalog model are on this machine.

    False for a source that keeps its weights by itself, since it does not say where.
    """
    source = source_of(name)
    if source.weights_url is None:
        return source.weights_file is not None
    return weights_path(name).is_file()


def weights_url(name: str) -> str:
    """Return where pretrained weights are downloaded from: the mirror of the settings, if any."""
    url_of = source_of(name).weights_url
    assert url_of is not None, name
    mirror, url = settings().weights_url.rstrip("/"), url_of(name)
    return f"{mirror}/{_file_name(url)}" if mirror else url


def weights_path(name: str) -> Path:
    """Return where torch keeps the downloaded weights file of a model."""
    return _folder() / _file_name(weights_url(name))


def _downloaded_files() -> frozenset[str]:
    """List the files in torch's folder of weights: one look instead of one for each."""
    try:
        return frozenset(path.name for path in _folder().iterdir())
    except OSError:
        return frozenset()


@lru_cache(maxsize=4)
def _described(on_disk: frozenset[str]) -> tuple[ModelSpec, ...]:
    """Return the described models, of which those in `on_disk` and the bundled ones are on disk."""
    return tuple(
        replace(spec, on_disk=spec.on_disk or spec.name in on_disk)
        for source in SOURCES
        if source.is_described
        for spec in source.specs()
    )


@cache
def _downloadable() -> tuple[str, ...]:
    """Return the names of the models whose weights are downloaded from a URL."""
    return tuple(spec.name for source in SOURCES if source.weights_url for spec in source.specs())


def _file_name(url: str) -> str:
    return url.rpartition("/")[2]


def _folder() -> Path:
    return Path(torch.hub.get_dir()) / "checkpoints"


@lru_cache(maxsize=4096)  # more than all sources have; names in links are anybody's
def find_source(name: str) -> ModelSource | None:
    """Return the source that owns a name of the catalog; None where no source does."""
    return next((source for source in SOURCES if source.owns(name)), None)


def source_of(name: str) -> ModelSource:
    """Return the source of a model that is in the catalog."""
    source = find_source(name)
    assert source is not None, name
    return source
