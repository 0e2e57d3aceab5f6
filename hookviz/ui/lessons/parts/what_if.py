"""Change the network or its picture by a slider, and compare the classes before and after."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import streamlit as st
import torch

from hookviz.capturing.engine import capture
from hookviz.capturing.layer_trace import steps_after
from hookviz.drawing.grid import Grid, make_grid, with_channels
from hookviz.drawing.statistics import Levels
from hookviz.explaining.scores.adversarial import adversarial_input, class_to_make
from hookviz.images.preprocess import check_repaints, repainted
from hookviz.language.naming import listed_label
from hookviz.language.saying import mark, say, say_count
from hookviz.lessons.layers import Map, layer_of, maps_before_and_after, moved, strongest_first
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
    choose_button,
    pick,
    pick_channel,
    picked,
    picked_channel,
    remember_options,
    remembered_options,
    slide,
)
from hookviz.ui.state import plain
from hookviz.ui.theme import diverging
from hookviz.wording import numbers_listed, percent

SILENCE, _SHIFT, _TURN, LIGHT, _NOISE, _FOOL = CHANGES = (
    *("silence", "shift", "turn", "light", "noise"),
    "fool",
)
"""Changes: channels switched off, or of the picture."""

_OTHER_ORDER = {"most": "least", "least": "most"}
"""Which channels are switched off first, by their effect on the class; and the opposite."""


@dataclass(frozen=True, slots=True)
class Slider:
    """Numbers of a slider, and the one at which it starts."""

    numbers: range
    start: int


SLIDERS = {
    _SHIFT: Slider(range(-40, 41), 8),
    _TURN: Slider(range(-180, 181, 5), 30),
    LIGHT: Slider(range(0, 201, 5), 30),
    _NOISE: Slider(range(65), 16),
    _FOOL: Slider(range(17), 1),
}
"""Of each change of a picture: pixels to the right, degrees, percent, levels of 255."""

STEPS = Slider(range(1, 41), 20)
"""Of a picture that fools the network: forward and backward passes."""

ANYTHING = "none"
"""The target of a picture of any class but its own."""


def slider_of(change: str, asked: str, channels: int = 0) -> Slider:
    """Return the slider of a change, which starts at `asked`, if anything.

    For channels that are switched off it is their number, at first an eighth of all.
    """
    if change == SILENCE:
        slider = Slider(range(channels + 1), max(1, channels // 8))
    else:
        slider = SLIDERS[change]
    start = int(asked) if asked else slider.start
    return Slider(slider.numbers, min(slider.numbers[-1], max(slider.numbers[0], start)))


def target_of(scene: LessonScene, asked: str) -> int | None:
    """Return the target class of a name or number; None for `ANYTHING`.

    For a name that the network does not have it is the second likeliest class.
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
    """Return the number of steps in which a picture is changed."""
    return min(STEPS.numbers[-1], max(STEPS.numbers[0], int(options["steps"] or STEPS.start)))


def changed_input(scene: LessonScene, options: Options, amount: int) -> ModelInput:
    """Return the scene's input with its picture changed by `amount`, by the options.

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

        def compute() -> ModelInput:
            return adversarial_input(
                scene.model,
                scene.model_input,
                own_scores(scene).best if target is None else target,
                amount,
                steps=steps,
                towards=target is not None,
            )

        return scene.cached(key, compute, size)
    repaint = {_SHIFT: _shift_right, _TURN: turned, LIGHT: brightened, _NOISE: noisy}[change]
    return repainted(scene.model, scene.model_input, repaint(picture, amount))


def _shift_right(picture: Pixels, pixels: int) -> Pixels:
    return shifted(picture, pixels, 0)


def _silent_channels(
    scene: LessonScene, layer: LayerInfo, count: int, order: str
) -> tuple[int, ...]:
    """Return the first `count` channels of a conv layer by their effect, in ascending order."""
    return tuple(sorted(by_effect(effects(scene, layer), order)[:count]))


def _after_change(scene: LessonScene, options: Options, amount: int, order: str) -> Scores:
    """Return the class scores after the options' change."""
    change = options["change"]
    if change == SILENCE:
        layer = layer_of(scene, options["layer"])
        return scores_without(scene, layer, _silent_channels(scene, layer, amount, order))
    return scores_of(scene.model, changed_input(scene, options, amount))


