"""Draw maps in the page's colours, and numbers as a table, for live parts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz.capturing.inputs import prepare
from hookviz.drawing.grid import Grid, make_grid
from hookviz.drawing.overlay import shrunk
from hookviz.drawing.pictures import encode_jpeg
from hookviz.drawing.scales import Limits
from hookviz.explaining.scores.without_relu import without_relu
from hookviz.images import reading
from hookviz.images.samples import Sample, samples
from hookviz.language.saying import say
from hookviz.lessons.maps import Map
from hookviz.lessons.part import LessonScene
from hookviz.lessons.pictures import photograph
from hookviz.lessons.scores import Scores, chance, named_scores, scores_of
from hookviz.markup import data_url
from hookviz.types import InputImage
from hookviz.ui.theme import diverging
from hookviz.wording import number, percent


def grid_of(
    maps: Map, title: str = "", *, top: int | None = None, limits: Limits | None = None
) -> Grid:
    """Draw maps ``(C, H, W)`` as the explorer does: blue below zero, red above, zero neutral.

    Args:
        maps: one or more.
        title: what they are called.
        top: how many channels to show, the strongest first; None shows all in their order.
        limits: those of another grid of as many channels, so that colours mean the same.
    """
    return make_grid(
        maps,
        sort="index" if top is None else "max",
        top=top,
        scale="balanced",
        colormap=_colours_of(maps if limits is None else limits.low),
        title=title,
        limits=limits,
    )


def show_on_photograph(scene: LessonScene, grid: Grid, channel: int) -> None:
    """Draw a channel's map of the grid laid over the lesson's image."""
    st.image(
        photograph(scene, grid.channel_pixels(channel)),
        width="stretch",
        output_format="JPEG",
        alt=say("The map of channel {channel} laid over the image.", channel=channel),
    )


def _colours_of(values: NDArray[np.floating[Any]]) -> str:
    """Return the colormap for such values, by whether any is below zero."""
    if bool((values < 0).any()):
        return diverging()
    return "inferno" if st.context.theme.type == "dark" else "gray_r"


def number_table(
    values: Map, title: str, *, taken: int = -1, gone: NDArray[np.bool_] | None = None
) -> str:
    """Return numbers ``(rows, columns)`` as a table with a title.

    Args:
        values: the numbers.
        title: what they are.
        taken: which of them stands out, counted row by row.
        gone: those that are struck through.
    """
    rows = []
    for row, line in enumerate(values):
        cells = ""
        for column, value in enumerate(line):
            kind = ""
            if row * len(line) + column == taken:
                kind = "taken"
            elif gone is not None and gone[row, column]:
                kind = "gone"
            cells += f'<td class="{kind}">{number(float(value))}</td>'
        rows.append(f"<tr>{cells}</tr>")
    caption = f"<caption>{escape(title)}</caption>"
    return f'<table class="hv-weights">{caption}{"".join(rows)}</table>'


_SHOWN = 5


def show_before_and_after(
    before: Scores,
    after: Scores,
    *,
    titles: tuple[str, str] | None = None,
    written: Callable[[float], str] = percent,
) -> None:
    """Show five classes each, so that nothing moves; the one first before stands out.

    Args:
        before: scores before a change.
        after: scores after it.
        titles: what the two lists are called, before and after without.
        written: how a probability is written.
    """
    first, second = titles or (say("Before"), say("After"))
    lists = _list(first, before, before.best, written) + _list(second, after, before.best, written)
    st.html(f'<style>{_bars_style()}</style><div class="hv-two-lists">{lists}</div>')


def _list(title: str, scores: Scores, first: int, written: Callable[[float], str]) -> str:
    chances = scores.chances
    rows = "".join(
        f"<li{' class=first' if target == first else ''}>"
        f'<span class="label" title="{escape(scores.name(target))}">'
        f"{escape(scores.name(target))}</span>"
        f"<span>{escape(written(float(chances[target])))}</span>"
        f'<span class="track"><span class="bar" style="width:{chances[target]:.2%}"></span></span>'
        "</li>"
        for target in scores.first(_SHOWN)
    )
    return f'<div><p>{escape(title)}</p><ol aria-label="{escape(title)}">{rows}</ol></div>'


@cache
def _bars_style() -> str:
    return Path(__file__).with_name("class_bars.css").read_text("utf-8")


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
    st.html(f'<style>{_strip_style()}</style><div class="hv-verdicts">{figures}</div>')


def show_pictures(found: Sequence[Sample]) -> None:
    """Show samples alone, small and in a row; a row is there for none, too, so nothing moves."""
    pictures = "".join(
        f'<img src="{data_url(_thumbnail(sample.path), "jpeg")}" alt="{title}" title="{title}">'
        for sample, title in ((each, escape(say(each.title))) for each in found)
    )
    st.html(f'<style>{_strip_style()}</style><div class="hv-small-pictures">{pictures}</div>')


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
def _strip_style() -> str:
    return Path(__file__).with_name("picture_strip.css").read_text("utf-8")
