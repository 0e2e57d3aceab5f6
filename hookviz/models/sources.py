"""List the sources of models, and find the one that a model's name belongs to."""

from functools import lru_cache

from hookviz.models import bundled, timm_models, torchvision_models
from hookviz.models.model_source import ModelSource

SOURCES = (bundled.SOURCE, torchvision_models.SOURCE, timm_models.SOURCE)
"""In the order in which their models are listed."""


@lru_cache(maxsize=4096)  # more than all sources have; names in links are anybody's
def find_source(name: str) -> ModelSource | None:
    """Return the source that owns a name of the catalog; None where no source does."""
    return next((source for source in SOURCES if source.owns(name)), None)


def source_of(name: str) -> ModelSource:
    """Return the source of a model that is in the catalog."""
    source = find_source(name)
    assert source is not None, name
    return source
