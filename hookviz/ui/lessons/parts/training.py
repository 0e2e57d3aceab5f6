"""Train a small network on drawings, and show kernels, maps, loss and gradients step by step."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import streamlit as st
from streamlit.errors import StreamlitAPIException

from hookviz.drawing.pictures import encode_png, middle_square
from hookviz.language.saying import mark, say
from hookviz.lessons.part import Fact, LessonScene, Option, Options, Part, choice, whole_number
from hookviz.lessons.pictures import picture_of
from hookviz.lessons.small_network import (
    BATCH,
    CLASSES,
    DRAWINGS,
    LAYERS,
    SIDE,
    STEPS,
    UNSEEN,
    Frame,
    SharedTraining,
    computing,
    finished,
    maps_at,
    random_network,
    training,
    weight_count,
)
from hookviz.markup import data_url
from hookviz.types import Pixels
from hookviz.ui.components.files import mount
from hookviz.ui.lessons.parts.first_kernels import in_colour, kernel_sheet
from hookviz.ui.lessons.picks import choose_button, pick, picked, remember_options
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.theme import diverging
from hookviz.wording import number, percent

_RATE_TEXTS: Mapping[str, str] = {"small": "0.0003", "right": "0.03", "large": "0.3"}
RATES: Mapping[str, float] = {name: float(text) for name, text in _RATE_TEXTS.items()}
"""Learning rates by their words in a lesson's file."""
_SEEDS = ("1", "2", "3")
AT = "at"
"""Option that the page adds: the chosen frame, once there are any."""

_CHOICES = ("nothing", "rate", "seed")


def training_of(options: Options) -> SharedTraining:
    """Return the training of the options, which all sessions share."""
    return training(RATES[options["rate"]], int(options["seed"]))


def fixed_picture(scene: LessonScene) -> Pixels:
    """Return the centre of the scene's image, ``(SIDE, SIDE, 3)``."""
    return middle_square(picture_of(scene), SIDE)


def first_frame(seed: int) -> Frame:
    """Return a network with random weights and no measurements."""
    weights = {name: each.detach() for name, each in random_network(seed).named_parameters()}
    return Frame(0, weights, float("nan"), float("nan"), ())


def kernel_pixels(frame: Frame) -> Pixels:
    """Return the first kernels as pictures, uint8 ``(kernels, 7, 7, 3)``; see `in_colour`."""
    return in_colour(frame.weights["conv1.weight"].numpy())


def _about_frame(options: Options) -> str:
    """Return a sentence on the chosen frame, or a hint before there is one."""
    frames = training_of(options).frames
    if not options.get(AT) or not frames:
        return say("What comes of it will stand here.")
    frame = frames[min(int(options[AT]), len(frames) - 1)]
    return say(
        "After {step:,} of {steps:,} steps the loss is {loss}, from {first} at the beginning, and "
        "{right} of the drawings that it never saw are named right.",
        step=frame.step,
        steps=STEPS,
        loss=number(frame.loss),
        first=number(frames[0].loss),
        right=percent(frame.accuracy),
    )


def _facts(_scene: LessonScene, options: Options) -> Mapping[str, Fact]:
    network = random_network(1)
    kernel = network.conv1.weight[0]
    return {
        "weights": weight_count(),
        "kernels": len(network.conv1.weight),
        "kernel_weights": kernel.numel(),
        "classes": len(CLASSES),
        "drawings": DRAWINGS,
        "unseen": UNSEEN,
        "steps": STEPS,
        "batch": BATCH,
        "guess": percent(1 / len(CLASSES)),
        "rate": _RATE_TEXTS[options["rate"]],
        **_RATE_TEXTS,
        "seen": _about_frame(options),
    }


PART = Part(
    name="training",
    sentence=mark(
        "A small network that is trained on drawings in the browser's sight: its first kernels, "
        "maps of the image, loss and gradients, step by step, to play and to scrub through."
    ),
    options=(
        Option(
            "choose",
            "nothing",
            mark("What the learner can choose: nothing, rate or seed."),
            choice(_CHOICES),
        ),
        Option(
            "rate",
            "right",
            mark("The learning rate at first: small, right or large."),
            choice(RATES),
        ),
        Option(
            "seed",
            "1",
            mark("Which random numbers it begins with: 1, 2 or 3."),
            whole_number(1, len(_SEEDS)),
        ),
    ),
    facts=_facts,
)


