"""Read the class scores of several samples, with their ReLUs or without, and draw them in a row."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

import streamlit as st

from hookviz.capturing.inputs import prepare
from hookviz.drawing.overlay import shrunk
from hookviz.drawing.pictures import encode_jpeg
from hookviz.explaining.scores.scoring import without_relu
from hookviz.images import reading
from hookviz.images.samples import Sample, samples
from hookviz.language.saying import say
from hookviz.lessons.part import LessonScene
from hookviz.lessons.scores import Scores, chance, named_scores, scores_of
from hookviz.markup import data_url
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
def _thumbnail(path: Path) -> bytes:
    """Return a sample as a small JPEG file."""
    return encode_jpeg(shrunk(_image(path).pixels, _THUMBNAIL), quality=85)


@cache
def _image(path: Path) -> InputImage:
    """Read a sample once; all together take a few megabytes."""
    return reading.read(path)


def show_strip(found: Sequence[Verdict]) -> None:
    """Show each sample with its likeliest class and that one's probability."""
    figures = "".join(map(_figure, found))
    st.html(f'<style>{_style()}</style><div class="hv-verdicts">{figures}</div>')


def show_pictures(found: Sequence[Sample]) -> None:
    """Show samples alone, small and in a row; a row is there for none, too, so nothing moves."""
    pictures = "".join(
        f'<img src="{data_url(_thumbnail(sample.path), "jpeg")}" alt="{title}" title="{title}">'
        for sample, title in ((each, escape(say(each.title))) for each in found)
    )
    st.html(f'<style>{_style()}</style><div class="hv-small-pictures">{pictures}</div>')


def _figure(verdict: Verdict) -> str:
    scores, sample = verdict.scores, verdict.sample
    best = scores.best
    label, share = scores.name(best), float(scores.chances[best])
    picture = data_url(_thumbnail(sample.path), "jpeg")
    return (
        f'<figure><img src="{picture}" alt="{escape(say(sample.title))}"><figcaption>'
        f'<b title="{escape(label)}">{escape(label)}</b><span>{escape(chance(share))}</span>'
        f'<i class="track"><i class="bar" style="width:{share:.2%}"></i></i></figcaption></figure>'
    )


@cache
def _style() -> str:
    return Path(__file__).with_suffix(".css").read_text("utf-8")
