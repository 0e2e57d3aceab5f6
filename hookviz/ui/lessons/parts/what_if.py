"""Change the network or its picture by a slider, and compare the classes before and after."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import streamlit as st
import torch

from hookviz.capturing.engine import capture
from hookviz.drawing.grid import Grid, make_grid, with_channels
from hookviz.drawing.statistics import Levels
from hookviz.explaining.scores.adversarial import adversarial_input, class_to_make
from hookviz.images.preprocess import check_repaints, repainted
from hookviz.language.naming import listed_label
from hookviz.language.saying import mark, say, say_count
from hookviz.lessons.layers import layer_of
from hookviz.lessons.maps import maps_before_and_after, moved, strongest_first
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice, whole_number
from hookviz.lessons.pictures import brightened, noisy, shifted, turned
from hookviz.lessons.scores import (
    Scores,
    by_effect,
    chance,
    effects,
    own_scores,
    scores_of,
    scores_without,
)
from hookviz.types import LayerInfo, ModelInput, Pixels
from hookviz.ui.components.pictures import mosaic
from hookviz.ui.lessons.figures import grid_of, show_before_and_after
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
from hookviz.wording import numbers_listed, percent

SILENCE, _SHIFT, _TURN, LIGHT, _NOISE, _FOOL = CHANGES = (
    *("silence", "shift", "turn", "light", "noise"),
    "fool",
)
"""What can be changed: channels switched off, or the picture."""

_ORDERS = ("most", "least")
"""Which channels are switched off first: those that speak most for the class, or matter least."""


@dataclass(frozen=True, slots=True)
class SliderRange:
    """How far a change can go: from `low` to `high`, at first `start`."""

    low: int
    high: int
    start: int
    step: int = 1


SLIDERS = {
    _SHIFT: SliderRange(-40, 40, 8),
    _TURN: SliderRange(-180, 180, 30, 5),
    LIGHT: SliderRange(0, 200, 30, 5),
    _NOISE: SliderRange(0, 64, 16),
    _FOOL: SliderRange(0, 16, 1),
}
"""Of each change of a picture: pixels to the right, degrees, hundredths, levels of 255."""

STEPS = SliderRange(1, 40, 20)
"""Of a picture that is to fool the network: passes there and back."""

ANYTHING = "none"
"""The target of a picture that is to be anything but what it is."""


def slider_of(change: str, asked: str, channels: int = 0) -> SliderRange:
    """Return how far a change can go; `asked` is where it starts, if anything.

    For channels that are switched off it is their number, at first an eighth of all.
    """
    known = (
        SliderRange(0, channels, max(1, channels // 8)) if change == SILENCE else SLIDERS[change]
    )
    start = int(asked) if asked else known.start
    return SliderRange(known.low, known.high, min(known.high, max(known.low, start)), known.step)


def target_of(scene: LessonScene, asked: str) -> int | None:
    """Return the class that a picture is made: by its name or number; None for `ANYTHING`.

    Where the network has no class of that name it is the second likeliest.
    """
    if asked == ANYTHING:
        return None
    scores = own_scores(scene)
    if asked in scores.names:
        return scores.names.index(asked)
    if asked.isdecimal() and int(asked) < len(scores.scores):
        return int(asked)
    return class_to_make(scene.model, torch.from_numpy(scores.scores))


def steps_of(options: Options) -> int:
    """Return how many steps a picture is changed by."""
    return min(STEPS.high, max(STEPS.low, int(options["steps"] or STEPS.start)))


def changed_input(scene: LessonScene, options: Options, amount: int) -> ModelInput:
    """Return the scene's input with its picture changed by `amount`, as the options say.

    Raises:
        HookVizError: the model makes its input by a function of its own.
    """
    change = options["change"]
    _, picture = check_repaints(scene.model, scene.model_input)
    if amount == {LIGHT: 100}.get(change, 0):
        return scene.model_input
    if change == _FOOL:
        target, steps = target_of(scene, options["target"]), steps_of(options)
        size = scene.model_input.tensor.nbytes + picture.nbytes
        key = (change, amount, target, steps)
        return scene.cached(key, lambda: _fooled(scene, amount, target, steps), size)
    changed = _CHANGED[change](picture, amount)
    return repainted(scene.model, scene.model_input, changed)


def _fooled(scene: LessonScene, levels: int, target: int | None, steps: int) -> ModelInput:
    return adversarial_input(
        scene.model,
        scene.model_input,
        own_scores(scene).best if target is None else target,
        levels,
        steps=steps,
        towards=target is not None,
    )


def _shifted(picture: Pixels, amount: int) -> Pixels:
    return shifted(picture, amount, 0)


_CHANGED = {_SHIFT: _shifted, _TURN: turned, LIGHT: brightened, _NOISE: noisy}


def _silent_channels(
    scene: LessonScene, layer: LayerInfo, count: int, order: str
) -> tuple[int, ...]:
    """Return the channels of a conv layer that are switched off, in ascending order."""
    return tuple(sorted(by_effect(effects(scene, layer), order)[:count]))


def _after_change(scene: LessonScene, options: Options, amount: int, order: str) -> Scores:
    """Return the class scores after the change that the options name."""
    change = options["change"]
    if change == SILENCE:
        layer = layer_of(scene, options["layer"])
        return scores_without(scene, layer, _silent_channels(scene, layer, amount, order))
    return scores_of(scene.model, changed_input(scene, options, amount))


def difference(before: Pixels, after: Pixels, times: int) -> Levels:
    """Return what was added to a picture, enlarged, about a middle grey, uint8 ``(H, W, 3)``."""
    moved = (after.astype(int) - before) * times + 128
    shown: Levels = moved.clip(0, 255).astype("uint8")
    return shown


def _outcome(before: Scores, after: Scores) -> str:
    """Return a sentence on whether the prediction holds."""
    if before.best == after.best:
        return say("The prediction stays {label}.", label=before.name(before.best))
    return say(
        "The prediction changes from {old_label} to {new_label}.",
        old_label=before.name(before.best),
        new_label=after.name(after.best),
    )


def _facts(scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    """Return the likeliest class before and after, with its probabilities in words."""
    change, order = options["change"], options["order"]
    layer = layer_of(scene, options["layer"]) if change == SILENCE else None
    channels = layer.output_shape[0] if layer else 0
    amount = slider_of(change, options["amount"], channels).start
    before = own_scores(scene)
    after = _after_change(scene, options, amount, order)
    facts: dict[str, Fact] = {
        "amount": amount,
        "levels": 255,
        "label": before.name(before.best),
        "chance": chance(float(before.chances[before.best])),
        "after_label": after.name(after.best),
        "after_chance": chance(float(after.chances[before.best])),
        "outcome": _outcome(before, after),
    }
    if layer is not None:
        other = _ORDERS[order == _ORDERS[0]]
        opposite = _after_change(scene, options, amount, other)
        facts |= {
            "layer": layer.name,
            "channels": channels,
            "other_chance": chance(float(opposite.chances[before.best])),
            "other_outcome": _outcome(before, opposite),
        }
    if change == _FOOL:
        random = scores_of(scene.model, changed_input(scene, {**options, "change": _NOISE}, amount))
        facts |= {
            "random_chance": chance(float(random.chances[before.best])),
            "random_outcome": _outcome(before, random),
            "steps": steps_of(options),
            "asked": _asked(before, after, target_of(scene, options["target"])),
        }
        facts |= _moved_facts(scene, options, amount)
    return facts


def _asked(before: Scores, after: Scores, target: int | None) -> str:
    """Return a sentence on what was asked of the gradient, and how far it went."""
    asked = before.best if target is None else target
    said = {
        "label": before.name(asked),
        "old": chance(float(before.chances[asked])),
        "new": chance(float(after.chances[asked])),
    }
    if target is None:
        return say("Asked for anything but {label}, it takes that from {old} to {new}.", **said)
    return say("Asked for {label}, it takes that from {old} to {new}.", **said)


def _moved_facts(scene: LessonScene, options: Options, amount: int) -> dict[str, Fact]:
    """Return how far the first and the last conv layer's maps moved; dots where there are none."""
    names = [f"{place}_{what}" for place in ("first", "last") for what in ("layer", "moved")]
    facts: dict[str, Fact] = dict.fromkeys(names, "…")
    changed = changed_input(scene, options, amount)
    if not scene.trace.convs:
        return facts
    for place in ("first", "last"):
        layer = layer_of(scene, place).name
        share = moved(*maps_before_and_after(scene, changed, layer))
        facts |= {f"{place}_layer": layer, f"{place}_moved": percent(share)}
    return facts


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    if options["change"] == _FOOL:
        target = target_of(scene, options["target"])
        made = {"target": own_scores(scene).names[target]} if target is not None else {}
        return {"lens": "toaster", **made}
    if options["change"] != SILENCE:
        return {}
    layer = layer_of(scene, options["layer"])
    count = slider_of(SILENCE, options["amount"], layer.output_shape[0]).start
    silent = _silent_channels(scene, layer, count, options["order"])
    return {"layer": layer.name, "silenced": f"{layer.name}:{numbers_listed(silent)}"}


