"""Draw a slider that changes the network or its picture, and the classes before and after."""

from functools import partial

import numpy as np
import streamlit as st

from hookviz.capturing.engine import capture
from hookviz.drawing.grid import Grid, make_grid, with_channels
from hookviz.images.preprocess import check_repaints
from hookviz.language.naming import listed_label
from hookviz.language.saying import say, say_count
from hookviz.lessons.chances import chance
from hookviz.lessons.layers import layer_of
from hookviz.lessons.maps import maps_before_and_after, moved, strongest_first
from hookviz.lessons.part import LessonScene, Options
from hookviz.lessons.parts import what_if
from hookviz.lessons.scores import Scores, own_scores, scores_of, scores_without
from hookviz.types import LayerInfo, ModelInput
from hookviz.ui.components.mosaic import mosaic
from hookviz.ui.lessons.class_bars import show_before_and_after
from hookviz.ui.lessons.maps import grid_of
from hookviz.ui.lessons.picks import (
    choose,
    pick,
    pick_channel,
    picked,
    picked_channel,
    remember_shown,
    slide,
)
from hookviz.ui.state import plain
from hookviz.ui.theme import diverging
from hookviz.wording import percent

_GRID_HEIGHT = 260  # pixels
_PICTURES = "hv-changed-pictures"  # smaller in a low window: class_bars.css
_PICTURE = 190  # pixels at most along a picture, with the gap beside it
_MAPS_HEIGHT = 150  # pixels of the maps before, and of those after
_LAYER_WIDTH = 240  # pixels
_CHANNELS = 24  # of them, the strongest before
_ENLARGED = 16  # times, so that a change of a few levels of 255 is seen


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the controls, what is changed, and what the network says of it."""
    if options["change"] == what_if.SILENCE:
        changed, after = None, _silence(scene, options, key)
    else:
        changed = _repaint(scene, options, key)
        after = scores_of(scene.model, changed)
    before = own_scores(scene)
    show_before_and_after(before, after, written=chance)
    said = f"**{plain(what_if.outcome(before, after))}**"
    if changed is None or not scene.trace.convs:
        st.markdown(said)
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(said)
        layer = _pick_layer(scene, options, key)
    _show_maps(scene, changed, layer, key)


def _silence(scene: LessonScene, options: Options, key: str) -> Scores:
    layer = layer_of(scene, options["layer"])
    channels = layer.output_shape[0]
    amount = what_if.slider_of(what_if.SILENCE, options["amount"], channels)
    flipped = _flipped(key) & set(range(channels))
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
    mosaic(grid, said, partial(_flip, key), key=f"{key} grid", height=_GRID_HEIGHT)
    st.caption(plain(said))
    return scores_without(scene, layer, silent)


def _flipped(key: str) -> set[int]:
    return {int(each) for each in picked(key, "flipped", "").split(",") if each.isdecimal()}


def _flip(key: str, channel: int, _cell: tuple[int, int] | None) -> None:
    """Switch one of those that are off by now: a quick click comes before the last is drawn."""
    pick(key, "flipped", tuple(sorted(_flipped(key) ^ {channel})))


def _without(scene: LessonScene, layer: LayerInfo, silent: set[int]) -> Grid:
    """Draw the layer's maps in the colours they have with all channels, the silent ones at 0."""
    recorded = capture(scene.model, scene.model_input, layer.name, cache=scene.cache)
    with_all = make_grid(recorded[layer.name], scale="symmetric")
    colormap = diverging()
    values = recorded[layer.name].values.numpy().copy()
    values[sorted(silent)] = 0
    return make_grid(values, title=layer.name, colormap=colormap, limits=with_all.limits)


def _repaint(scene: LessonScene, options: Options, key: str) -> ModelInput:
    change = options["change"]
    amount = what_if.slider_of(change, options["amount"])
    start = {"amount": str(amount.start)}
    if change == what_if.FOOL:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            target = _pick_target(scene, options, key)
            chosen = _amount(change, amount, key)
            steps = slide(
                say("Steps"),
                *(what_if.STEPS.low, what_if.STEPS.high, key, "steps"),
                first=what_if.steps_of(options),
            )
        first = what_if.target_of(scene, options["target"])
        start |= {"target": _written(first), "steps": str(what_if.steps_of(options))}
        shown = {"amount": str(chosen), "target": _written(target), "steps": str(steps)}
    else:
        chosen = _amount(change, amount, key)
        shown = {"amount": str(chosen)}
    remember_shown(key, shown, start)
    after = what_if.changed_input(scene, {**options, **shown}, chosen)
    _show_pictures(scene, change, after)
    return after


