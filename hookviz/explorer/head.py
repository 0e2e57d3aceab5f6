"""Answer what stands above the explorer where no page is around it: image, network and classes."""

from collections.abc import Mapping
from typing import Any

from hookviz.drawing.pictures import small_png
from hookviz.explorer.layers import captured, resolve
from hookviz.explorer.question import Answer, Report
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.language.saying import say, sentences
from hookviz.outputs.answer import no_classes
from hookviz.types import Capture

_SIDE = 152  # pixels across, twice what it takes on the screen
_CLASSES = 5


def answer_head(subject: Subject, view: View, _facts: Mapping[str, Any], _report: Report) -> Answer:
    """Return what the network saw, as a small PNG, and the classes it likeliest is with shares.

    Raises:
        HookVizError: the network shows no layer, or the pass can't be run.
    """
    capture = captured(subject, resolve(subject, view))
    picture = capture.model_input.picture
    data = b"" if picture is None else small_png(picture, _SIDE)
    return Answer(
        {
            "alt": say("What the model sees: {alt}", alt=subject.alt or subject.image_title),
            "image": subject.image_title,
            "model": subject.model_title or subject.model.title,
            "classes": classes_of(capture),
            "note": _note(subject, capture),
        },
        data,
    )


def classes_of(capture: Capture) -> list[dict[str, Any]]:
    """Return the classes that an image is likeliest of, with their numbers and shares."""
    return [
        {
            "name": each.name,
            "number": each.number,
            "share": float(f"{each.share:.4g}"),
            "says": each.text,
        }
        for each in capture.top(_CLASSES)
    ]


def _note(subject: Subject, capture: Capture) -> str:
    """Say what one has to know about the network and its classes; empty where there is nothing."""
    if capture.answer is None:
        return sentences(say("This network puts out no class scores."), subject.model.note)
    if not capture.answer.has_classes:
        return sentences(no_classes(len(capture.answer.scores)), subject.model.note)
    if subject.model.weights.partition(",")[0] == "random":  # with or without silent channels
        return say("random weights: these predictions mean nothing")
    return sentences(capture.answer.reading.question, subject.model.note)