def _check_steps(value: str) -> str:
    return whole_number(STEPS.low, STEPS.high)(value) if value else ""


PART = Part(
    name="what-if",
    sentence=mark(
        "A slider that switches channels off, or shifts, turns, darkens or disturbs the picture, "
        "or makes a picture that fools the network, into any class; the likeliest classes and a "
        "layer's maps before and after."
    ),
    options=(
        Option(
            "change",
            None,
            mark("What is changed: silence, shift, turn, light, noise or fool."),
            choice(CHANGES),
        ),
        Option(
            "amount",
            "",
            mark("Where the slider stands at first: channels, pixels, degrees, percent or levels."),
            whole_number(-100_000, 100_000),
        ),
        Option(
            "layer",
            "late",
            mark("The conv layer that is silenced, or whose maps are shown, by its name or place."),
        ),
        Option(
            "target",
            ANYTHING,
            mark("Of fool: the class to make of it, such as toaster; none for any but its own."),
        ),
        Option("steps", "", mark("Of fool: how many steps at first."), _check_steps),
        Option(
            "order",
            "most",
            mark("Of silence: which channels go first, most or least for what they matter."),
            choice(_ORDERS),
        ),
    ),
    facts=_facts,
    link=_link,
)


_GRID_HEIGHT = 260  # pixels
_PICTURES = "hv-changed-pictures"  # smaller in a low window: class_bars.css
_PICTURE = 190  # pixels at most along a picture, with the gap beside it
_MAPS_HEIGHT = 150  # pixels of the maps before, and of those after
_LAYER_WIDTH = 240  # pixels
_CHANNELS = 24  # of them, the strongest before
_ENLARGED = 16  # times, so that a change of a few levels of 255 is seen


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the controls, what is changed, and what the network says of it."""
    if options["change"] == SILENCE:
        changed, after = None, _silence(scene, options, key)
    else:
        changed = _repaint(scene, options, key)
        after = scores_of(scene.model, changed)
    before = own_scores(scene)
    show_before_and_after(before, after, written=chance)
    said = f"**{plain(_outcome(before, after))}**"
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
    amount = slider_of(SILENCE, options["amount"], channels)
    flipped = _flipped(key) & set(range(channels))
    clear = partial(pick, key, "flipped", "")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        count = slide(
            say("Channels switched off"),
            amount.low,
            amount.high,
            key,
            "count",
            first=amount.start,
            then=clear,
        )
        names = {"most": say("that matter most"), "least": say("that matter least")}
        order = choose(
            st.segmented_control,
            say("First those"),
            _ORDERS,
            key,
            "order",
            first=options["order"],
            then=clear,
            format_func=names.__getitem__,
            required=True,
            width="content",
        )
    remember_shown(key, {"amount": str(count)}, {"amount": str(amount.start)})
    silent = set(_silent_channels(scene, layer, count, str(order))) ^ flipped
    grid = _without(scene, layer, silent)
    said = say_count(
        "{count} of {channels} channels of {layer} is off. A click switches one off or on.",
        "{count} of {channels} channels of {layer} are off. A click switches one off or on.",
        len(silent),
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
    amount = slider_of(change, options["amount"])
    start = {"amount": str(amount.start)}
    if change == _FOOL:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            target = _pick_target(scene, options, key)
            chosen = _amount(change, amount, key)
            steps = slide(
                say("Steps"), STEPS.low, STEPS.high, key, "steps", first=steps_of(options)
            )
        first = target_of(scene, options["target"])
        start |= {"target": _written(first), "steps": str(steps_of(options))}
        shown = {"amount": str(chosen), "target": _written(target), "steps": str(steps)}
    else:
        chosen = _amount(change, amount, key)
        shown = {"amount": str(chosen)}
    remember_shown(key, shown, start)
    after = changed_input(scene, {**options, **shown}, chosen)
    _show_pictures(scene, change, after)
    return after


def _amount(change: str, amount: SliderRange, key: str) -> int:
    labels = {
        _SHIFT: say("Shift to the right (pixels)"),
        _TURN: say("Turn (degrees)"),
        LIGHT: say("Brightness (percent)"),
        _NOISE: say("Random change of every number (levels of 255)"),
        _FOOL: say("Most change (of 255)"),
    }
    return slide(
        labels[change], amount.low, amount.high, key, "amount", first=amount.start, step=amount.step
    )


def _pick_target(scene: LessonScene, options: Options, key: str) -> int | None:
    """Let the learner choose the class to make of the picture; None for any but its own."""
    scores = own_scores(scene)
    first = target_of(scene, options["target"])
    order = dict.fromkeys((_written(first), ANYTHING))
    order |= dict.fromkeys(map(str, scores.first(len(scores.scores))))

    def name(written: str) -> str:
        if written == ANYTHING:
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
    return target_of(scene, chosen)


def _written(target: int | None) -> str:
    return ANYTHING if target is None else str(target)


def _show_pictures(scene: LessonScene, change: str, after: ModelInput) -> None:
    _, picture = check_repaints(scene.model, scene.model_input)
    changed = after.picture
    assert changed is not None
    pictures = [(say("Before"), picture), (say("After"), changed)]
    if change in (_NOISE, _FOOL):
        added = difference(picture, changed, _ENLARGED)
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