_FIRST = "conv1"
_DEEPER = ("conv2", "conv3")
_ENDS = 127  # levels on either side of zero


@dataclass(frozen=True, eq=False, slots=True)
class TrainingView:
    """Present view of a training.

    Attributes:
        name: of the training.
        frames: to choose from; during the training the newest alone.
        so_far: all frames, for the curves.
        at: index of the chosen one of `frames`.
        kernel: number of the kernel whose map is shown.
        others: finished trainings to compare with.
        is_over: whether the training is finished.
    """

    name: str
    frames: Sequence[Frame]
    so_far: Sequence[Frame] = field(repr=False)
    at: int
    kernel: int
    others: Sequence[SharedTraining]
    is_over: bool


def _show_training(view: TrainingView, picture: Pixels, key: str) -> None:
    """Show a training's frames, to play and to scrub through.

    Args:
        view: the training.
        picture: input of the maps, RGB uint8 ``(SIDE, SIDE, 3)``.
        key: of the part.
    """

    def pick_below(count: int, name: str) -> Callable[[object], None]:
        def receive(sent: object) -> None:
            match sent:
                case int(number) if 0 <= number < count:
                    pick(key, name, number)

        return receive

    facts, levels = facts_and_levels(view, picture)
    facts |= {"colours": diverging(), "picture_url": data_url(encode_png(picture))}
    mount(
        "training",
        f"training-{key}",
        facts,
        levels,
        at=pick_below(len(view.frames), AT),
        kernel=pick_below(len(kernel_pixels(view.frames[0])), "kernel"),
    )


def facts_and_levels(view: TrainingView, picture: Pixels) -> tuple[dict[str, Any], bytes]:
    """Return the browser's facts, and the levels of each frame's kernels and maps."""
    maps = [maps_at(frame, picture) for frame in view.frames]
    # of each deeper layer the channel that varied most at first, in all frames
    first_maps = maps_at(view.so_far[0], picture)
    channels = {name: int(first_maps[name].flatten(1).std(1).argmax()) for name in _DEEPER}
    pieces = []
    for frame, layers in zip(view.frames, maps, strict=True):
        layer_maps = [
            *layers[_FIRST].numpy(),
            *(layers[name][channels[name]].numpy() for name in _DEEPER),
        ]
        pieces += [kernel_pixels(frame).tobytes(), *map(_levels, layer_maps)]
    kernels = kernel_pixels(view.frames[0])
    facts = {
        "name": view.name,
        "at": view.at if len(view.frames) > 1 else 0,
        "kernel": view.kernel if view.kernel < len(kernels) else 0,
        "isOver": view.is_over,
        "steps": STEPS,
        "kernels": list(kernels.shape[:2]),
        "firstSide": maps[0][_FIRST].shape[1],
        "deeper": [[name, channels[name], maps[0][name].shape[1]] for name in _DEEPER],
        "layers": list(LAYERS),
        "frames": [_facts_of(frame) for frame in view.frames],
        "curve": [_facts_of(frame) for frame in view.so_far],
        "others": [_facts_of_other(each) for each in view.others],
        "words": _words(),
    }
    return facts, b"".join(pieces)


def _levels(values: np.ndarray[Any, np.dtype[np.float32]]) -> bytes:
    """Return a map as levels: 127 for 0, and 127 more or less for the largest magnitude."""
    largest = float(np.abs(np.nan_to_num(values)).max()) or 1.0
    shares = np.nan_to_num(values) / largest
    levels = np.rint(_ENDS + _ENDS * shares).clip(0, 2 * _ENDS).astype(np.uint8)
    return bytes(levels.tobytes())


def _facts_of(frame: Frame) -> dict[str, Any]:
    return {
        "step": frame.step,
        "loss": _or_none(frame.loss),
        "lossText": number(frame.loss) if math.isfinite(frame.loss) else "…",
        "right": _or_none(frame.accuracy),
        "gradients": [_or_none(size) for size in frame.gradients],
        "texts": [number(size) for size in frame.gradients],
    }


def _facts_of_other(training: SharedTraining) -> dict[str, Any]:
    last = training.frames[-1]
    kernels = kernel_pixels(last)
    return {
        "name": say(
            "rate {rate}, random numbers {seed}", rate=f"{training.rate:g}", seed=training.seed
        ),
        "curve": [[frame.step, _or_none(frame.loss)] for frame in training.frames],
        "right": _or_none(last.accuracy),
        "strip": data_url(encode_png(kernel_sheet(kernels, len(kernels), magnify=1, gap=1))),
    }


