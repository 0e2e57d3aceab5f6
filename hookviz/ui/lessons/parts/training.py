"""Train a small network on drawings, and look at it step by step.

The page is drawn between the steps: kernels, maps, loss and gradients, to play and to scrub
through.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import streamlit as st
import torch
from streamlit.errors import StreamlitAPIException
from torch import Tensor

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
from hookviz.ui.lessons.picks import choose, pick, picked, remember_shown
from hookviz.ui.serving.queue_wait import turn
from hookviz.ui.theme import diverging
from hookviz.wording import number, percent

_WRITTEN: Mapping[str, str] = {"small": "0.0003", "right": "0.03", "large": "0.3"}
"""Learning rates as they are written, by what they are."""
RATES: Mapping[str, float] = {name: float(written) for name, written in _WRITTEN.items()}
"""Learning rates by what they are."""
_SEEDS = (1, 2, 3)
AT = "at"
"""Among the options which frame is looked at, once there are some; in no file."""

_CHOICES = ("nothing", "rate", "seed")


def training_of(options: Options) -> SharedTraining:
    """Return the training that the options name, as far as anybody took it."""
    return training(RATES[options["rate"]], int(options["seed"]))


def fixed_picture(scene: LessonScene) -> Pixels:
    """Return the middle of the scene's image as the small network takes it, ``(SIDE, SIDE, 3)``."""
    return middle_square(picture_of(scene), SIDE)


def first_frame(seed: int) -> Frame:
    """Return the network with its random weights, of which nothing is measured yet."""
    weights = {name: each.detach() for name, each in random_network(seed).named_parameters()}
    return Frame(0, weights, float("nan"), float("nan"), ())


def kernel_pixels(frame: Frame) -> Pixels:
    """Return the first kernels as pictures, uint8 ``(kernels, 7, 7, 3)``.

    Grey is 0, and the largest weight of a kernel, signs aside, is at one end of a colour.
    """
    kernels: Tensor = frame.weights["conv1.weight"]
    sizes = kernels.abs().amax((1, 2, 3), keepdim=True)
    shares = kernels / torch.where(sizes > 0, sizes, 1)
    colours = (127.5 + 127.5 * torch.nan_to_num(shares)).permute(0, 2, 3, 1)
    pixels: Pixels = colours.round().to(torch.uint8).numpy()
    return pixels


def strip_png(frame: Frame) -> bytes:
    """Return the first kernels side by side as a PNG, a pixel for each weight's place."""
    kernels = kernel_pixels(frame)
    between = np.full((kernels.shape[1], 1, 4), 0, np.uint8)
    opaque = np.full((*kernels.shape[:3], 1), 255, np.uint8)
    with_alpha = np.concatenate([kernels, opaque], 3)
    pieces = [piece for kernel in with_alpha for piece in (kernel, between)]
    return encode_png(np.concatenate(pieces[:-1], 1))


def _what_is_seen(options: Options) -> str:
    """Return a sentence on the frame that is looked at, or on what to do before there is one."""
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
        "rate": _WRITTEN[options["rate"]],
        **_WRITTEN,
        "seen": _what_is_seen(options),
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
class Watched:
    """What is shown of a training.

    Attributes:
        name: of the training.
        frames: those that can be looked at; while it trains the newest alone.
        so_far: all that there are, of which the curves are drawn.
        at: which of `frames` is looked at, where there are several.
        kernel: whose map is shown of the first layer.
        others: trainings that are over, to be compared with.
        is_over: whether it is trained.
    """

    name: str
    frames: Sequence[Frame]
    so_far: Sequence[Frame] = field(repr=False)
    at: int
    kernel: int
    others: Sequence[SharedTraining]
    is_over: bool


def _show_training(
    watched: Watched,
    picture: Pixels,
    colours: str,
    *,
    on_at: Callable[[int], None],
    on_kernel: Callable[[int], None],
    key: str,
) -> None:
    """Show a training's frames, to play and to scrub through.

    Args:
        watched: the training.
        picture: what the maps are of, RGB uint8 ``(SIDE, SIDE, 3)``.
        colours: the colormap of signed values.
        on_at: gets the frame where a person stops.
        on_kernel: gets the kernel that is picked.
        key: of the component.
    """

    def number_below(most: int, hear: Callable[[int], None]) -> Callable[[object], None]:
        def heard(sent: object) -> None:
            match sent:
                case int(at) if 0 <= at < most:
                    hear(at)

        return heard

    facts, levels = facts_and_levels(watched, picture)
    facts |= {"colours": colours, "picture_url": data_url(encode_png(picture))}
    mount(
        "training",
        key,
        facts,
        levels,
        at=number_below(len(watched.frames), on_at),
        kernel=number_below(len(kernel_pixels(watched.frames[0])), on_kernel),
    )


