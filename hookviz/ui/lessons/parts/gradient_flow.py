"""Draw the gradient on its way back: a picture and a bar for each layer, clamped or not."""

from collections.abc import Sequence
from functools import cache
from html import escape
from pathlib import Path

import numpy as np
import streamlit as st

from hookviz.drawing.grid import Grid, make_grid
from hookviz.drawing.pictures import encode_png
from hookviz.language.saying import say
from hookviz.lessons.gradient_maps import IMAGE, Passed, layers_on_the_way
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts.gradient_flow import (
    AT,
    CLASS,
    SHARES,
    both_ways,
    hooked_layer,
    target_of,
)
from hookviz.lessons.scores import own_scores
from hookviz.markup import data_url
from hookviz.ui.lessons.picks import choose, remember_shown
from hookviz.ui.state import plain
from hookviz.ui.theme import diverging
from hookviz.wording import number

_CLASSES = 5  # to choose from
_OWN, _ONE = "own", "one"


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the controls, and the gradient at each place from the last layer to the image."""
    chosen, is_clamped, scale = _choose(scene, options, key)
    unclamped, clamped, limit = both_ways(scene, chosen)
    at = hooked_layer(scene, chosen)
    st.html(
        f"<style>{_style()}</style>"
        + _row(clamped if is_clamped else unclamped, unclamped, at if is_clamped else None, scale)
    )
    said = say(
        "Zero is in the middle of the colours, which end at the size that one cell in a hundred "
        "exceeds. Of each layer that channel is shown whose gradient is longest; of the image the "
        "sum over its three colours."
    )
    if is_clamped:
        said += " " + say(
            "The hook at {layer} lets no number above {limit} pass, signs aside.",
            layer=at,
            limit=number(limit),
        )
    if any(_is_flat(each) for each in unclamped):
        said += " " + say(
            "One colour alone: what follows that layer only adds its cells up, so each counts "
            "alike."
        )
    st.caption(plain(said))


def _choose(scene: LessonScene, options: Options, key: str) -> tuple[Options, bool, str]:
    """Show the controls; return the chosen options, if the hook clamps, and the scale."""
    names = own_scores(scene)
    layers = [layer.name for layer in layers_on_the_way(scene)]
    first_at = hooked_layer(scene, options)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        target = choose(
            st.selectbox,
            say("The score of"),
            names.first(_CLASSES),
            key,
            CLASS,
            first=target_of(scene, options),
            format_func=names.name,
            width=150,
        )
        clamp = choose(
            st.segmented_control,
            say("Gradient"),
            ("no", "yes"),
            key,
            "clamp",
            first=options["clamp"],
            format_func={"no": say("as it is"), "yes": say("clamped")}.__getitem__,
            required=True,
            width="content",
        )
        scale = choose(
            st.segmented_control,
            say("Scale"),
            (_OWN, _ONE),
            key,
            "scale",
            first=_OWN,
            format_func={_OWN: say("of each picture"), _ONE: say("shared")}.__getitem__,
            required=True,
            width="content",
        )
        at, limit = first_at, options["limit"]
        if clamp == "yes":
            at = choose(
                st.selectbox, say("Hook at"), layers[::-1], key, AT, first=first_at, width=200
            )
            limit = choose(
                st.select_slider,
                say("Limit, in percent of the largest that comes"),
                SHARES,
                key,
                "limit",
                first=options["limit"],
                width=260,
            )
    start = {"limit": options["limit"], CLASS: "", AT: "", "clamp": options["clamp"]}
    shown = {
        "limit": limit,
        CLASS: "" if target == names.best else str(target),
        AT: "" if at == first_at else at,
        "clamp": clamp,
    }
    remember_shown(key, shown, start)
    return {**options, **shown}, clamp == "yes", scale


def _row(way: Sequence[Passed], unclamped: Sequence[Passed], hooked: str | None, scale: str) -> str:
    """Return the places of the way as figures, the last layer first, with bars of their lengths."""
    sizes = [each.norm for each in (*way, *unclamped)]
    longest = max((size for size in sizes if np.isfinite(size)), default=0.0) or 1.0
    maps = [_map(each, before) for each, before in zip(way, unclamped, strict=True)]
    span = max(map(_end, maps), default=0.0) if scale == _ONE else None
    figures = "".join(
        _figure(passed, before, _drawn(values, span), longest, hooked)
        for passed, before, values in zip(way, unclamped, maps, strict=True)
    )
    label = escape(say("The gradient on its way back, the last layer first"))
    return f'<div class="hv-way"><ol class="hv-way-back" aria-label="{label}">{figures}</ol></div>'


def _is_flat(passed: Passed) -> bool:
    """Return whether all cells of the channel that is shown have the same gradient, not 0."""
    values = _map(passed, passed)
    return bool(np.ptp(values) <= 1e-6 * np.abs(values).max() and values.any())


def _map(passed: Passed, unclamped: Passed) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    if passed.layer == IMAGE:
        return np.asarray(passed.values.sum(0), np.float32)
    return np.asarray(passed.values[unclamped.longest], np.float32)


def _figure(passed: Passed, before: Passed, grid: Grid, longest: float, hooked: str | None) -> str:
    url = data_url(encode_png(grid.channel_pixels(0)))
    title = say("the image")
    if passed.layer != IMAGE:
        title = say("{layer}, channel {channel}", layer=passed.layer, channel=before.longest)
    largest = say("up to ±{largest}", largest=number(_largest(grid)))
    length = say("length {length}", length=number(passed.norm))
    badge = escape(say("the hook"))
    hook = f'<span class="hv-way-hook">{badge}</span>'
    bars = _bar(passed.norm / longest) + (
        f'<i class="hv-way-was" style="left:{min(1, before.norm / longest):.2%}"></i>'
        if hooked
        else ""
    )
    return (
        f"<li{' class=hooked' if passed.layer == hooked else ''}>"
        f'<img src="{url}" alt="{escape(title)}">'
        f"<b>{escape(title)}</b>{hook if passed.layer == hooked else ''}"
        f"<span>{escape(largest)}</span>"
        f'<span class="hv-way-track">{bars}</span><span>{escape(length)}</span></li>'
    )


def _largest(grid: Grid) -> float:
    return float(max(abs(grid.stats.minimum[0]), abs(grid.stats.maximum[0])))


def _bar(share: float) -> str:
    return f'<span class="hv-way-bar" style="width:{min(1, share):.2%}"></span>'


def _drawn(values: np.ndarray[tuple[int, int], np.dtype[np.float32]], span: float | None) -> Grid:
    size = _end(values) if span is None else span
    ends = make_grid(np.array([[[-(size or 1.0), size or 1.0]]], np.float32))
    return make_grid(values[None], limits=ends.limits, colormap=diverging())


def _end(values: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> float:
    """Return the size that one cell in a hundred exceeds; the largest where nearly all are 0."""
    sizes = np.nan_to_num(np.abs(values), posinf=0)
    return float(np.percentile(sizes, 99)) or float(sizes.max())


@cache
def _style() -> str:
    return Path(__file__).with_suffix(".css").read_text("utf-8")
