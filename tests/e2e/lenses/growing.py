"""A lens of a test's own that grows: a hundred steps, in each of which one more row is painted."""

import time

import numpy as np

from hookviz.drawing.panels import ChartPanel, ImagePanel, TextPanel
from hookviz.lenses.contract.lens import SEES, Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import WholeNumber

STEPS = 100
SLOW = 25  # steps of a run that goes on; by then it was seen, or stopped


def run(subject: Subject, *, pause: int) -> LensOutput:
    """The rows painted so far, from where the last run was ended."""
    key = ("growing", subject.model_input.digest)
    assert subject.cache is not None
    first = subject.cache.get(key) or 0
    for step in range(first, STEPS):
        time.sleep(min(pause, 10 if first and step >= first + SLOW else pause) / 1000)
        subject.cache.put(key, step, 8)
        subject.partial(_output(step, first))
        subject.progress(step / STEPS)
    return _output(STEPS, first)


def _output(step: int, first: int) -> LensOutput:
    picture = np.full((200, 200, 3), 220, np.uint8)
    picture[: 2 * step] = (40, 90, 160)
    steps = np.arange(10, dtype=np.float64)
    panels = (
        TextPanel(f"Step {step}, begun at {first}."),
        ImagePanel("The picture", picture, f"{step} rows are painted", "What grows."),
        ChartPanel("Its way", tuple("0123456789"), {"rows": np.minimum(steps * 10, step)}),
    )
    return panels, {"step": np.array(step)}


LENS = Lens(
    slug="growing",
    title="Growing",
    question="What grows?",
    group=SEES,
    sentence="A picture that is painted row by row.",
    run=run,
    script=lambda _facts: ("", {}),
    parameters=(WholeNumber(name="pause", label="Pause", default=60, low=0, high=2000),),
)