def facts_and_levels(watched: Watched, picture: Pixels) -> tuple[dict[str, Any], bytes]:
    """Return what the browser draws, and of each frame the levels of its kernels and maps."""
    maps = [maps_at(frame, picture) for frame in watched.frames]
    # Of each deeper layer the channel that varied most at the beginning, so that it stays one.
    begun = maps_at(watched.so_far[0], picture)
    channels = {name: int(begun[name].flatten(1).std(1).argmax()) for name in _DEEPER}
    pieces = []
    for frame, layers in zip(watched.frames, maps, strict=True):
        shown = [
            *layers[_FIRST].numpy(),
            *(layers[name][channels[name]].numpy() for name in _DEEPER),
        ]
        pieces += [kernel_pixels(frame).tobytes(), *(_levels(each) for each in shown)]
    kernels = kernel_pixels(watched.frames[0])
    facts = {
        "name": watched.name,
        "at": watched.at if len(watched.frames) > 1 else 0,
        "kernel": watched.kernel if watched.kernel < len(kernels) else 0,
        "isOver": watched.is_over,
        "steps": STEPS,
        "kernels": list(kernels.shape[:2]),
        "firstSide": maps[0][_FIRST].shape[1],
        "deeper": [[name, channels[name], maps[0][name].shape[1]] for name in _DEEPER],
        "layers": list(LAYERS),
        "frames": [_facts_of(frame) for frame in watched.frames],
        "curve": [_facts_of(frame) for frame in watched.so_far],
        "others": [_facts_of_other(each) for each in watched.others],
        "words": _words(),
    }
    return facts, b"".join(pieces)


def _levels(values: np.ndarray[Any, np.dtype[np.float32]]) -> bytes:
    """Return a map as levels, 127 for 0, and the largest value, signs aside, 127 away from it."""
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
    return {
        "name": say(
            "rate {rate}, random numbers {seed}", rate=f"{training.rate:g}", seed=training.seed
        ),
        "curve": [[frame.step, _or_none(frame.loss)] for frame in training.frames],
        "right": _or_none(training.frames[-1].accuracy),
        "strip": data_url(_encode_strip(training)),
    }


def _encode_strip(training: SharedTraining) -> bytes:
    """Return the last kernels of a training as a PNG."""
    return strip_png(training.frames[-1])


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
    """Draw the choices, the button that trains, and the network as far as it was trained."""
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
        place = st.container(width="stretch")
    if is_running:
        with place, computing() as mine:
            if mine:
                with turn(say("Training"), "training") as held:
                    shared.go_on(held.limit.within())
    with place:
        _show_progress(shared, is_running=is_running)
    frames = shared.frames or (first_frame(shared.seed),)
    at = min(max(picked(key, AT, len(frames) - 1), 0), len(frames) - 1)
    watched = Watched(
        name=f"{shared.rate} {shared.seed}",
        frames=frames[-1:] if is_running and not shared.is_over else frames,
        so_far=frames,
        at=at,
        kernel=picked(key, "kernel", 0),
        others=tuple(each for each in finished() if each is not shared),
        is_over=shared.is_over,
    )
    _show_training(
        watched,
        fixed_picture(scene),
        diverging(),
        on_at=partial(pick, key, AT),
        on_kernel=partial(pick, key, "kernel"),
        key=f"training-{key}",
    )
    if is_running and not shared.is_over:
        _again()
    # The text tells of what there is when it does not train.
    started = {"rate": options["rate"], "seed": options["seed"], AT: ""}
    shown = {name: chosen[name] for name in ("rate", "seed")}
    remember_shown(key, {**shown, AT: str(at) if shared.frames else ""}, started)


def _choose(options: Options, key: str) -> str:
    """Show the choice of the rate or of the seed, and return what is chosen."""
    forget = partial(pick, key, AT, "")
    if options["choose"] == "rate":
        return choose(
            st.segmented_control,
            say("Learning rate"),
            tuple(RATES),
            key,
            "rate",
            first=options["rate"],
            then=forget,
            format_func=_WRITTEN.__getitem__,
            required=True,
            width="content",
        )
    return choose(
        st.segmented_control,
        say("Random numbers to begin with"),
        tuple(map(str, _SEEDS)),
        key,
        "seed",
        first=options["seed"],
        then=forget,
        required=True,
        width="content",
    )


def _show_button(shared: SharedTraining, running: str, *, is_running: bool) -> None:
    """Show the button that begins, stops or goes on with a training; none where it is over."""

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
    """Show how far a training is that runs or was stopped."""
    if shared.is_over or not (is_running or shared.frames):
        return
    words = say("It trains…") if shared.frames else say("The drawings are being made…")
    st.progress(shared.share, words if is_running else say("Stopped."))


def _again() -> None:
    """Draw the part anew, and with it compute on; the rest of the page stands where it can."""
    try:
        st.rerun(scope="fragment")
    except StreamlitAPIException:  # this run is one of the whole page
        st.rerun()
