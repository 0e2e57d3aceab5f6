"""Show maps with letters, each of another kernel, to tell apart; their kernels too if wanted."""

from collections.abc import Mapping
from functools import cache
from html import escape

import numpy as np
import streamlit as st

from hookviz.drawing.grid import make_grid
from hookviz.images.samples import samples
from hookviz.language.saying import say
from hookviz.lessons.kernels import PRESETS, TITLES, Kernel, fraction_text, same_size_map
from hookviz.lessons.layers import Map, correlation
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice
from hookviz.lessons.pictures import brightness, grey_of
from hookviz.markup import data_url
from hookviz.ui.lessons.figures import grid_of
from hookviz.ui.state import sample_image

_LETTERS = "ABCDEF"
_SIDE = 128  # cells of each map, at most
_MAX_CORRELATION = 0.85  # correlation of two maps, without signs, at which nobody tells them apart
_RING = "ring"
"""Sample with edges of every direction."""


def lettered(options: Options) -> Mapping[str, str]:
    """Return the kernels' names by the letters of their maps, in the lesson's order."""
    return dict(zip(_LETTERS, _names(options["kernels"]), strict=False))


def kernel_map(scene: LessonScene, kernel: Kernel) -> Map:
    """Return the map of a kernel on the image in grey, or on `_RING` where no map can be told."""
    own = grey_of(scene, _SIDE)
    return same_size_map(kernel, own if tells_apart(own) else _ring())


def tells_apart(grey: Map) -> bool:
    """Return whether a picture has edges of several directions: their maps differ then."""
    vertical, *others = (
        np.abs(same_size_map(PRESETS[name], grey))
        for name in ("vertical", "horizontal", "diagonal")
    )
    return all(correlation(vertical, other) <= _MAX_CORRELATION for other in others)


@cache
def _ring() -> Map:
    ring = next(each for each in samples() if each.name == _RING)
    return brightness(sample_image(ring).pixels, _SIDE)


def _facts(_scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    letters = lettered(options)
    facts: dict[str, Fact] = {"maps": len(letters)}
    for letter, name in letters.items():
        facts[f"letter_{name}"] = letter
        facts[f"kernel_{letter}"] = say(TITLES[name])
    return facts


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _check_kernels(value: str) -> str:
    names = _names(value)
    if not 2 <= len(names) <= len(_LETTERS) or len({*names}) < len(names):
        return say("From two to six different kernels belong here, with commas between them.")
    return next(filter(None, map(choice(PRESETS), names)), "")


PART = Part(
    name="four-maps",
    sentence="Maps of the photograph with letters, each made by a kernel of its own, to be told "
    "apart.",
    options=(
        Option(
            "kernels",
            "copy, vertical, blur, horizontal",
            f"Of each map in turn, of {', '.join(PRESETS)}.",
            _check_kernels,
        ),
        Option(
            "named", "no", "Whether each map's kernel is shown: yes or no.", choice(("yes", "no"))
        ),
    ),
    facts=_facts,
)


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the maps in their order, values below zero in blue and above in red."""
    named = options["named"] == "yes"
    tiles = "".join(
        _tile(scene, letter, name, named=named) for letter, name in lettered(options).items()
    )
    if not tells_apart(grey_of(scene, _SIDE)):
        st.caption(say("Your image has edges of one direction. These are the maps of a ring."))
    with st.container(key=f"{key}-maps"):
        st.html(f'<div class="hv-lettered{" named" if named else ""}">{tiles}</div>')


def _tile(scene: LessonScene, letter: str, name: str, *, named: bool) -> str:
    kernel = PRESETS[name]
    values = kernel_map(scene, kernel)
    grid = grid_of(values[None]) if (values < 0).any() else make_grid(values[None], colormap="gray")
    url = data_url(grid.channel_png(0, 2))
    title = say(TITLES[name])
    alt = (
        say("Map {letter}, made by the kernel for {kind}.", letter=letter, kind=title)
        if named
        else say("Map {letter}", letter=letter)
    )
    below = f"<figcaption>{escape(title)}{_table(kernel, title)}</figcaption>" if named else ""
    return (
        f'<figure><b aria-hidden="true">{letter}</b><img src="{url}" alt="{escape(alt)}">'
        f"{below}</figure>"
    )


def _table(kernel: Kernel, title: str) -> str:
    rows = "".join(
        f"<tr>{''.join(f'<td>{fraction_text(weight)}</td>' for weight in row)}</tr>"
        for row in kernel
    )
    says = escape(say("The kernel for {kind}", kind=title))
    return f'<table class="hv-weights" aria-label="{says}">{rows}</table>'