def _amount(change: str, amount: what_if.SliderRange, key: str) -> int:
    labels = {
        what_if.SHIFT: say("Shift to the right (pixels)"),
        what_if.TURN: say("Turn (degrees)"),
        what_if.LIGHT: say("Brightness (percent)"),
        what_if.NOISE: say("Random change of every number (levels of 255)"),
        what_if.FOOL: say("Most change (of 255)"),
    }
    return slide(
        labels[change],
        *(amount.low, amount.high, key, "amount"),
        first=amount.start,
        step=amount.step,
    )


def _pick_target(scene: LessonScene, options: Options, key: str) -> int | None:
    """Let the learner choose the class to make of the picture; None for any but its own."""
    scores = own_scores(scene)
    first = what_if.target_of(scene, options["target"])
    order = dict.fromkeys((_written(first), what_if.ANYTHING))
    order |= dict.fromkeys(map(str, scores.first(len(scores.scores))))

    def name(written: str) -> str:
        if written == what_if.ANYTHING:
            return say("anything else")
        return listed_label(int(written), scores.names)

    chosen = choose(
        st.selectbox,
        say("Make it"),
        [*order],
        key,
        "target",
        first=_written(first),
        format_func=name,
    )
    return what_if.target_of(scene, chosen)


def _written(target: int | None) -> str:
    return what_if.ANYTHING if target is None else str(target)


def _show_pictures(scene: LessonScene, change: str, after: ModelInput) -> None:
    _, picture = check_repaints(scene.model, scene.model_input)
    changed = after.picture
    assert changed is not None
    pictures = [(say("Before"), picture), (say("After"), changed)]
    if change in (what_if.NOISE, what_if.FOOL):
        added = what_if.difference(picture, changed, _ENLARGED)
        pictures.append((say("What is added, {factor}×", factor=_ENLARGED), added))
    with st.container(
        key=_PICTURES, width=_PICTURE * len(pictures)
    ):  # or two would leave the maps no room
        columns = st.columns(len(pictures), gap="small", wrap=False)
    for column, (title, shown) in zip(columns, pictures, strict=True):
        with column:
            st.image(np.asarray(shown), width="stretch", alt=title, caption=title)


def _pick_layer(scene: LessonScene, options: Options, key: str) -> str:
    """Let the learner choose the layer whose maps are shown."""
    return choose(
        st.selectbox,
        say("Maps of"),
        [layer.name for layer in scene.trace.convs],
        key,
        "maps",
        first=layer_of(scene, options["layer"]).name,
        format_func=lambda name: say("Maps of {layer}", layer=name),
        label_visibility="collapsed",
        width=_LAYER_WIDTH,
    )


def _show_maps(scene: LessonScene, after: ModelInput, layer: str, key: str) -> None:
    """Draw a layer's strongest channels before and after, in the same colours."""
    maps = maps_before_and_after(scene, after, layer)
    channels = sorted(strongest_first(np.maximum(*maps), _CHANNELS))
    channel = picked_channel(key, len(maps[0]), channels[0])
    with_all = grid_of(maps[0], layer)
    for column, title, values in zip(
        st.columns(2, gap="small", wrap=False), (say("Before"), say("After")), maps, strict=True
    ):
        with column:
            said = say("{when}: the strongest channels of {layer}.", when=title, layer=layer)
            mosaic(
                with_channels(grid_of(values, layer, limits=with_all.limits), values, channels),
                said,
                partial(pick_channel, key),
                key=f"{key} {title}",
                height=_MAPS_HEIGHT,
                chosen=channel,
            )
    before, changed = (values[channel] for values in maps)
    st.caption(
        plain(
            say(
                "In the same colours. All of {layer} changed by {share} of what it was, channel "
                "{channel} by {channel_share}.",
                layer=layer,
                share=percent(moved(*maps)),
                channel=channel,
                channel_share=percent(moved(before, changed)),
            )
        )
    )
