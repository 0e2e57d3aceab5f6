"""Follow the gradient of a class's score back through the layers, with or without a clamp.

The page draws a picture and a bar for each layer on the way.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
from hookviz.ui.components.files import style
from hookviz.ui.lessons.picks import choose, choose_button, remember_options
from hookviz.ui.state import plain
from hookviz.ui.theme import diverging
from hookviz.wording import number

_SHARES = ("50", "20", "10", "5", "2", "1")
"""Limits, in percent of the largest number at the hook."""
CLASS, AT = "class", "at"
"""Options that the page adds: the class, and the layer of the clamping hook."""
IMAGE = ""
"""Name of the image among the layers: the end of the way."""


@dataclass(frozen=True, eq=False, slots=True)
class LayerGradient:
    """Gradient at one layer's output.

    Attributes:
        layer: the layer; `IMAGE` for the image.
        values: ∂score/∂output behind the hook, float32 ``(C, H, W)``.
        largest: magnitude of the largest number before the hook.
    """

    layer: str
    values: NDArray[np.float32] = field(repr=False)
    largest: float

    @property
    def norm(self) -> float:
        """The length of `values`."""
        return float(np.linalg.norm(self.values.astype(np.float64)))

    @property
    def longest(self) -> int:
        """The channel with the longest gradient."""
        sizes = np.square(self.values.astype(np.float64)).sum((1, 2))
        return int(np.nan_to_num(sizes).argmax())


def layers_back(scene: LessonScene) -> list[LayerInfo]:
    """Return a few conv layers from the first to the last, each once."""
    layers = (layer_of(scene, place) for place in PLACES if place != "second")
    return list({layer.name: layer for layer in layers}.values())


def gradients_back(
    scene: LessonScene, target: int, at: str = "", limit: float = 0.0
) -> list[LayerGradient]:
    """Return the gradient of a class's score at `layers_back`, backwards, and at the image.

    Args:
        scene: the model and the image.
        target: the class.
        at: the layer whose hook clamps the gradient; empty for no clamp.
        limit: magnitude to which it clamps.

    Raises:
        HookVizError: the network has no conv layer or no class scores, or can't be differentiated.
    """
    layers = layers_back(scene)
    cells = sum(int(np.prod(layer.output_shape)) for layer in layers)
    nbytes = 4 * (cells + scene.model_input.tensor.numel())
    key = ("way back", target, at, limit)
    return scene.cached(key, lambda: _gradients_back(scene, target, layers, (at, limit)), nbytes)


def _gradients_back(
    scene: LessonScene, target: int, layers: Sequence[LayerInfo], clamp: tuple[str, float]
) -> list[LayerGradient]:
    gradients: dict[str, LayerGradient] = {}
    at, limit = clamp

    def hook(gradient: Gradient) -> Tensor | None:
        if gradient.side != "output" or gradient.index or gradient.place:
            return None
        value, is_clamped = gradient.value, gradient.layer == at
        after = value.clamp(-limit, limit) if is_clamped else value
        gradients[gradient.layer] = _layer_gradient(gradient.layer, value, after)
        return after if is_clamped else None

    model = scene.model
    with differentiable(model) as network:
        images = scene.model_input.tensor.to(*device_and_dtype(network), copy=True)
        images.requires_grad_()
        with on_gradients(network, [layer.name for layer in layers], hook):
            score = class_scores(model, network, images).values[0, target]
            (of_image,) = backward_pass(model, score, [images])
    if of_image is not None:
        gradients[IMAGE] = _layer_gradient(IMAGE, of_image, of_image)
    names = [*(layer.name for layer in reversed(layers)), IMAGE]
    return [gradients[name] for name in names if name in gradients]


def _layer_gradient(layer: str, before: Tensor, after: Tensor) -> LayerGradient:
    values = after.detach()[0].cpu().float().numpy().copy()
    return LayerGradient(layer, values, float(before.detach().abs().max()))


def _target_of(scene: LessonScene, options: Options) -> int:
    """Return the chosen class, or the likeliest."""
    return int(options.get(CLASS, "") or own_scores(scene).best)


def _hooked_layer(scene: LessonScene, options: Options) -> str:
    """Return the layer of the clamping hook: the chosen one, or the last but one."""
    names = [layer.name for layer in layers_back(scene)]
    chosen = options.get(AT, "")
    return chosen if chosen in names else names[max(0, len(names) - 2)]


def with_and_without_clamp(
    scene: LessonScene, options: Options
) -> tuple[list[LayerGradient], list[LayerGradient], float]:
    """Return the gradients without the clamp, with it, and its limit."""
    target, at = _target_of(scene, options), _hooked_layer(scene, options)
    plain = gradients_back(scene, target)
    largest = next((each.largest for each in plain if each.layer == at), 0.0)
    limit = largest * int(options["limit"]) / 100
    return plain, gradients_back(scene, target, at, limit), limit


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    plain, clamped, limit = with_and_without_clamp(scene, options)
    at = _hooked_layer(scene, options)
    here = next(each for each in plain if each.layer == at)
    cut = (abs(here.values) > limit).mean() if limit else 0.0
    return {
        "label": own_scores(scene).name(_target_of(scene, options)),
        "hooked": at,
        "last": plain[0].layer,
        "first": plain[-2].layer,
        "came": number(here.largest),
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


_Map = NDArray[np.float32]
_CLASSES = 5  # to choose from
_OWN, _SHARED = "own", "one"
_SHEET = Path(__file__).with_suffix(".css")


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the controls, and the gradient at each layer, the last one first, and at the image."""
    chosen, is_clamped, scale = _choose(scene, options, key)
    unclamped, clamped, limit = with_and_without_clamp(scene, chosen)
    at = _hooked_layer(scene, chosen)
    gradients = clamped if is_clamped else unclamped
    row = _row(gradients, unclamped, at if is_clamped else None, is_shared=scale == _SHARED)
    st.html(f"{style(_SHEET)}{row}")
    text = say(
        "Zero is in the middle of the colours, which end at the size that one cell in a hundred "
        "exceeds. Of each layer that channel is shown whose gradient is longest; of the image the "
        "sum over its three colours."
    )
    if is_clamped:
        text += " " + say(
            "The hook at {layer} lets no number above {limit} pass, signs aside.",
            layer=at,
            limit=number(limit),
        )
    if any(_is_flat(each) for each in unclamped):
        text += " " + say(
            "One colour alone: what follows that layer only adds its cells up, so each counts "
            "alike."
        )
    st.caption(plain(text))


