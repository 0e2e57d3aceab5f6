"""Answer what a channel looks for: a picture that the network makes, reported while it grows.

The picture and where its making stood are kept, so that a question that ends early loses nothing,
and the next one goes on from there.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hookviz.drawing.pictures import encode_jpeg, enlarged
from hookviz.errors import HookVizError
from hookviz.explorer.layers import Looked, maps, resolve
from hookviz.explorer.question import Answer, QuestionError, Report, asked_number, is_below, written
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import MOST_STEPS, View
from hookviz.language.saying import say
from hookviz.synthesis.goals import Objective
from hookviz.synthesis.maximizing import STEPS, begin
from hookviz.synthesis.optimizing import ROUNDED, Optimization, run_resumed
from hookviz.synthesis.settings import SynthesisMethod
from hookviz.types import Pixels
from hookviz.wording import number

_EVERY = 0.16  # seconds between two pictures: six a second are a movement
_SIDE = 256  # pixels of a picture as it is shown
_QUALITY = 90  # of its JPEG
_MOST_SEED = 999_999_999  # as a link can write it


@dataclass(frozen=True, eq=False, slots=True)
class _Picture:
    """A channel's picture as it is kept: RGB uint8, ``(H, W, 3)``, and its mean activation."""

    pixels: Pixels = field(repr=False)
    steps: int
    value: float
    channels_last: bool  # in its passes


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The picture that is asked for, of a unit from a seed, and where it is kept."""

    subject: Subject
    layer: str
    channel: int
    seed: int

    @property
    def key(self) -> tuple[object, ...]:
        """Return the key that it has in the cache: the image is nothing to it."""
        return ("own picture", self.subject.model.digest, self.layer, self.channel, self.seed)

    @property
    def kept(self) -> _Picture | None:
        """Return the picture as far as it is made."""
        picture: _Picture | None = self.subject.cache.get((*self.key, "pixels"))
        return picture

    def keep(self, optimization: Optimization, value: float) -> _Picture:
        """Keep the picture as far as it is made now, and return it."""
        pixels, channels_last = optimization.pictures()[0], optimization.passes.channels_last
        picture = _Picture(pixels, optimization.steps, value, channels_last)
        self.subject.cache.put((*self.key, "pixels"), picture, picture.pixels.nbytes)
        return picture


def answer_own_picture(
    subject: Subject, view: View, facts: Mapping[str, Any], report: Report
) -> Answer:
    """Answer with a picture that excites a channel after `steps` from the noise of a `seed`.

    `report` gets the picture about six times a second; what it raises ends the making, and what is
    made is kept.

    Raises:
        NotThereError: there is no such channel.
        QuestionError: `steps` or `seed` is no number of steps, or no seed.
        HookVizError: there is no picture to be made, or it takes longer than one may.
    """
    steps = _asked(facts, "steps", 1, MOST_STEPS)
    looked = resolve(subject, view)
    address = looked.step
    wanted = _wanted(subject, looked, facts)
    if address.call or address.path:
        return Answer(
            {
                "missing": say(
                    "Pictures are made for the first call of a layer that puts out one tensor."
                )
            }
        )
    kept = wanted.kept
    if kept is not None and kept.steps == steps:
        return _answer(wanted, kept, steps, running=False)
    if kept is not None:
        report(_answer(wanted, kept, steps, running=True))
    return _answer(wanted, _made(wanted, steps, report), steps, running=False)


def answer_stopped(
    subject: Subject, view: View, facts: Mapping[str, Any], _report: Report
) -> Answer:
    """Answer how many steps of a channel's picture are made; 0 where none is.

    Raises:
        NotThereError: there is no such channel.
        QuestionError: `seed` is none.
        HookVizError: the layer can't be recorded.
    """
    kept = _wanted(subject, resolve(subject, view), facts).kept
    return Answer({"steps": 0 if kept is None else kept.steps})


def _wanted(subject: Subject, looked: Looked, facts: Mapping[str, Any]) -> _Wanted:
    seed = _asked(facts, "seed", 0, _MOST_SEED)
    channel = asked_number(facts, "channel", len(maps(subject, looked)), looked.step)
    if looked.step.layer in subject.trace.functions.calls:
        raise HookVizError(
            say(
                "{layer} is a function in the network's code: pictures are made for layers. "
                "Show the layer before it.",
                layer=looked.step.layer,
            )
        )
    return _Wanted(subject, looked.step.layer, channel, seed)


def _made(wanted: _Wanted, steps: int, report: Report) -> _Picture:
    """Make the picture in a turn, from where it stood."""
    subject, due = wanted.subject, 0.0
    method = SynthesisMethod(seed=wanted.seed)
    turn = subject.take_turn(say("The channel's picture"), "own-picture", wanted.layer)
    with turn as run:
        objective = Objective.of_channel(wanted.layer, wanted.channel)
        optimization = begin(subject.model, [objective], method)
        progress = run.yielding()

        def after(now: Optimization) -> None:
            nonlocal due
            if time.monotonic() >= due:  # kept first: the report can end the making
                picture = wanted.keep(now, now.values[0])
                report(_answer(wanted, picture, steps, running=True))
                due = time.monotonic() + _EVERY
            progress(now.steps / steps)

        run_resumed(optimization, steps, subject.cache, (*wanted.key, "state"), after)
        return wanted.keep(optimization, optimization.measured()[0])


def _answer(wanted: _Wanted, picture: _Picture, steps: int, *, running: bool) -> Answer:
    """Describe a picture on its way to `steps`; `more` is where the next request would lead."""
    facts = {
        "channel": wanted.channel,
        "seed": wanted.seed,
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
            channel=wanted.channel,
            steps=picture.steps,
        ),
        "more": min(steps + STEPS, MOST_STEPS) if steps < MOST_STEPS else None,
        "running": running,
    }
    return Answer(facts, encode_jpeg(enlarged(picture.pixels, _SIDE), quality=_QUALITY))


def _asked(facts: Mapping[str, Any], name: str, first: int, last: int) -> int:
    """Return a number that the question says.

    Raises:
        QuestionError: it is no whole number from `first` to `last`.
    """
    given = facts.get(name)
    if not is_below(given, last + 1, first):
        raise QuestionError(
            say(
                "{name}={value} is not a whole number from {first} to {last}.",
                name=name,
                value=written(given),
                first=first,
                last=last,
            )
        )
    return given
