"""Answer with a picture that maximizes a channel, reported while it is optimised.

The picture and the state of the optimisation are cached, so that a question that ends early loses
nothing, and the next one resumes.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hookviz.drawing.pictures import encode_jpeg, enlarged
from hookviz.errors import HookVizError
from hookviz.explorer.layers import ResolvedView, maps, resolve
from hookviz.explorer.question import Answer, QuestionError, Report, asked_number, is_below, written
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import MOST_STEPS, View
from hookviz.language.saying import say
from hookviz.synthesis.goals import Objective
from hookviz.synthesis.maximizing import STEPS, begin
from hookviz.synthesis.optimizing import ROUNDED, Optimization, run_resumed
from hookviz.synthesis.settings import MaximizationConfig
from hookviz.types import Pixels
from hookviz.wording import number

_REPORT_EVERY_S = 0.16  # six pictures a second are a movement
_SIDE_PX = 256  # of a picture on the screen
_QUALITY = 90  # of its JPEG
_MOST_SEED = 999_999_999  # as a link can write it


@dataclass(frozen=True, eq=False, slots=True)
class _Picture:
    """A channel's cached picture: RGB uint8, ``(H, W, 3)``, and its mean activation."""

    pixels: Pixels = field(repr=False)
    steps: int
    value: float
    channels_last: bool  # in its passes


@dataclass(frozen=True, slots=True)
class _PictureCache:
    """Cache of a channel's picture from one seed."""

    subject: Subject
    layer: str
    channel: int
    seed: int

    @property
    def key(self) -> tuple[object, ...]:
        """Cache key; the picture does not depend on the image."""
        return ("own picture", self.subject.model.digest, self.layer, self.channel, self.seed)

    def get(self) -> _Picture | None:
        """Return the picture after the latest steps; None before the first."""
        picture: _Picture | None = self.subject.cache.get((*self.key, "pixels"))
        return picture

    def put(self, optimization: Optimization, value: float) -> _Picture:
        """Cache the picture after the latest steps, and return it."""
        pixels, channels_last = optimization.pictures()[0], optimization.passes.channels_last
        picture = _Picture(pixels, optimization.steps, value, channels_last)
        self.subject.cache.put((*self.key, "pixels"), picture, picture.pixels.nbytes)
        return picture


def answer_own_picture(
    subject: Subject, view: View, facts: Mapping[str, Any], report: Report
) -> Answer:
    """Answer with a picture that excites a channel after `steps` from the noise of a `seed`.

    `report` gets the picture about six times a second. If it raises, the optimisation ends, and its
    state stays cached.

    Raises:
        NotThereError: the channel does not exist.
        QuestionError: `steps` or `seed` is no number of steps, or no seed.
        HookVizError: the layer can have no picture, or it takes longer than one may.
    """
    steps = _asked(facts, "steps", 1, MOST_STEPS)
    resolved = resolve(subject, view)
    address = resolved.step
    pictures = _pictures_of(subject, resolved, facts)
    if address.call or address.path:
        return Answer(
            {
                "missing": say(
                    "Pictures are made for the first call of a layer that puts out one tensor."
                )
            }
        )
    picture = pictures.get()
    if picture is not None and picture.steps != steps:
        report(_answer(pictures, picture, steps, running=True))
    if picture is None or picture.steps != steps:
        picture = _optimise(pictures, steps, report)
    return _answer(pictures, picture, steps, running=False)


def answer_stopped(
    subject: Subject, view: View, facts: Mapping[str, Any], _report: Report
) -> Answer:
    """Answer with the number of steps of a channel's cached picture, 0 without any.

    Raises:
        NotThereError: the channel does not exist.
        QuestionError: `seed` is none.
        HookVizError: the layer can't be recorded.
    """
    picture = _pictures_of(subject, resolve(subject, view), facts).get()
    return Answer({"steps": 0 if picture is None else picture.steps})


def _pictures_of(
    subject: Subject, resolved: ResolvedView, facts: Mapping[str, Any]
) -> _PictureCache:
    seed = _asked(facts, "seed", 0, _MOST_SEED)
    channel = asked_number(facts, "channel", len(maps(subject, resolved)), resolved.step)
    if resolved.step.layer in subject.trace.functions.calls:
        raise HookVizError(
            say(
                "{layer} is a function in the network's code: pictures are made for layers. "
                "Show the layer before it.",
                layer=resolved.step.layer,
            )
        )
    return _PictureCache(subject, resolved.step.layer, channel, seed)


def _optimise(pictures: _PictureCache, steps: int, report: Report) -> _Picture:
    """Optimise the picture in a job slot, from the cached state."""
    subject, due = pictures.subject, 0.0
    method = MaximizationConfig(seed=pictures.seed)
    turn = subject.take_turn(say("The channel's picture"), "own-picture", pictures.layer)
    with turn as run:
        objective = Objective.of_channel(pictures.layer, pictures.channel)
        optimization = begin(subject.model, [objective], method)
        progress = run.yielding()

        def after(now: Optimization) -> None:
            nonlocal due
            if time.monotonic() >= due:  # cached first: the report can end the optimisation
                picture = pictures.put(now, now.values[0])
                report(_answer(pictures, picture, steps, running=True))
                due = time.monotonic() + _REPORT_EVERY_S
            progress(now.steps / steps)

        run_resumed(optimization, steps, subject.cache, (*pictures.key, "state"), after)
        return pictures.put(optimization, optimization.measured()[0])


def _answer(pictures: _PictureCache, picture: _Picture, steps: int, *, running: bool) -> Answer:
    """Describe a picture on its way to `steps`; `more` is where the next request would lead."""
    facts = {
        "channel": pictures.channel,
        "seed": pictures.seed,
        "steps": picture.steps,
        "of": steps,
        "value": number(picture.value),
        "says": say(
            "step {steps} · mean {mean_value}. One thing that it answers to, not all; "
            "untrained channels have pictures too.",
            steps=picture.steps,
            mean_value=number(picture.value),
        ),
        "how": say(ROUNDED) if picture.channels_last else "",
        "alt": say(
            "A picture that the network made for channel {channel}, step {steps}",
            channel=pictures.channel,
            steps=picture.steps,
        ),
        "more": min(steps + STEPS, MOST_STEPS) if steps < MOST_STEPS else None,
        "running": running,
    }
    return Answer(facts, encode_jpeg(enlarged(picture.pixels, _SIDE_PX), quality=_QUALITY))


def _asked(facts: Mapping[str, Any], name: str, first: int, last: int) -> int:
    """Return a number of the question's facts.

    Raises:
        QuestionError: it is no whole number from `first` to `last`.
    """
    value = facts.get(name)
    if not is_below(value, last + 1, first):
        raise QuestionError(
            say(
                "{name}={value} is not a whole number from {first} to {last}.",
                name=name,
                value=written(value),
                first=first,
                last=last,
            )
        )
    return value
