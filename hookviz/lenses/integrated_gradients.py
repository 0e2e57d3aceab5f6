"""Show what each pixel adds to a score, by integrated gradients from a blank baseline."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import GRADIENT_AT, baseline, constants, in_order, value_of
from hookviz.codegen.script_text import source_of
from hookviz.drawing.grid import grid_of_any
from hookviz.drawing.panels import (
    GridPanel,
    Panel,
    TextPanel,
)
from hookviz.explaining.attribution.methods import (
    BASELINES,
    IntegratedGradients,
    baseline_of,
    completeness_error,
    gauss_legendre,
    integrated_gradients,
)
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.beside_random import BESIDE_RANDOM
from hookviz.lenses.contract.lens import (
    LOOKS,
    Lens,
    LensOutput,
    Preview,
    Subject,
    map_panels,
    share_of_half,
)
from hookviz.lenses.contract.parameters import OneOf, WholeNumber
from hookviz.lenses.contract.shared_choices import TARGET_CHOICES, call_notes, target_of
from hookviz.wording import number, percent

_MOST_STEPS = 1000
_LIMITS = mark(
    "This divides the whole difference among the pixels. It does not show why a "
    "pixel counts, or which others it counts with. {baseline}"
)
_ENDS = mark(
    "Red adds, blue takes. The strongest 1 % of the pixels share the end colours (±{end_value})."
)
_BASELINES = {
    "zero": mark("A pixel of the mean colour gets nothing, since it is like the start."),
    "grey": mark("A grey pixel gets nothing, since it is like the start."),
    "black": mark("A black pixel gets nothing, since it is like the start."),
    "blurred": mark("What a blur leaves alone, such as a plain area, gets nothing."),
}


def run(subject: Subject, *, baseline: str, steps: int, **target: Any) -> LensOutput:
    """Show what each pixel adds to a quantity q on the way from a baseline to the input.

    q is chosen by `TARGET_CHOICES`: the score of a class before the softmax or, where a layer is
    given, the mean of a channel of that layer, or one cell of it.
    ``(x − x′) · ∫ ∂q/∂x (x′ + α (x − x′)) dα`` (Sundararajan, Taly and Yan, 2017), by the
    Gauss-Legendre rule with `steps` points. The attributions add up to ``q(x) − q(x′)`` but for
    that rule's error, which is shown. Values:
    ``attribution``, float64 ``(C, H, W)``; ``map``, its sum over the input's channels, ``(H, W)``;
    ``value``, q(x); ``start``, q(x′); ``completeness_error``, the share of their difference by
    which the sum is off.

    Raises:
        SettingError: there is no such channel or cell, or the colour can't be had.
        ModelError: no layer is chosen and the network puts out no class scores.
        HookVizError: no gradient gets from q to the input, or the baseline needs an image.
    """
    quantity = target_of(subject, target)
    result = attribute(subject, quantity, baseline, steps)
    shown = result.attribution.sum(0)
    values = {
        "map": shown,
        "attribution": result.attribution,
        "value": np.array(result.value),
        "start": np.array(result.start),
        "completeness_error": np.array(result.error),
    }
    what = quantity.describe(subject.model)
    words = say("Integrated gradients of {quantity}", quantity=what)
    panels: tuple[Panel, ...] = (
        *_answer(what, shown),
        TextPanel(_summarize(what, baseline, result)),
        _completeness(result),
        *(TextPanel(note, "note") for note in _notes(subject, quantity, result)),
        *(map_panels(subject, shown, words, _ENDS, signed=True) if len(subject.shape) == 3 else ()),
        TextPanel(say(_LIMITS, baseline=say(_BASELINES[baseline])), "note"),
        GridPanel(
            say("Channel by channel of the input"),
            grid_of_any(
                result.attribution.astype(np.float32),
                scale="symmetric",
                title=words,
                width=900,
            ),
        ),
    )
    return panels, values


def _answer(what: str, map_: NDArray[np.float64]) -> tuple[TextPanel, ...]:
    """Say in one sentence on how few pixels half of the additions lie."""
    share = share_of_half(np.maximum(map_, 0))
    if share is None:
        return ()
    words = say(
        "Half of what adds to {quantity} is on {percent} % of the input.",
        quantity=what,
        percent=number(100 * share),
    )
    return (TextPanel(words, "answer"),)


def attribute(
    subject: Subject, quantity: AttributionTarget, baseline: str, steps: int
) -> IntegratedGradients:
    """Compute what each pixel adds to a quantity; see `run`."""
    return integrated_gradients(
        subject.model,
        subject.model_input,
        quantity,
        baseline_of(subject.model, subject.model_input, baseline),
        steps=steps,
        progress=subject.progress,
    )


def _summarize(what: str, baseline: str, result: IntegratedGradients) -> str:
    start = (
        say("a blurred version of the image")
        if baseline == "blurred"
        else say("{baseline} everywhere", baseline=say(baseline))
    )
    return say(
        "From {baseline} to this image, {quantity} goes from {first_value} to {last_value}. Red "
        "pixels add to that, blue ones take from it.",
        baseline=start,
        quantity=what,
        first_value=number(result.start),
        last_value=number(result.value),
    )


def _completeness(result: IntegratedGradients) -> TextPanel:
    """Say whether what the pixels add comes to the whole difference."""
    total = number(float(result.attribution.sum()))
    whole = number(result.difference)
    if not (np.isfinite(result.attribution).all() and np.isfinite(result.difference)):
        return TextPanel(
            say(
                "There are NaN or infinities on the way, so nothing adds up. The lens health "
                "says in which layer they begin."
            ),
            "bad",
        )
    at = say("at {steps} steps", steps=result.steps)
    if result.is_complete:
        return TextPanel(
            say(
                "Complete: together the pixels add {total} of {difference}, off by {error} "
                "{steps}.",
                total=total,
                difference=whole,
                error=percent(result.error),
                steps=at,
            ),
            "good",
        )
    enough = result.enough_steps
    if enough is None:
        return TextPanel(
            say(
                "Together the pixels add {total}, and the difference is {difference}: there is no "
                "share to be off by. Another baseline may differ more.",
                total=total,
                difference=whole,
            ),
            "note",
        )
    hint = (
        say("About {steps:,} steps should bring that below 1 %.", steps=enough)
        if enough <= _MOST_STEPS
        else say(
            "More than {limit:,} steps may be needed for 1 %; a baseline that "
            "differs more needs fewer.",
            limit=_MOST_STEPS,
        )
    )
    return TextPanel(
        say(
            "Not complete: together the pixels add {total} of {difference}, off by {error} "
            "{steps}. {hint}",
            total=total,
            difference=whole,
            error=percent(result.error),
            steps=at,
            hint=hint,
        ),
        "note",
    )


def _notes(subject: Subject, quantity: AttributionTarget, result: IntegratedGradients) -> list[str]:
    notes = call_notes(subject, quantity.layer)
    if not result.attribution.any():
        notes.append(say("Every pixel adds 0: on the whole way no small change of one changes it."))
    return notes


def script(facts: LensFacts) -> LensCode:
    """Write a pass there and back for each point of the way."""
    steps = constants(facts, steps="points on the way")
    functions = source_of(gauss_legendre, completeness_error)
    lines = in_order(*value_of(facts), GRADIENT_AT, functions, steps, baseline(facts), _WAY)
    return lines, {
        "map": "attribution.sum(0)",
        "attribution": "attribution",
        "value": "value",
        "start": "start",
        "completeness_error": "completeness_error(attribution, value - start)",
    }


_WAY = """\
total = np.zeros(batch.shape[1:])
for point, weight in zip(*gauss_legendre(STEPS), strict=True):
    total += weight * gradient_at(baseline + point * (batch - baseline))[0]
attribution = total * (batch - baseline)[0].numpy()  # (C, H, W)
with torch.no_grad():
    value, start = value_of(batch).item(), value_of(baseline).item()"""


LENS = Lens(
    slug="integrated-gradients",
    title=mark("Integrated gradients"),
    question=mark("What does each pixel add?"),
    sentence=mark("How much of a score each pixel adds or takes, from a blank image to this one."),
    group=LOOKS,
    preview=Preview({"steps": 12}),
    run=run,
    script=script,
    parameters=(
        *TARGET_CHOICES,
        OneOf(
            name="baseline",
            label=mark("From"),
            choices=BASELINES,
            help=mark("The blank image. zero: the mean colour that the preprocessing takes off."),
        ),
        WholeNumber(
            name="steps",
            label=mark("Steps"),
            low=1,
            high=_MOST_STEPS,
            default=50,
            help=mark("Points on the way. More take longer and add up better."),
        ),
        BESIDE_RANDOM,
    ),
)