def difference(before: Pixels, after: Pixels, times: int) -> Levels:
    """Return the enlarged difference of two pictures about a middle grey, uint8 ``(H, W, 3)``."""
    enlarged = (after.astype(int) - before) * times + 128
    levels: Levels = enlarged.clip(0, 255).astype("uint8")
    return levels


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
        opposite = _after_change(scene, options, amount, _OTHER_ORDER[order])
        facts |= {
            "layer": layer.name,
            "channels": channels,
            "off": _off_sentence(scene, layer),
            "other_chance": chance(float(opposite.chances[before.best])),
            "other_outcome": _outcome(before, opposite),
        }
    if change == _FOOL:
        random = scores_of(scene.model, changed_input(scene, {**options, "change": _NOISE}, amount))
        facts |= {
            "random_chance": chance(float(random.chances[before.best])),
            "random_outcome": _outcome(before, random),
            "steps": steps_of(options),
            "asked": _target_sentence(before, after, target_of(scene, options["target"])),
        }
        facts |= _moved_facts(scene, options, amount)
    return facts


def _off_sentence(scene: LessonScene, layer: LayerInfo) -> str:
    """Return a sentence on what a conv layer's switched-off channel puts out."""
    kinds = {info.name: info.kind for info in scene.trace.listed}
    if any("BatchNorm" in kinds[step.layer] for step in steps_after(scene.trace, layer.name)):
        return say("Off means zeros before the batch norm, which makes a constant of them.")
    return say("Off means zeros.")


def _target_sentence(before: Scores, after: Scores, target: int | None) -> str:
    """Return a sentence on the target class's probability before and after."""
    goal = before.best if target is None else target
    facts = {
        "label": before.name(goal),
        "old": chance(float(before.chances[goal])),
        "new": chance(float(after.chances[goal])),
    }
    if target is None:
        return say("Asked for anything but {label}, it takes that from {old} to {new}.", **facts)
    return say("Asked for {label}, it takes that from {old} to {new}.", **facts)


def _moved_facts(scene: LessonScene, options: Options, amount: int) -> dict[str, Fact]:
    """Return the change of the first and the last conv layer's maps; dots without any."""
    if not scene.trace.convs:
        return dict.fromkeys(("first_layer", "first_moved", "last_layer", "last_moved"), "…")
    facts: dict[str, Fact] = {}
    changed = changed_input(scene, options, amount)
    for place in ("first", "last"):
        layer = layer_of(scene, place).name
        share = moved(*maps_before_and_after(scene, changed, layer))
        facts |= {f"{place}_layer": layer, f"{place}_moved": percent(share)}
    return facts


def _link(scene: LessonScene, options: Options) -> Mapping[str, str]:
    if options["change"] == _FOOL:
        target = target_of(scene, options["target"])
        words = {"target": own_scores(scene).names[target]} if target is not None else {}
        return {"lens": "toaster", **words}
    if options["change"] != SILENCE:
        return {}
    layer = layer_of(scene, options["layer"])
    count = slider_of(SILENCE, options["amount"], layer.output_shape[0]).start
    silent = _silent_channels(scene, layer, count, options["order"])
    return {"layer": layer.name, "silenced": f"{layer.name}:{numbers_listed(silent)}"}


def _check_steps(value: str) -> str:
    return whole_number(STEPS.numbers[0], STEPS.numbers[-1])(value) if value else ""


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
            choice(_OTHER_ORDER),
        ),
    ),
    facts=_facts,
    link=_link,
)


