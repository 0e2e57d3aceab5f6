"""Compute what a network says of several samples, as it is and with its ReLUs switched off."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hookviz.capturing.inputs import prepare
from hookviz.drawing.overlay import shrunk
from hookviz.drawing.pictures import encode_jpeg
from hookviz.explaining.scores.without_relu import without_relu
from hookviz.images import reading
from hookviz.images.samples import Sample, samples
from hookviz.lessons.part import LessonScene
from hookviz.lessons.scores import Scores, named_scores, scores_of
from hookviz.types import InputImage

MIXED, UNKNOWN = CHOICES = ("mixed", "unknown")
"""Which samples: of photographs and drawings as many, or those that are no class of the network."""

_OF_A_KIND = 4
_THUMBNAIL = 240  # pixels on its longer side


@dataclass(frozen=True, eq=False, slots=True)
class Verdict:
    """A sample, and what the network says of it.

    Attributes:
        sample: which.
        scores: the class scores.
    """

    sample: Sample
    scores: Scores


def chosen_samples(scene: LessonScene, which: str) -> list[Sample]:
    """Return the samples to be looked at, one of `CHOICES`."""
    photographs = [sample for sample in samples() if sample.kind == "photo"]
    drawings = [sample for sample in samples() if sample.kind != "photo"]
    if which == MIXED:
        return photographs[:_OF_A_KIND] + drawings[:_OF_A_KIND]
    known = {name.casefold() for name in scene.model.categories}
    unknown = [each for each in drawings + photographs if each.title.casefold() not in known]
    return unknown[: 2 * _OF_A_KIND]


def verdicts(scene: LessonScene, which: str, *, relu: bool = True) -> tuple[Verdict, ...]:
    """Return what the network says of each of the samples, with its ReLUs or without them.

    Raises:
        ModelError: the network can't take them, or puts out no class scores.
    """
    key = ("verdicts", which, relu)
    found: tuple[Verdict, ...] = scene.cached(
        key, lambda: _verdicts(scene, which, relu=relu), lambda each: 8 * 1000 * len(each)
    )
    return found


def _verdicts(scene: LessonScene, which: str, *, relu: bool) -> tuple[Verdict, ...]:
    model = scene.model
    found = []
    for sample in chosen_samples(scene, which):
        model_input = prepare(model, _image(sample.path))
        if relu:
            scores = scores_of(model, model_input)
        else:
            off = without_relu(model, model_input)
            scores = named_scores(model, off.scores, off.reading)
        found.append(Verdict(sample, scores))
    return tuple(found)


@cache
def thumbnail(path: Path) -> bytes:
    """Return a sample as a small JPEG file."""
    return encode_jpeg(shrunk(_image(path).pixels, _THUMBNAIL), quality=85)


@cache
def _image(path: Path) -> InputImage:
    """Read a sample once; all together take a few megabytes."""
    return reading.read(path)
