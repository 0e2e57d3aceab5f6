"""Draw figures of several live parts: maps, tables, class probabilities, samples with classes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz.capturing.inputs import prepare_input
from hookviz.drawing.grid import Grid, make_grid
from hookviz.drawing.overlay import shrunk
from hookviz.drawing.pictures import encode_jpeg
from hookviz.drawing.scales import Limits
from hookviz.explaining.scores.scoring import without_relu
from hookviz.images.samples import Sample, samples
from hookviz.language.saying import say
from hookviz.lessons.layers import Map
from hookviz.lessons.part import LessonScene
from hookviz.lessons.pictures import photograph
from hookviz.lessons.scores import Scores, chance, named_scores, scores_of
from hookviz.markup import data_url
from hookviz.types import ModelInput
from hookviz.ui.components.files import style
from hookviz.ui.state import sample_image
from hookviz.ui.theme import diverging
from hookviz.wording import number, percent

MIXED, UNKNOWN = CHOICES = ("mixed", "unknown")
"""Samples: as many photographs as drawings, or those of no class of the network."""

_BARS_SHEET = Path(__file__).with_name("class_bars.css")
_STRIP_SHEET = Path(__file__).with_name("picture_strip.css")
_OF_A_KIND = 4
_THUMBNAIL_PX = 240  # on the longer side


def grid_of(
    maps: Map, title: str = "", *, top: int | None = None, limits: Limits | None = None
) -> Grid:
    """Draw maps ``(C, H, W)`` in the explorer's colours: blue below zero, red above, zero neutral.

    Args:
        maps: one or more.
        title: of the grid.
        top: number of channels, the strongest first; None for all in their order.
        limits: of another grid with as many channels, for the same colours.
    """
    return make_grid(
        maps,
        sort="index" if top is None else "max",
        top=top,
        scale="balanced",
        colormap=_colormap(maps if limits is None else limits.low),
        title=title,
        limits=limits,
    )


def show_on_photograph(
    scene: LessonScene, grid: Grid, tile: int, channel: int | None = None
) -> None:
    """Draw a tile's map over the lesson's image; `channel` is its number, if it has another one."""
    number = tile if channel is None else channel
    st.image(
        photograph(scene, grid.channel_pixels(tile)),
        width="stretch",
        output_format="JPEG",
        alt=say("The map of channel {channel} laid over the image.", channel=number),
    )


def _colormap(values: NDArray[np.floating[Any]]) -> str:
    """Return the colormap of values: a diverging one if any is below zero."""
    if bool((values < 0).any()):
        return diverging()
    return "inferno" if st.context.theme.type == "dark" else "gray_r"


def number_table(
    values: Map, title: str, *, marked: int = -1, struck: NDArray[np.bool_] | None = None
) -> str:
    """Return numbers ``(rows, columns)`` as an HTML table with a title.

    Args:
        values: the numbers.
        title: of the table.
        marked: index of the highlighted number, counted row by row; -1 for none.
        struck: the numbers that are struck through.
    """
    rows = []
    for row, line in enumerate(values):
        cells = ""
        for column, value in enumerate(line):
            kind = ""
            if row * len(line) + column == marked:
                kind = "taken"
            elif struck is not None and struck[row, column]:
                kind = "gone"
            cells += f'<td class="{kind}">{number(float(value))}</td>'
        rows.append(f"<tr>{cells}</tr>")
    caption = f"<caption>{escape(title)}</caption>"
    return f'<table class="hv-weights">{caption}{"".join(rows)}</table>'


def show_before_and_after(
    before: Scores,
    after: Scores,
    *,
    titles: tuple[str, str] | None = None,
    written: Callable[[float], str] = percent,
) -> None:
    """Show the five likeliest classes before and after a change; the former first is marked.

    Args:
        before: scores before the change.
        after: scores after it.
        titles: of the two lists, if not *Before* and *After*.
        written: formats a probability.
    """
    first, second = titles or (say("Before"), say("After"))
    lists = _list(first, before, before.best, written) + _list(second, after, before.best, written)
    st.html(f'{style(_BARS_SHEET)}<div class="hv-two-lists">{lists}</div>')


def _list(title: str, scores: Scores, first: int, written: Callable[[float], str]) -> str:
    chances = scores.chances
    rows = "".join(
        f"<li{' class=first' if target == first else ''}>"
        f'<span class="label" title="{escape(scores.name(target))}">'
        f"{escape(scores.name(target))}</span>"
        f"<span>{escape(written(float(chances[target])))}</span>"
        f'<span class="track"><span class="bar" style="width:{chances[target]:.2%}"></span></span>'
        "</li>"
        for target in scores.first(5)
    )
    return f'<div><p>{escape(title)}</p><ol aria-label="{escape(title)}">{rows}</ol></div>'


@dataclass(frozen=True, eq=False, slots=True)
class Verdict:
    """A sample and its class scores."""

    sample: Sample
    scores: Scores


def chosen_samples(scene: LessonScene, choice: str) -> list[Sample]:
    """Return the samples of one of `CHOICES`, eight at most."""
    photographs = [sample for sample in samples() if sample.kind == "photo"]
    drawings = [sample for sample in samples() if sample.kind != "photo"]
    if choice == MIXED:
        return photographs[:_OF_A_KIND] + drawings[:_OF_A_KIND]
    known = {name.casefold() for name in scene.model.categories}
    unknown = [each for each in drawings + photographs if each.title.casefold() not in known]
    return unknown[: 2 * _OF_A_KIND]


def verdicts(scene: LessonScene, choice: str, *, relu: bool = True) -> tuple[Verdict, ...]:
    """Return each sample with its class scores, with the network's ReLUs or without them.

    Raises:
        ModelError: the network can't take them, or puts out no class scores.
    """

    def scores_without_relu(model_input: ModelInput) -> Scores:
        off = without_relu(scene.model, model_input)
        return named_scores(scene.model, off.scores, off.reading)

    def compute() -> tuple[Verdict, ...]:
        score = partial(scores_of, scene.model) if relu else scores_without_relu
        return tuple(
            Verdict(sample, score(prepare_input(scene.model, sample_image(sample))))
            for sample in chosen_samples(scene, choice)
        )

    return scene.cached(("verdicts", choice, relu), compute, lambda each: 8 * 1000 * len(each))


@cache
def _thumbnail(sample: Sample) -> str:
    """Return a sample as the URL of a small JPEG file."""
    small = shrunk(sample_image(sample).pixels, _THUMBNAIL_PX)
    return data_url(encode_jpeg(small, quality=85), "jpeg")


def show_verdicts(verdicts: Sequence[Verdict]) -> None:
    """Show each sample with its likeliest class and that class's probability."""
    figures = "".join(map(_figure, verdicts))
    st.html(f'{style(_STRIP_SHEET)}<div class="hv-verdicts">{figures}</div>')


def show_pictures(chosen: Sequence[Sample]) -> None:
    """Show samples in a row of small pictures, which keeps its height without any."""
    pictures = "".join(
        f'<img src="{_thumbnail(sample)}" alt="{title}" title="{title}">'
        for sample, title in ((each, escape(say(each.title))) for each in chosen)
    )
    st.html(f'{style(_STRIP_SHEET)}<div class="hv-small-pictures">{pictures}</div>')


def _figure(verdict: Verdict) -> str:
    scores, sample = verdict.scores, verdict.sample
    best = scores.best
    label, share = scores.name(best), float(scores.chances[best])
    return (
        f'<figure><img src="{_thumbnail(sample)}" alt="{escape(say(sample.title))}"><figcaption>'
        f'<b title="{escape(label)}">{escape(label)}</b><span>{escape(chance(share))}</span>'
        f'<i class="track"><i class="bar" style="width:{share:.2%}"></i></i></figcaption></figure>'
    )
