"""Find an image's nearest neighbours in the feature index of ``HOOKVIZ_INDEX``, with pictures."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.capturing.feature_index import FeatureIndex, ranked
from hookviz.drawing.panels import Panel, PicturesPanel, TextPanel
from hookviz.drawing.pictures import thumbnail
from hookviz.errors import HookVizError, shorten
from hookviz.images import reading
from hookviz.language.saying import localised, mark, say
from hookviz.machine.memory import MEGABYTE
from hookviz.settings import settings
from hookviz.types import Model, Pixels, Progress, ignore

MOST_PICTURES = 6
"""How many neighbours are shown."""

PICTURE_SIDE = 208
"""Side of each picture in pixels, twice that on the screen."""

_TITLE = mark("Most alike in the index")


def index_neighbours(
    model: Model, image: Any, progress: Progress = ignore
) -> tuple[tuple[Panel, ...], dict[str, NDArray[Any]]]:
    """Find the nearest images in the index of ``HOOKVIZ_INDEX``; empty without such a setting.

    A panel says if the index is of another model or can't be read. Values: ``index_names`` and
    ``index_similarity``, float64 ``(N,)``, of the nearest, best first.

    Args:
        model: the model whose features are compared.
        image: anything that `capture` takes.
        progress: called with the share done.
    """
    path = settings().index
    if not path:
        return (), {}
    try:
        index = _loaded(path)
    except HookVizError as error:
        return (TextPanel(str(error), "bad"),), {}
    try:
        similarities = index.similarity(model, image, progress=progress)
    except HookVizError as error:
        return (TextPanel(f"{say(_TITLE)}: {error}", "note"),), {}
    nearest = ranked(similarities)[:MOST_PICTURES]
    features = index.features
    names = [features.names[row] for row in nearest]
    panel = PicturesPanel(
        say(_TITLE),
        tuple(_picture(index, row) for row in nearest),
        tuple(shorten(Path(name).name or name, 40) for name in names),
        tuple(localised(f"{similarities[row]:.2f}") for row in nearest),
        say(
            "Of {count:,} images, by the cosine of their vectors from layer {layer}.",
            count=len(features.names),
            layer=features.layer,
        ),
    )
    values = {"index_names": np.array(names), "index_similarity": similarities[nearest]}
    return (panel,), values


@lru_cache(maxsize=1)
def _loaded(path: str) -> FeatureIndex:
    return FeatureIndex.load(path)


def _picture(index: FeatureIndex, row: int) -> Pixels | None:
    """Load a thumbnail of an indexed image; None where it is missing, unreadable or too large."""
    path = index.picture(row)
    try:
        if path is None or path.stat().st_size > settings().upload_mb * MEGABYTE:
            return None
        return thumbnail(reading.read(path).pixels, PICTURE_SIDE)
    except (HookVizError, OSError):
        return None