_GRID_PX = 260  # height
_PICTURES = "hv-changed-pictures"  # smaller in a low window: class_bars.css
_PICTURE_PX = 190  # width with the gap beside it
_MAPS_PX = 150  # height of the maps before, and of those after
_LAYER_PX = 240  # width
_CHANNELS = 24  # the strongest
_ENLARGED = 16  # times, for a change of a few levels of 255


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the controls, the change, and the classes before and after."""
    if options["change"] == SILENCE:
        changed, after = None, _silence(scene, options, key)
    else:
        changed = _repaint(scene, options, key)
        after = scores_of(scene.model, changed)
    before = own_scores(scene)
    show_before_and_after(before, after, written=chance)
    outcome = f"**{plain(_outcome(before, after))}**"
    if changed is None or not scene.trace.convs:
        st.markdown(outcome)
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(outcome)
        layer = _pick_layer(scene, options, key)
    _show_maps(scene, options, changed, layer, key)


def _silence(scene: LessonScene, options: Options, key: str) -> Scores:
    layer = layer_of(scene, options["layer"])
    channels = layer.output_shape[0]
    slider = slider_of(SILENCE, options["amount"], channels)
    flipped = _flipped(key) & set(range(channels))
    clear = partial(pick, key, "flipped", "")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        label, first = say("Channels switched off"), slider.start
        count = slide(label, slider.numbers, key, "count", first=first, then=clear)
        names = {"most": say("that matter most"), "least": say("that matter least")}
        label, start = say("First those"), options["order"]
        order = choose_button(label, names, key, "order", first=start, then=clear, width="content")
    remember_options(key, {"amount": str(count)}, {"amount": str(slider.start)})
    silent = set(_silent_channels(scene, layer, count, order)) ^ flipped
    grid = _without(scene, layer, silent)
    text = say_count(
        "{count} of {channels} channels of {layer} is off. A click switches one off or on.",
        "{count} of {channels} channels of {layer} are off. A click switches one off or on.",
        len(silent),
        channels=channels,
        layer=layer.name,
    )
    mosaic(grid, text, partial(_flip, key), key=f"{key} grid", height=_GRID_PX)
    st.caption(plain(text))
    return scores_without(scene, layer, silent)


def _flipped(key: str) -> set[int]:
    return {int(each) for each in picked(key, "flipped", "").split(",") if each.isdecimal()}


def _flip(key: str, channel: int, _cell: tuple[int, int] | None) -> None:
    """Switch a channel of the link's, which a quick click has changed before this run."""
    pick(key, "flipped", tuple(sorted(_flipped(key) ^ {channel})))


def _without(scene: LessonScene, layer: LayerInfo, silent: set[int]) -> Grid:
    """Draw a layer's maps in the colours of all channels, with the silent ones at 0."""
    recorded = capture(scene.model, scene.model_input, layer.name, cache=scene.cache)
    with_all = make_grid(recorded[layer.name], scale="symmetric")
    values = recorded[layer.name].values.numpy().copy()
    values[sorted(silent)] = 0
    return make_grid(values, title=layer.name, colormap=diverging(), limits=with_all.limits)


def _repaint(scene: LessonScene, options: Options, key: str) -> ModelInput:
    change = options["change"]
    slider = slider_of(change, options["amount"])
    start = {"amount": str(slider.start)}
    if change == _FOOL:
        with st.container(horizontal=True, vertical_alignment="bottom"):
            target = _pick_target(scene, options, key)
            amount = _pick_amount(change, slider, key)
            steps = slide(say("Steps"), STEPS.numbers, key, "steps", first=steps_of(options))
        first = target_of(scene, options["target"])
        start |= {"target": _target_text(first), "steps": str(steps_of(options))}
        chosen = {"amount": str(amount), "target": _target_text(target), "steps": str(steps)}
    else:
        amount = _pick_amount(change, slider, key)
        chosen = {"amount": str(amount)}
    remember_options(key, chosen, start)
    after = changed_input(scene, {**options, **chosen}, amount)
    _show_pictures(scene, change, after)
    return after


def _pick_amount(change: str, slider: Slider, key: str) -> int:
    labels = {
        _SHIFT: say("Shift to the right (pixels)"),
        _TURN: say("Turn (degrees)"),
        LIGHT: say("Brightness (percent)"),
        _NOISE: say("Random change of every number (levels of 255)"),
        _FOOL: say("Most change (of 255)"),
    }
    return slide(labels[change], slider.numbers, key, "amount", first=slider.start)


