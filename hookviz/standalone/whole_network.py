"""Keep the map of the whole network in a page: drawing, small maps, what each layer sees."""

import io
from collections.abc import Collection, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from PIL import Image

from hookviz.explorer.answering import answer
from hookviz.explorer.layers import call_words
from hookviz.explorer.question import Question
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.standalone.packing import deflated, packed
from hookviz.standalone.recording import in_every_language
from hookviz.types import ActivationKey

_FIRST = call_words(ActivationKey(""))  # a page keeps what that one put out


def record_whole(subject: Subject, names: Collection[str]) -> dict[str, str]:
    """Record the map of the whole network: blocks of a page by their names.

    Args:
        subject: what the page is about.
        names: layers of which the page has every channel; of the others it has the strongest ones,
            and where on the photograph a cell in their middle looks.

    Raises:
        HookVizError: the network runs no layer, or the pass can't be run.
    """
    subject = replace(subject, offered=())
    question = Question("whole")
    facts = in_every_language(lambda: dict(answer(subject, View(), question).facts))
    facts["network"] = deepcopy(facts["network"])  # which the subject keeps
    for part in _with_maps(facts["network"]):
        if part["layer"] not in names or part["output"] != _FIRST:
            part |= {"isKept": False, "sees": _seen_from_middle(subject, part)}
    blocks = {"whole": packed(facts)}
    if facts["sprite"] is not None:
        with Image.open(io.BytesIO(answer(subject, View(), question).data)) as picture:
            blocks["small-maps"] = deflated(
                np.asarray(picture).tobytes()
            )  # in either theme's colours
    return blocks


def _with_maps(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if "layer" in part:
        yield part
    for each in part.get("parts", ()):
        yield from _with_maps(each)


def _seen_from_middle(subject: Subject, part: dict[str, Any]) -> list[float] | None:
    """Return top, left, bottom and right of what the cell in the middle sees, as shares."""
    view = View(layer=part["layer"], layers="maps", output=part["output"])
    seen = answer(subject, view, Question("field")).facts
    if seen["rows"] and seen["columns"]:
        (top, bottom), (left, right) = (_middle(seen[name]) for name in ("rows", "columns"))
    elif seen["boxes"]:
        top, left, bottom, right = _middle(_middle(seen["boxes"]))
    else:
        return None
    return [round(edge, 4) for edge in (top, left, bottom, right)]


def _middle(each: list[Any]) -> Any:
    return each[len(each) // 2]
