"""Follow a class score's gradient back through the layers, clamped by a hook or not.

The page draws the gradient on its way back: a picture and a bar for each layer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from torch import Tensor

from hookviz.drawing.grid import Grid, make_grid
from hookviz.drawing.pictures import encode_png
from hookviz.explaining.scores.scoring import class_scores
from hookviz.hooking.device import device_and_dtype
from hookviz.hooking.forward_pass import backward_pass, differentiable
from hookviz.hooking.gradients import Gradient, on_gradients
from hookviz.language.saying import mark, say
from hookviz.lessons.layers import PLACES, layer_of
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice
from hookviz.lessons.scores import own_scores
from hookviz.markup import data_url
from hookviz.types import LayerInfo
from hookviz.ui.lessons.picks import choose, remember_shown
from hookviz.ui.state import plain
from hookviz.ui.theme import diverging
from hookviz.wording import number

_SHARES = ("50", "20", "10", "5", "2", "1")
"""Limits, in percent of the largest number that comes to the hook."""
CLASS, AT = "class", "at"
"""Among the options the class and the layer whose hook clamps; in no file."""


IMAGE = ""
"""Stands for the image among the layers: the last place that the gradient comes to."""


@dataclass(frozen=True, eq=False, slots=True)
class Passed:
    """Gradient at one place on its way back.

    Attributes:
        layer: at whose output; `IMAGE` for the image.
        values: ∂score/∂output as the hook passed it on, float32 ``(C, H, W)``.
        came: the largest number that came to the hook, signs aside.
    """

    layer: str
    values: NDArray[np.float32] = field(repr=False)
    came: float

    @property
    def norm(self) -> float:
        """The length of what was passed on."""
        return float(np.linalg.norm(self.values.astype(np.float64)))

    @property
    def longest(self) -> int:
        """The channel with the longest gradient."""
        sizes = np.square(self.values.astype(np.float64)).sum((1, 2))
        return int(np.nan_to_num(sizes).argmax())


def layers_on_the_way(scene: LessonScene) -> list[LayerInfo]:
    """Return a few conv layers with maps, from the first to the last, each once."""
    layers = (layer_of(scene, place) for place in PLACES if place != "second")
    return list({layer.name: layer for layer in layers}.values())


def way_back(scene: LessonScene, target: int, at: str = "", limit: float = 0.0) -> list[Passed]:
    """Return the gradient of a class's score at each of these layers, the last one first.

    The image comes last of all.

    Args:
        scene: whose model and image.
        target: the class.
        at: the layer whose hook clamps what comes, for all before it; "" clamps nowhere.
        limit: no number that it passes on is larger, signs aside.

    Raises:
        HookVizError: the network has no conv layer or no class scores, or can't be differentiated.
    """
    layers = layers_on_the_way(scene)
    cells = sum(int(np.prod(layer.output_shape)) for layer in layers)
    nbytes = 4 * (cells + scene.model_input.tensor.numel())
    key = ("way back", target, at, limit)
    return scene.cached(key, lambda: _way_back(scene, target, layers, (at, limit)), nbytes)


def _way_back(
    scene: LessonScene, target: int, layers: Sequence[LayerInfo], clamp: tuple[str, float]
) -> list[Passed]:
    passed: dict[str, Passed] = {}
    at, limit = clamp

    def hook(gradient: Gradient) -> Tensor | None:
        if gradient.side != "output" or gradient.index or gradient.place:
            return None
        value = gradient.value
        on = value.clamp(-limit, limit) if gradient.layer == at else value
        passed[gradient.layer] = _passed(gradient.layer, value, on)
        return on if gradient.layer == at else None

    model = scene.model
    with differentiable(model) as network:
        images = scene.model_input.tensor.to(*device_and_dtype(network), copy=True)
        images.requires_grad_()
        with on_gradients(network, [layer.name for layer in layers], hook):
            score = class_scores(model, network, images).values[0, target]
            (of_image,) = backward_pass(model, score, [images])
    if of_image is not None:
        passed[IMAGE] = _passed(IMAGE, of_image, of_image)
    names = [*(layer.name for layer in reversed(layers)), IMAGE]
    return [passed[name] for name in names if name in passed]


def _passed(layer: str, came: Tensor, on: Tensor) -> Passed:
    values = on.detach()[0].cpu().float().numpy().copy()
    return Passed(layer, values, float(came.detach().abs().max()))


def _target_of(scene: LessonScene, options: Options) -> int:
    """Return the class whose score it is the gradient of."""
    return int(options.get(CLASS, "") or own_scores(scene).best)


def _hooked_layer(scene: LessonScene, options: Options) -> str:
    """Return the name of the layer whose hook clamps: the last but one, if nothing is chosen."""
    names = [layer.name for layer in layers_on_the_way(scene)]
    chosen = options.get(AT, "")
    return chosen if chosen in names else names[max(0, len(names) - 2)]


def both_ways(scene: LessonScene, options: Options) -> tuple[list[Passed], list[Passed], float]:
    """Return the way back as it is, and with the hook's clamp, and the limit of that."""
    target, at = _target_of(scene, options), _hooked_layer(scene, options)
    plain = way_back(scene, target)
    came = next((each.came for each in plain if each.layer == at), 0.0)
    limit = came * int(options["limit"]) / 100
    return plain, way_back(scene, target, at, limit), limit


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    plain, clamped, limit = both_ways(scene, options)
    at = _hooked_layer(scene, options)
    here = next(each for each in plain if each.layer == at)
    cut = (abs(here.values) > limit).mean() if limit else 0.0
    return {
        "label": own_scores(scene).name(_target_of(scene, options)),
        "hooked": at,
        "last": plain[0].layer,
        "first": plain[-2].layer,
        "came": number(here.came),
        "lets": number(limit),
        "percent": int(options["limit"]),
        "cut": float(cut),
        "whole": number(plain[-1].norm),
        "cropped": number(clamped[-1].norm),
        "at_last": number(plain[0].norm),
        "at_first": number(plain[-2].norm),
    }


PART = Part(
    name="gradient-flow",
    sentence=mark(
        "The gradient of a class's score as pictures, from the last layer back to the image, with "
        "its length at each, as it is or clamped by a hook at a layer of the learner's choice."
    ),
    options=(
        Option(
            "clamp",
            "no",
            mark("Whether the hook clamps at first: yes or no."),
            choice(("yes", "no")),
        ),
        Option(
            "limit",
            "10",
            mark("The limit at first, in percent of the largest number that comes."),
            choice(_SHARES),
        ),
    ),
    facts=_facts,
)


_CLASSES = 5  # to choose from
_OWN, _ONE = "own", "one"


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the controls, and the gradient at each place from the last layer to the image."""
    chosen, is_clamped, scale = _choose(scene, options, key)
    unclamped, clamped, limit = both_ways(scene, chosen)
    at = _hooked_layer(scene, chosen)
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
    first_at = _hooked_layer(scene, options)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        target = choose(
            st.selectbox,
            say("The score of"),
            names.first(_CLASSES),
            key,
            CLASS,
            first=_target_of(scene, options),
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
                _SHARES,
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
