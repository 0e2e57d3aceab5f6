"""Change the network or its picture by a slider, and compare the classes before and after."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from hookviz.drawing.statistics import Levels
from hookviz.explaining.scores.adversarial import adversarial_input, class_to_make
from hookviz.images.preprocess import check_repaints, repainted
from hookviz.language.saying import mark, say
from hookviz.lessons.chances import chance
from hookviz.lessons.layers import layer_of
from hookviz.lessons.maps import maps_before_and_after, moved
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice, whole_number
from hookviz.lessons.picture_changes import brightened, noisy, shifted, turned
from hookviz.lessons.scores import (
    Scores,
    by_effect,
    effects,
    own_scores,
    scores_of,
    scores_without,
)
from hookviz.types import LayerInfo, ModelInput, Pixels
from hookviz.wording import numbers_listed, percent

SILENCE, SHIFT, TURN, LIGHT, NOISE, FOOL = CHANGES = (
    *("silence", "shift", "turn", "light", "noise"),
    "fool",
)
"""What can be changed: channels switched off, or the picture."""

ORDERS = ("most", "least")
"""Which channels are switched off first: those that speak most for the class, or matter least."""


@dataclass(frozen=True, slots=True)
class SliderRange:
    """How far a change can go: from `low` to `high`, at first `start`."""

    low: int
    high: int
    start: int
    step: int = 1


SLIDERS = {
    SHIFT: SliderRange(-40, 40, 8),
    TURN: SliderRange(-180, 180, 30, 5),
    LIGHT: SliderRange(0, 200, 30, 5),
    NOISE: SliderRange(0, 64, 16),
    FOOL: SliderRange(0, 16, 1),
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
    if change == FOOL:
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


_CHANGED = {SHIFT: _shifted, TURN: turned, LIGHT: brightened, NOISE: noisy}


def silent_channels(
    scene: LessonScene, layer: LayerInfo, count: int, order: str
) -> tuple[int, ...]:
    """Return the channels of a conv layer that are switched off, in ascending order."""
    return tuple(sorted(by_effect(effects(scene, layer), order)[:count]))


def after_change(scene: LessonScene, options: Options, amount: int, order: str) -> Scores:
    """Return the class scores after the change that the options name."""
    change = options["change"]
    if change == SILENCE:
        layer = layer_of(scene, options["layer"])
        return scores_without(scene, layer, silent_channels(scene, layer, amount, order))
    return scores_of(scene.model, changed_input(scene, options, amount))


def difference(before: Pixels, after: Pixels, times: int) -> Levels:
    """Return what was added to a picture, enlarged, about a middle grey, uint8 ``(H, W, 3)``."""
    moved = (after.astype(int) - before) * times + 128
    shown: Levels = moved.clip(0, 255).astype("uint8")
    return shown


def outcome(before: Scores, after: Scores) -> str:
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
    after = after_change(scene, options, amount, order)
    facts: dict[str, Fact] = {
        "amount": amount,
        "levels": 255,
        "label": before.name(before.best),
        "chance": chance(float(before.chances[before.best])),
        "after_label": after.name(after.best),
        "after_chance": chance(float(after.chances[before.best])),
        "outcome": outcome(before, after),
    }
    if layer is not None:
        other = ORDERS[order == ORDERS[0]]
        opposite = after_change(scene, options, amount, other)
        facts |= {
            "layer": layer.name,
            "channels": channels,
            "other_chance": chance(float(opposite.chances[before.best])),
            "other_outcome": outcome(before, opposite),
        }
    if change == FOOL:
        random = scores_of(scene.model, changed_input(scene, {**options, "change": NOISE}, amount))
        facts |= {
            "random_chance": chance(float(random.chances[before.best])),
            "random_outcome": outcome(before, random),
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
    if options["change"] == FOOL:
        target = target_of(scene, options["target"])
        made = {"target": own_scores(scene).names[target]} if target is not None else {}
        return {"lens": "toaster", **made}
    if options["change"] != SILENCE:
        return {}
    layer = layer_of(scene, options["layer"])
    count = slider_of(SILENCE, options["amount"], layer.output_shape[0]).start
    silent = silent_channels(scene, layer, count, options["order"])
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
            choice(ORDERS),
        ),
    ),
    facts=_facts,
    link=_link,
)