def _choose(scene: LessonScene, options: Options, key: str) -> tuple[Options, bool, str]:
    """Show the controls; return the chosen options, whether the hook clamps, and the scale."""
    names = own_scores(scene)
    layers = [layer.name for layer in layers_back(scene)]
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
        names_of_clamp = {"no": say("as it is"), "yes": say("clamped")}
        clamp = choose_button(
            say("Gradient"), names_of_clamp, key, "clamp", first=options["clamp"], width="content"
        )
        names_of_scale = {_OWN: say("of each picture"), _SHARED: say("shared")}
        scale = choose_button(
            say("Scale"), names_of_scale, key, "scale", first=_OWN, width="content"
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
    chosen = {
        "limit": limit,
        CLASS: "" if target == names.best else str(target),
        AT: "" if at == first_at else at,
        "clamp": clamp,
    }
    remember_options(key, chosen, start)
    return {**options, **chosen}, clamp == "yes", scale


def _row(
    gradients: Sequence[LayerGradient],
    unclamped: Sequence[LayerGradient],
    hooked: str | None,
    *,
    is_shared: bool,
) -> str:
    """Return the gradients as figures with bars of their lengths, on one scale if `is_shared`."""
    sizes = [each.norm for each in (*gradients, *unclamped)]
    longest = max((size for size in sizes if np.isfinite(size)), default=0.0) or 1.0
    maps = [_map(each, before) for each, before in zip(gradients, unclamped, strict=True)]
    end = max(map(_end, maps), default=0.0) if is_shared else None
    figures = "".join(
        _figure(gradient, before, _grid(values, end), longest, hooked)
        for gradient, before, values in zip(gradients, unclamped, maps, strict=True)
    )
    label = escape(say("The gradient on its way back, the last layer first"))
    return f'<div class="hv-way"><ol class="hv-way-back" aria-label="{label}">{figures}</ol></div>'


def _is_flat(gradient: LayerGradient) -> bool:
    """Return whether the longest channel's gradient is constant and not 0."""
    values = _map(gradient, gradient)
    return bool(np.ptp(values) <= 1e-6 * np.abs(values).max() and values.any())


def _map(gradient: LayerGradient, unclamped: LayerGradient) -> _Map:
    """Return the map of the channel that is longest without the clamp; of an image the sum."""
    if gradient.layer == IMAGE:
        return np.asarray(gradient.values.sum(0), np.float32)
    return np.asarray(gradient.values[unclamped.longest], np.float32)


def _figure(
    gradient: LayerGradient, before: LayerGradient, grid: Grid, longest: float, hooked: str | None
) -> str:
    url = data_url(encode_png(grid.channel_pixels(0)))
    title = say("the image")
    if gradient.layer != IMAGE:
        title = say("{layer}, channel {channel}", layer=gradient.layer, channel=before.longest)
    magnitude = float(max(abs(grid.stats.minimum[0]), abs(grid.stats.maximum[0])))
    largest = say("up to ±{largest}", largest=number(magnitude))
    length = say("length {length}", length=number(gradient.norm))
    is_hooked = gradient.layer == hooked
    badge = escape(say("the hook"))
    hook = f'<span class="hv-way-hook">{badge}</span>' if is_hooked else ""
    share, share_before = min(1, gradient.norm / longest), min(1, before.norm / longest)
    bars = f'<span class="hv-way-bar" style="width:{share:.2%}"></span>'
    if hooked:
        bars += f'<i class="hv-way-was" style="left:{share_before:.2%}"></i>'
    return (
        f"<li{' class=hooked' if is_hooked else ''}>"
        f'<img src="{url}" alt="{escape(title)}">'
        f"<b>{escape(title)}</b>{hook}"
        f"<span>{escape(largest)}</span>"
        f'<span class="hv-way-track">{bars}</span><span>{escape(length)}</span></li>'
    )


def _grid(values: _Map, end: float | None) -> Grid:
    """Draw a map on a scale from −`end` to `end`; None for its own end."""
    size = (_end(values) if end is None else end) or 1.0
    ends = make_grid(np.array([[[-size, size]]], np.float32))
    return make_grid(values[None], limits=ends.limits, colormap=diverging())


def _end(values: _Map) -> float:
    """Return the magnitude that one cell in a hundred exceeds, or the largest if that is 0."""
    sizes = np.nan_to_num(np.abs(values), posinf=0)
    return float(np.percentile(sizes, 99)) or float(sizes.max())