def _pick_target(scene: LessonScene, options: Options, key: str) -> int | None:
    """Show the choice of the target class, and return it; None for any class but its own."""
    scores = own_scores(scene)
    first = _target_text(target_of(scene, options["target"]))
    order = dict.fromkeys((first, ANYTHING))
    order |= dict.fromkeys(map(str, scores.first(len(scores.scores))))

    def name(target: str) -> str:
        if target == ANYTHING:
            return say("anything else")
        return listed_label(int(target), scores.names)

    label = say("Make it")
    chosen = choose(st.selectbox, label, [*order], key, "target", first=first, format_func=name)
    return target_of(scene, chosen)


def _target_text(target: int | None) -> str:
    return ANYTHING if target is None else str(target)


def _show_pictures(scene: LessonScene, change: str, after: ModelInput) -> None:
    _, picture = check_repaints(scene.model, scene.model_input)
    changed = after.picture
    assert changed is not None
    pictures = [(say("Before"), picture), (say("After"), changed)]
    if change in (_NOISE, _FOOL):
        added = difference(picture, changed, _ENLARGED)
        pictures.append((say("What is added, {factor}×", factor=_ENLARGED), added))
    # two pictures at full width would leave no room for the maps
    with st.container(key=_PICTURES, width=_PICTURE_PX * len(pictures)):
        columns = st.columns(len(pictures), gap="small", wrap=False)
    for column, (title, each) in zip(columns, pictures, strict=True):
        with column:
            st.image(np.asarray(each), width="stretch", alt=title, caption=title)


def _pick_layer(scene: LessonScene, options: Options, key: str) -> str:
    """Show the choice of the layer of the maps, and return it."""
    return choose(
        st.selectbox,
        say("Maps of"),
        [layer.name for layer in scene.trace.convs],
        key,
        "maps",
        first=layer_of(scene, options["layer"]).name,
        format_func=lambda name: say("Maps of {layer}", layer=name),
        label_visibility="collapsed",
        width=_LAYER_PX,
    )


def moved_back(before: Map, after: Map, columns: int) -> tuple[Map, Map]:
    """Return the columns that maps ``(C, H, W)`` and those moved to the right have in common.

    One more column at either side is left out: there the mirrored picture begins.
    """
    width = before.shape[-1]
    low, high = max(0, -columns) + 1, width - max(0, columns) - 1
    return before[..., low:high], after[..., low + columns : high + columns]


def _show_maps(
    scene: LessonScene, options: Options, after: ModelInput, layer: str, key: str
) -> None:
    """Draw a layer's strongest channels before and after, in the same colours."""
    maps = maps_before_and_after(scene, after, layer)
    channels = sorted(strongest_first(np.maximum(*maps), _CHANNELS))
    channel = picked_channel(key, len(maps[0]), channels[0])
    with_all = grid_of(maps[0], layer)
    for column, title, values in zip(
        st.columns(2, gap="small", wrap=False), (say("Before"), say("After")), maps, strict=True
    ):
        with column:
            alt = say("{when}: the strongest channels of {layer}.", when=title, layer=layer)
            mosaic(
                with_channels(grid_of(values, layer, limits=with_all.limits), values, channels),
                alt,
                partial(pick_channel, key),
                key=f"{key} {title}",
                height=_MAPS_PX,
                chosen=channel,
            )
    if options["change"] == _SHIFT:
        across = after.tensor.shape[-1] / maps[0].shape[-1]
        amount = slider_of(_SHIFT, remembered_options(key).get("amount", options["amount"])).start
        columns = round(amount / across)
        st.caption(
            plain(
                say(
                    "All of {layer} changed by {share} of what it was; moved back by {columns} "
                    "columns, by {back}.",
                    layer=layer,
                    share=percent(moved(*maps)),
                    columns=columns,
                    back=percent(moved(*moved_back(*maps, columns))),
                )
            )
        )
        return
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
