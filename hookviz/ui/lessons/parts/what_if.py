"""Draw a slider that changes the network or its picture, and the classes before and after."""

from functools import partial

import numpy as np
import streamlit as st

from hookviz.capturing.engine import capture
from hookviz.drawing.grid import Grid, make_grid
from hookviz.images.repainting import check_repaints
from hookviz.language.saying import say, say_count
from hookviz.lessons.layers import layer_of
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts import what_if
from hookviz.lessons.scores import Scores, own_scores, scores_of, scores_without
from hookviz.types import LayerInfo
from hookviz.ui.components.mosaic import mosaic
from hookviz.ui.lessons.class_bars import show_before_and_after
from hookviz.ui.lessons.picks import choose, pick, picked, remember_shown, slide
from hookviz.ui.state import plain
from hookviz.ui.theme import diverging

_GRID_HEIGHT = 260  # pixels
_ENLARGED = 16  # times, so that a change of a few levels of 255 is seen


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the controls, what is changed, and what the network says of it."""
    if options["change"] == what_if.SILENCE:
        after = _silence(scene, options, key)
    else:
        after = _repaint(scene, options, key)
    before = own_scores(scene)
    show_before_and_after(before, after)
    st.markdown(f"**{plain(what_if.outcome(before, after))}**")


def _silence(scene: LessonScene, options: Options, key: str) -> Scores:
    layer = layer_of(scene, options["layer"])
    channels = layer.output_shape[0]
    amount = what_if.slider_of(what_if.SILENCE, options["amount"], channels)
    flipped = {int(each) for each in picked(key, "flipped", "").split(",") if each.isdecimal()}
    flipped &= set(range(channels))
    clear = partial(pick, key, "flipped", "")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        count = slide(
            say("Channels switched off"),
            *(amount.low, amount.high, key, "count"),
            first=amount.start,
            then=clear,
        )
        names = {"most": say("that matter most"), "least": say("that matter least")}
        order = choose(
            st.segmented_control,
            say("First those"),
            what_if.ORDERS,
            key,
            "order",
            first=options["order"],
            then=clear,
            format_func=names.__getitem__,
            required=True,
            width="content",
        )
    remember_shown(key, {"amount": str(count)}, {"amount": str(amount.start)})
    silent = set(what_if.silent_channels(scene, layer, count, str(order))) ^ flipped
    grid = _without(scene, layer, silent)
    said = say_count(
        "{count} of {channels} channels of {layer} is off. A click switches one off or on.",
        "{count} of {channels} channels of {layer} are off. A click switches one off or on.",
        *(len(silent),),
        channels=channels,
        layer=layer.name,
    )
    mosaic(grid, said, partial(_flip, key, flipped), key=f"{key} grid", height=_GRID_HEIGHT)
    st.caption(plain(said))
    return scores_without(scene, layer, silent)


def _flip(key: str, flipped: set[int], channel: int, _cell: tuple[int, int] | None) -> None:
    pick(key, "flipped", tuple(sorted(flipped ^ {channel})))


def _without(scene: LessonScene, layer: LayerInfo, silent: set[int]) -> Grid:
    """Draw the layer's maps in the colours they have with all channels, the silent ones at 0."""
    recorded = capture(scene.model, scene.model_input, layer.name, cache=scene.cache)
    with_all = make_grid(recorded[layer.name], scale="symmetric")
    colormap = diverging()
    values = recorded[layer.name].values.numpy().copy()
    values[sorted(silent)] = 0
    return make_grid(values, title=layer.name, colormap=colormap, limits=with_all.limits)


def _repaint(scene: LessonScene, options: Options, key: str) -> Scores:
    change = options["change"]
    amount = what_if.slider_of(change, options["amount"])
    labels = {
        what_if.SHIFT: say("Shift to the right (pixels)"),
        what_if.TURN: say("Turn (degrees)"),
        what_if.LIGHT: say("Brightness (percent)"),
        what_if.NOISE: say("Random change of every number (levels of 255)"),
        what_if.FOOL: say("Most that any number may change (levels of 255)"),
    }
    chosen = slide(
        labels[change],
        *(amount.low, amount.high, key, "amount"),
        first=amount.start,
        step=amount.step,
    )
    remember_shown(key, {"amount": str(chosen)}, {"amount": str(amount.start)})
    after = what_if.changed_input(scene, change, chosen)
    _, picture = check_repaints(scene.model, scene.model_input)
    changed = after.picture
    assert changed is not None
    pictures = [(say("Before"), picture), (say("After"), changed)]
    if change in (what_if.NOISE, what_if.FOOL):
        added = what_if.difference(picture, changed, _ENLARGED)
        pictures.insert(1, (say("What is added, {factor}×", factor=_ENLARGED), added))
    for column, (title, shown) in zip(st.columns(len(pictures)), pictures, strict=True):
        with column:
            st.image(np.asarray(shown), width="stretch", alt=title, caption=title)
    return scores_of(scene.model, after)