def _or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _words() -> dict[str, str]:
    return {
        "label": say("The small network, step by step"),
        "play": say("Play"),
        "pause": say("Pause"),
        "step": say("Step"),
        "at": say("Step {step} of {steps}", step="{step}", steps="{steps}"),
        "kernels": say("First kernels, each by its own largest weight; grey is zero"),
        "kernel": say("Kernel {kernel}: show its map", kernel="{kernel}"),
        "image": say("the image"),
        "map": say("{layer}, channel {channel}", layer="{layer}", channel="{channel}"),
        "maps": say("What three layers make of the image, each by its own largest value"),
        "loss": say("Loss on unseen drawings"),
        "right": say("Named right: {share}", share="{share}"),
        "gradients": say("Length of each layer's gradient, by hookviz.record"),
        "others": say("Trained before"),
        "untrained": say("Not trained yet: these are random numbers."),
    }


def show(scene: LessonScene, options: Options, key: str) -> None:
    """Draw the choices, the button that trains, and the training so far."""
    chosen = dict(options)
    row = st.container(horizontal=True, vertical_alignment="bottom")
    with row:
        if options["choose"] != "nothing":
            chosen |= {options["choose"]: _choose(options, key)}
    shared = training_of(chosen)
    running = f"_training {key}"
    if st.session_state.get(running) != (shared.rate, shared.seed) or shared.is_over:
        st.session_state.pop(running, None)
    is_running = running in st.session_state
    with row:
        _show_button(shared, running, is_running=is_running)
        beside = st.container(width="stretch")
    if is_running:
        with beside, computing() as is_mine:
            if is_mine:
                with turn(say("Training"), "training") as slot:
                    shared.go_on(slot.limit.within())
    with beside:
        _show_progress(shared, is_running=is_running)
    frames = shared.frames or (first_frame(shared.seed),)
    at = min(max(picked(key, AT, len(frames) - 1), 0), len(frames) - 1)
    view = TrainingView(
        name=f"{shared.rate} {shared.seed}",
        frames=frames[-1:] if is_running and not shared.is_over else frames,
        so_far=frames,
        at=at,
        kernel=picked(key, "kernel", 0),
        others=tuple(each for each in finished() if each is not shared),
        is_over=shared.is_over,
    )
    _show_training(view, fixed_picture(scene), key)
    if is_running and not shared.is_over:
        _rerun()
    # last: the text follows a training that does not run
    start = {"rate": options["rate"], "seed": options["seed"], AT: ""}
    present = {name: chosen[name] for name in ("rate", "seed")}
    remember_options(key, {**present, AT: str(at) if shared.frames else ""}, start)


def _choose(options: Options, key: str) -> str:
    """Show the choice of the rate or of the seed, and return the chosen one."""
    name = options["choose"]
    if name == "rate":
        label, names = say("Learning rate"), _RATE_TEXTS
    else:
        label, names = say("Random numbers to begin with"), {seed: seed for seed in _SEEDS}
    forget = partial(pick, key, AT, "")
    return choose_button(label, names, key, name, first=options[name], then=forget, width="content")


def _show_button(shared: SharedTraining, running: str, *, is_running: bool) -> None:
    """Show the button that starts, stops or continues a training."""

    def begin() -> None:
        st.session_state[running] = (shared.rate, shared.seed)

    if is_running:
        st.button(
            say("Stop"),
            icon=":material/stop:",
            key=f"{running} button",
            on_click=st.session_state.pop,
            args=(running, None),
        )
    else:
        word = say("Go on") if shared.frames else say("Train")
        st.button(
            say("Trained already") if shared.is_over else word,
            icon=":material/check:" if shared.is_over else ":material/play_arrow:",
            key=f"{running} button",
            type="primary",
            disabled=shared.is_over,
            on_click=begin,
        )


def _show_progress(shared: SharedTraining, *, is_running: bool) -> None:
    """Show the progress of a running or a stopped training."""
    if shared.is_over or not (is_running or shared.frames):
        return
    words = say("It trains…") if shared.frames else say("The drawings are being made…")
    st.progress(shared.share, words if is_running else say("Stopped."))


def _rerun() -> None:
    """Run the part again, or the whole page if this run is one of it."""
    try:
        st.rerun(scope="fragment")
    except StreamlitAPIException:
        st.rerun()
