"""Show a small network as it is trained: kernels, maps, loss and gradients, step by step."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hookviz.drawing.pictures import encode_png
from hookviz.language.saying import say
from hookviz.lessons.parts.training import kernel_pixels, strip_png
from hookviz.lessons.small_network import LAYERS, STEPS, Frame, maps_at
from hookviz.lessons.trainings import SharedTraining
from hookviz.markup import data_url
from hookviz.types import Pixels
from hookviz.ui.components.files import show
from hookviz.wording import number

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


def show_training(
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
    show(
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
        "strip": data_url(encode_strip(training)),
    }


def encode_strip(training: SharedTraining) -> bytes:
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
