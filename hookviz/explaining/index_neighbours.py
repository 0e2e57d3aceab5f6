"""What is like an image in the index that whoever started HookViz gave, with its pictures."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.capturing.feature_index import FeatureIndex, ranked
from hookviz.drawing.panels import Panel, PicturesPanel, TextPanel
from hookviz.drawing.resizing import thumbnail
from hookviz.errors import HookVizError, shorten
from hookviz.images import reading
from hookviz.language.saying import localised, mark, say
from hookviz.settings import MEGABYTE, settings
from hookviz.types import Model, Pixels, Progress, ignore

MOST_PICTURES = 6
"""How many neighbours are shown."""

PICTURE_SIDE = 208
"""Pixels of each, twice what it takes on the screen."""

_TITLE = mark("Most alike in the index")


def index_neighbours(
    model: Model, image: Any, progress: Progress = ignore
) -> tuple[tuple[Panel, ...], dict[str, NDArray[Any]]]:
    """The nearest images of the index of ``HOOKVIZ_INDEX``; nothing where there is none.

    An index of another model is told of, as is one that can't be read. Values: ``index_names`` and
    ``index_similarity``, float64 ``(N,)``, of the nearest, best first.

    Args:
        model: the one that is looked at.
        image: anything that `capture` takes.
        progress: told the share done.
    """
    path = settings().index
    if not path:
        return (), {}
    try:
        index = _loaded(path)
    except HookVizError as error:
        return (TextPanel(str(error), "bad"),), {}
    try:
        shares = index.similarity(model, image, progress=progress)
    except HookVizError as error:
        return (TextPanel(f"{say(_TITLE)}: {error}", "note"),), {}
    places = ranked(shares)[:MOST_PICTURES]
    found = index.features
    names = [found.names[place] for place in places]
    panel = PicturesPanel(
        say(_TITLE),
        tuple(_picture(index, place) for place in places),
        tuple(shorten(Path(name).name or name, 40) for name in names),
        tuple(localised(f"{shares[place]:.2f}") for place in places),
        say(
            "Of {names_count:,} images, by the cosine of their vectors from layer {layer}.",
            names_count=len(found.names),
            layer=found.layer,
        ),
    )
    nearest = {"index_names": np.array(names), "index_similarity": shares[places]}
    return (panel,), nearest


@lru_cache(maxsize=1)
def _loaded(path: str) -> FeatureIndex:
    return FeatureIndex.load(path)


def _picture(index: FeatureIndex, place: int) -> Pixels | None:
    """The image itself, small; None where it is not there, or is no image within the bounds."""
    path = index.picture(place)
    try:
        if path is None or path.stat().st_size > settings().upload_mb * MEGABYTE:
            return None
        return thumbnail(reading.read(path).pixels, PICTURE_SIDE)
    except (HookVizError, OSError):
        return None
