"""Find the atlases that the page shows: those in the box, and those HookViz was started with."""

import logging
import os
from functools import lru_cache
from pathlib import Path

from hookviz.atlas.atlas import Atlas
from hookviz.atlas.reading import read_atlas
from hookviz.errors import HookVizError
from hookviz.settings import ASSETS, settings
from hookviz.types import Model

FOLDER = ASSETS / "atlases"
"""Folder of the atlases in the box and their drawings; their photographs are the samples."""

PHOTOGRAPH = "photograph"
"""Class of the atlases in the box that says how a picture was made, and little of what it shows."""

_log = logging.getLogger("hookviz")


def atlas_of(model: Model) -> Atlas | None:
    """Return the atlas of this very network and its way to make inputs; None without one.

    One that HookViz was started with goes before the one in the box.
    """
    return next((atlas for atlas in known_atlases() if atlas.belongs_to(model)), None)


def known_atlases() -> tuple[Atlas, ...]:
    """Read the atlases of ``HOOKVIZ_ATLAS``, a list as ``PATH`` is one, and then those in the box.

    One that can't be read is left out, and the log says why.
    """
    return _read(settings().atlas)


@lru_cache(maxsize=1)
def _read(listed: str) -> tuple[Atlas, ...]:
    paths = [Path(path) for path in listed.split(os.pathsep) if path]
    atlases = []
    for path in (*paths, *sorted(FOLDER.glob("*.atlas"))):
        try:
            atlases.append(read_atlas(path))
        except HookVizError as error:
            _log.warning("An atlas is left out: %s", error)
    return tuple(atlases)
