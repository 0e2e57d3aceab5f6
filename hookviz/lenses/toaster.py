"""Make it a toaster: the smallest change of a picture that flips the answer, as a card to save."""

import time
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from torch import Tensor

from hookviz.capturing.inputs import prepare_input
from hookviz.codegen import optimizing
from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import constants, in_order
from hookviz.codegen.lens_script import target as target_line
from hookviz.codegen.script_text import source_of
from hookviz.drawing.panels import (
    ChartPanel,
    FilePanel,
    ImagePanel,
    Panel,
    TablePanel,
    TextPanel,
)
from hookviz.drawing.pictures import Face, encode_png, enlarged, picture_card
from hookviz.explaining.scores.adversarial import (
    MOST,
    OtherAnswer,
    PictureChange,
    class_scores_of,
    class_to_make,
    descended,
    other_answer,
    other_names,
    smallest_bound,
    smallest_change,
)
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.images.preprocess import check_repaints
from hookviz.language.saying import mark, say, say_count
from hookviz.lenses.contract.lens import WHAT_IF, Lens, LensOutput, Preview, Subject
from hookviz.lenses.contract.parameters import (
    ClassChoice,
    Switch,
    WholeNumber,
)
from hookviz.lenses.contract.shared_choices import steps_choice
from hookviz.outputs.answer import LOGITS, Reading
from hookviz.types import Model, Pixels

_EVERY = 0.12  # seconds between two pictures on the way
_FULL = 96  # levels that the largest change is enlarged to, at most
_BARS = 3  # classes before, and as many after
_HEADS = mark("Network"), mark("Before"), mark("With this change"), mark("A change of its own")

Row = tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ToasterChoice(ClassChoice):
    """Choice of the class to make of a picture: a toaster by default, else the second likeliest."""

    unchosen: ClassVar[str] = mark("{top}: choose any class")

    def start(self, subject: Subject) -> int:
        """Return the class where none is chosen.

        Raises:
            ModelError: the network puts out no class scores.
        """
        scores = subject.scored.logits
        assert scores is not None
        return class_to_make(subject.model, scores)


def run(
    subject: Subject, *, target: int, sure: int, steps: int, most: int, others: bool
) -> LensOutput:
    """Change the picture as little as was found to do until the network takes it for a class.

    The search and its source are at `smallest_change`. Values are ``picture`` and ``difference``,
    ``(H, W, 3)`` in levels of 255, ``bound``, ``found``, and the probabilities ``before`` and
    ``after``, ``(classes,)``, of the picture as a PNG file holds it.

    Raises:
        HookVizError: the network takes the picture for that class already, or makes its input by a
            function of its own.
        ModelError: the network puts out no class scores, or can't be differentiated.
    """
    check_repaints(subject.model, subject.model_input)
    names = other_names(subject.model) if others else ()
    reporter = ProgressReporter(subject.progress, 1 + len(names))
    search = partial(smallest_change, steps=steps, most=most, sure=sure / 100)
    due = 0.0

    def show(now: PictureChange) -> None:
        nonlocal due
        if time.monotonic() >= due:
            subject.partial(_output(subject, _ChangedImage(now, others)))
            due = time.monotonic() + _EVERY

    change = search(
        subject.model, subject.model_input, target, progress=reporter.within, partial=show
    )
    reporter.step()
    rows: list[Row] = []
    for name in names:
        answer = other_answer(name, change, search, reporter)
        rows += [_row(answer)] if answer is not None else []
        reporter.step()
        subject.partial(_output(subject, _ChangedImage(change, others, tuple(rows))))
    return _output(
        subject, _ChangedImage(change, others, tuple(rows), _reopened_answer(subject, change))
    )


def _row(answer: OtherAnswer) -> Row:
    answers = (
        _likeliest(answer.model, Reading(LOGITS), scores)
        for scores in (answer.before, answer.after)
    )
    return answer.model.title, *answers, _own_change(answer.model, answer.own)


def _own_change(model: Model, own: PictureChange) -> str:
    label = model.label(own.target)
    if not own.found:
        return say("to {label}: none found", label=label)
    return say_count(
        "to {label}: {count} level", "to {label}: {count} levels", own.bound, label=label
    )


