"""Open the explorer on a channel that astonishes, where the link says nothing of a view."""

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from hookviz.language.saying import mark, say
from hookviz.settings import ASSETS
from hookviz.ui.explorer.scene import ExplorerScene

_PARTS = {
    "eyes": mark("eyes"),
    "cup": mark("the cup"),
    "face": mark("the face"),
    "rocket": mark("the rocket"),
    "head": mark("the head"),
}


@cache
def _openings() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """Return what `scripts.openings` chose: by network and sample a layer, a channel and a part."""
    chosen: Mapping[str, Mapping[str, Mapping[str, Any]]] = json.loads(
        (ASSETS / "openings.json").read_text("utf-8")
    )
    return chosen


def opening(scene: ExplorerScene) -> Mapping[str, str] | None:
    """Return layer and channel to begin with, and the part of the image that it answers to.

    None of an image and weights that a person brings, and where the network sees another part of
    the image than it was trained on.
    """
    choice, file = scene.choice, scene.shown.file
    is_other = scene.size is not None or scene.whole or choice.mask is not None
    if is_other or choice.weights != "pretrained" or file is None:
        return None
    words = _openings().get(choice.spec.name, {}).get(file.stem)
    if words is None:
        return None
    return {
        "layer": words["layer"],
        "channel": str(words["channel"]),
        "part": say(_PARTS[words["part"]]),
    }
