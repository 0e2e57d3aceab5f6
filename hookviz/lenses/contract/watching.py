"""Offer steps and seed for lenses that optimize pictures, and report progress and pictures."""

import time
from collections.abc import Callable

from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.lens import Subject
from hookviz.lenses.contract.parameters import WholeNumber
from hookviz.synthesis.optimizing import Optimization

_LAST_SEED = 2**31 - 100  # several pictures have seeds that follow each other
_EVERY = 0.12  # seconds between two pictures, which take time to make


def steps_choice(
    default: int,
    high: int = 2048,
    text: str = mark("Passes there and back. More of them go on from those that are done."),
) -> WholeNumber:
    """Return the parameter for how many steps an optimization takes."""
    return WholeNumber(
        name="steps", label=say("Steps"), low=1, high=high, default=default, help=text
    )


def seed_choice(text: str) -> WholeNumber:
    """Return the parameter for the seed of an optimization; `text` says of what."""
    return WholeNumber(
        name="seed", label=say("Seed"), low=0, high=_LAST_SEED, default=0, help=text, rare=True
    )


def watched(
    subject: Subject,
    steps: int,
    show: Callable[[Optimization], object],
    reporter: ProgressReporter | None = None,
) -> Callable[[Optimization], None]:
    """Return what an optimization calls after each of `steps`.

    Args:
        subject: whose progress is told.
        steps: of the optimization, in all.
        show: hands over what there is; called for the first step, and some times a second.
        reporter: where the optimization is one step of several.
    """
    whole = ProgressReporter(subject.progress)
    due = 0.0

    def after(now: Optimization) -> None:
        nonlocal due
        if now.steps < steps and time.monotonic() >= due:
            show(now)
            due = time.monotonic() + _EVERY
        if reporter is None:
            whole.share(now.steps / steps)
        else:
            reporter.within(now.steps / steps)

    return after