@dataclass(frozen=True, eq=False, slots=True)
class _ChangedImage:
    """What there is to show: the change, other networks, and what the file gives when opened."""

    change: PictureChange
    others: bool
    rows: tuple[Row, ...] = ()
    opened: str = ""

    @property
    def times(self) -> int:
        """How much the difference is enlarged: the largest to nearly the ends, and whole times."""
        return max(1, _FULL // self.change.bound)

    @property
    def enlarged_difference(self) -> Pixels:
        """What was added, enlarged about a middle grey, uint8 ``(H, W, 3)``."""
        moved = self.change.difference.astype(np.int32) * self.times + 128
        shown: Pixels = moved.clip(0, 255).astype(np.uint8)
        return shown


def _output(subject: Subject, result: _ChangedImage) -> LensOutput:
    """Return the result so far; the same panels all the way."""
    change, model = result.change, subject.model
    before, after = (
        _likeliest(model, change.reading, scores) for scores in (change.before, change.after)
    )
    name = f"{model.name}-{model.label(change.target)}".replace(" ", "-")
    added = say("What is added, {factor}×", factor=result.times)
    bound = say("No number moved by more than {bound} of 255", bound=change.moved)
    panels: list[Panel] = [
        TextPanel(_answer(subject, change), "answer"),
        TextPanel(_words(subject, result)),
        FilePanel(say("Save as a card"), f"{name}-card.png", partial(_card, result)),
        _picture(before, change.original, say("Before")),
        _picture(after, change.picture, say("After")),
        _picture(added, result.enlarged_difference, bound),
        _chart(subject, change),
    ]
    if result.others:
        is_known = change.found or bool(result.opened)  # else the search goes on
        own = _own_change(model, change) if is_known else "…"
        panels.append(
            TablePanel(
                say("Network after network"),
                _HEADS,
                ((model.title, before, after, own), *result.rows),
                say(
                    "The change was made for the first network alone; the last column says what "
                    "does it for each."
                ),
            )
        )
    panels.append(
        FilePanel(
            say("The changed picture"),
            f"{name}.png",
            lambda _model: encode_png(change.picture),
            result.opened,
        )
    )
    return tuple(panels), {
        "picture": change.picture,
        "difference": change.difference,
        "bound": np.array(change.bound),
        "found": np.array(change.found),
        "before": change.reading.values(change.before).numpy(),
        "after": change.reading.values(change.after).numpy(),
    }


def _picture(title: str, picture: Pixels, caption: str) -> ImagePanel:
    return ImagePanel(title, enlarged(picture), alt=f"{caption}: {title}", caption=caption)


def _answer(subject: Subject, change: PictureChange) -> str:
    """Say in one sentence how little it takes."""
    if not change.found:
        return say("Not {label} yet.", label=subject.label(change.target))
    return say(
        "A change of at most {bound} of 255 turns {old} into {new}.",
        bound=change.bound,
        old=subject.label(int(change.before.argmax())),
        new=subject.label(change.target),
    )


def _words(subject: Subject, result: _ChangedImage) -> str:
    change = result.change
    label = subject.label(change.target)
    if not change.found:
        return say(
            "Not {label} yet: with no number moved by more than {bound} of 255 it went from {old} "
            "to {new}.",
            label=label,
            bound=change.bound,
            old=change.text(change.before),
            new=change.text(change.after),
        )
    return say(
        "The network took this for {old}, and now takes it for {new}. No number of the picture "
        "moved by more than {bound} of 255, the smallest bound that was found.",
        old=subject.label(int(change.before.argmax())),
        new=label,
        bound=change.bound,
    )


def _chart(subject: Subject, change: PictureChange) -> ChartPanel:
    reading = change.reading
    both = (change.before, change.after)
    chances = [reading.values(scores).double().numpy() for scores in both]
    first = [int(at) for each in chances for at in np.argsort(-each, kind="stable")[:_BARS]]
    shown = list(dict.fromkeys((first[0], change.target, *first)))[: 2 * _BARS]
    series = zip((say("Before"), say("After")), chances, strict=True)
    return ChartPanel(
        say("How likely") if reading.is_share else say("Scores"),
        tuple(subject.label(at) for at in shown),
        {name: (100 if reading.is_share else 1) * each[shown] for name, each in series},
        unit="%" if reading.is_share else say("score"),
    )


def _reopened_answer(subject: Subject, change: PictureChange) -> str:
    """Return what the changed picture's file gives when it is opened as any photograph is."""
    model = subject.model
    again = prepare_input(model, encode_png(change.picture))
    said = _likeliest(model, change.reading, class_scores_of(model, again))
    if again.digest == change.model_input.digest:
        return say("Opened here as a photograph it gives the same: {answer}.", answer=said)
    return say(
        "Opened here as it is, with its whole image, it gives the same. Scaled and cropped first, "
        "as any photograph, it gives {answer}: so small a change is easily lost.",
        answer=said,
    )


def _card(result: _ChangedImage, model: Model) -> bytes:
    """Draw the card: the three pictures, their answers and the bound."""
    change = result.change
    old, label = int(change.before.argmax()), model.label(change.target)
    words = say(
        "No number of the picture moved by more than {bound} of 255. {label} went from {before} to "
        "{after}, in {count} passes forward and back.",
        bound=change.moved,
        count=change.passes,
        label=label,
        before=change.text(change.before),
        after=change.text(change.after),
    )
    heading = say("Still {label}", label=model.label(old))
    if change.found:
        heading = say("From {old} to {new}", old=model.label(old), new=label)
    faces = (
        Face(change.original, say("Before"), _likeliest(model, change.reading, change.before)),
        Face(change.picture, say("After"), _likeliest(model, change.reading, change.after)),
        Face(
            result.enlarged_difference,
            say("What is added, {factor}×", factor=result.times),
            say("at most {bound} of 255", bound=change.moved),
        ),
    )
    return picture_card(heading, faces, words, f"{model.title} · HookViz").png


def _likeliest(model: Model, reading: Reading, scores: Tensor) -> str:
    """Return the likeliest class with its probability."""
    top = int(scores.argmax())
    return f"{model.label(top)} {reading.text(float(reading.values(scores)[top]))}"


def script(facts: LensFacts) -> LensCode:
    """Write code that searches the smallest bound by the same two functions."""
    grey = ".repeat(3, axis=2)" if facts.shape[0] == 1 else ""  # shown as RGB
    lines = (
        target_line(facts),
        constants(
            facts,
            sure="percent that the class has to have at least",
            steps="passes there and back within a bound",
            most="the largest bound, in levels of 255",
        ),
        optimizing.as_input(facts),
        source_of(descended, smallest_bound),
        _LOOK,
    )
    return in_order(*lines), {
        "picture": f"changed{grey}",
        "difference": f"changed{grey}.astype(np.int16) - picture{grey}",
        "bound": "bound",
        "found": "found",
        "before": "chances(picture)",
        "after": "chances(changed)",
    }


_LOOK = '''

def input_of(picture):
    """A picture of whole levels, (H, W, C), as the network takes it."""
    return as_input(torch.from_numpy(picture).movedim(-1, 0)[None] / 255)


def look(picture):
    """Which way each number has to move for the class to get likelier, and whether it is there."""
    inputs = input_of(picture).requires_grad_()
    scores = model(inputs)
    log_chances = scores.log_softmax(1)[0]
    (gradient,) = torch.autograd.grad(log_chances[TARGET], inputs)
    there = scores[0].argmax() == TARGET and log_chances[TARGET].exp() >= SURE / 100
    return gradient[0].sign().movedim(0, -1).numpy(), bool(there)


def chances(picture):
    """The probability of each class."""
    with torch.no_grad():
        return model(input_of(picture))[0].softmax(0).numpy()


def attempt(bound):
    """The picture that is reached within a bound, and whether it will do."""
    return descended(picture, bound, STEPS, look)


shares = ((batch - low) / (high - low))[0].movedim(0, -1)  # from 0, black, to 1, white
picture = (255 * shares).round().to(torch.uint8).numpy()
changed, bound, found = smallest_bound(attempt, MOST)'''


LENS = Lens(
    slug="toaster",
    title=mark("Make it a toaster"),
    question=mark("How little flips the answer?"),
    sentence=mark("The smallest change found that makes your picture another class."),
    group=WHAT_IF,
    preview=Preview({"others": False}, panel=2, is_dear=True),
    run=run,
    script=script,
    parameters=(
        ToasterChoice(
            label=mark("Make it"),
            help=mark(
                "Any class of the network; a toaster where nothing is chosen, if it knows it."
            ),
        ),
        WholeNumber(
            name="sure",
            label=mark("How sure (percent)"),
            low=0,
            high=99,
            default=0,
            unset=mark("the likeliest will do"),
            help=mark("How likely the class has to be. The surer, the larger the change."),
        ),
        steps_choice(40, 512, mark("Passes there and back within each bound that is tried.")),
        Switch(
            name="others",
            label=mark("Network after network"),
            default=True,
            help=mark(
                "The same for the other networks in the box, and what they say of this change."
            ),
        ),
        WholeNumber(
            name="most",
            label=mark("Largest bound"),
            low=1,
            high=255,
            default=MOST,
            help=mark("Levels of 255 at which the search ends."),
            rare=True,
        ),
    ),
)
