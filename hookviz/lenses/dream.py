"""Change the image on the screen so that a layer sees more of what it sees in it: DeepDream."""

from collections.abc import Callable

import numpy as np

from hookviz.codegen import optimizing
from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import constants, in_order
from hookviz.codegen.script_text import source_of
from hookviz.drawing.overlay import input_picture
from hookviz.drawing.panels import ImagePanel, TextPanel
from hookviz.drawing.pictures import enlarged
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.lens import SEES, Lens, LensOutput, Preview, Subject, how_note
from hookviz.lenses.contract.parameters import LayerChoice, RealNumber
from hookviz.lenses.contract.shared_choices import seed_choice, step_callback, steps_choice
from hookviz.synthesis.goals import Objective
from hookviz.synthesis.optimizing import Optimization, run_resumed
from hookviz.synthesis.picture_space import InputRange, picture_shape, spectrum_of, to_plain
from hookviz.synthesis.settings import MaximizationConfig, moved
from hookviz.wording import number


def run(subject: Subject, *, layer: str, steps: int, rate: float, seed: int) -> LensOutput:
    """Change the input by gradient ascent on the mean square of the layer's output.

    DeepDream (Mordvintsev, Olah and Tyka, 2015) in Fourier space: what is there in the layer, if
    only a little, grows. Values are ``picture`` ``(H, W, 3)`` uint8, ``before`` and ``after``: the
    layer's mean square, and ``history`` ``(steps,)``.

    Raises:
        HookVizError: the model takes no pictures.
        ModelError: there is no gradient to follow; a layer that has one is named.
    """

    def show(now: Optimization) -> None:
        subject.partial(_output(subject, layer, now, now.values[0]))

    method = MaximizationConfig(size=None, seed=seed, rate=rate)
    optimization = run_dream(subject, layer, method, steps, show)
    return _output(subject, layer, optimization, optimization.measured()[0])


def run_dream(
    subject: Subject,
    layer: str,
    method: MaximizationConfig,
    steps: int,
    show: Callable[[Optimization], object],
) -> Optimization:
    """Optimise the subject's input as `run` says; `show` gets what there is meanwhile."""
    picture_shape(subject.model, None)  # says that it takes none
    start = InputRange.of(subject.model, subject.shape).to_picture(subject.model_input.tensor)
    optimization = Optimization(subject.model, [Objective(layer)], method, start=start)
    key = ("dream", subject.model.cache_key, subject.model_input.digest, layer, method)
    run_resumed(optimization, steps, subject.cache, key, step_callback(subject, steps, show))
    return optimization


def _output(subject: Subject, layer: str, optimization: Optimization, value: float) -> LensOutput:
    """Return the result so far; the same panels at every step."""
    (picture,) = optimization.pictures()
    before = optimization.history[0][0]
    panels = (
        TextPanel(_answer(layer, before, value), "answer"),
        TextPanel(
            say(
                "After {steps} steps the mean square of {layer} is {value}; it was {first_value} "
                "at the first.",
                steps=optimization.steps,
                layer=layer,
                value=number(value),
                first_value=number(before),
            )
        ),
        ImagePanel(
            say("The image"),
            enlarged(input_picture(subject.model_input)),
            alt=say("The image as the network gets it"),
        ),
        ImagePanel(
            say("What {layer} makes of it", layer=layer),
            enlarged(picture),
            alt=say(
                "The image after {steps} steps towards what {layer} sees in it",
                steps=optimization.steps,
                layer=layer,
            ),
        ),
        TextPanel(
            say(
                "What grows here is what the layer's channels react to together. It is no "
                "proof that the network takes the image for what one sees in the picture now."
            ),
            "note",
        ),
        *how_note(optimization.passes.how),
    )
    return panels, {
        "picture": picture,
        "before": np.array(before),
        "after": np.array(value),
        "history": np.array(optimization.history, np.float64)[:, 0],
    }


def _answer(layer: str, before: float, value: float) -> str:
    """Say in one sentence how much stronger the layer answers."""
    if not (before > 0 and value > before):
        return say("{layer} does not answer more strongly yet.", layer=layer)
    return say(
        "{layer} answers {factor} times as strongly to what it made of the image.",
        layer=layer,
        factor=number(value / before),
    )


def script(facts: LensFacts) -> LensCode:
    """Write code that begins with the image's own spectrum and takes as many steps."""
    (steps,) = facts.values["history"]
    lines = (
        constants(facts, layer=""),
        f"STEPS = {steps}  # {optimizing.STEPS_SAYS}",
        constants(facts, rate="how far each step goes", seed="of how the image is moved"),
        "SIZE = batch.shape[2:]  # rows and columns of pixels",
        optimizing.as_input(facts),
        optimizing.fourier(),
        source_of(moved, spectrum_of, to_plain),
        optimizing.output_of(facts, of="LAYER"),
        _VALUES,
        _BEGIN,
        optimizing.optimize("0.05 * RATE", steady=True, loss=["-values.sum()"]),
        optimizing.levels(facts),
    )
    return in_order(*lines), {
        "picture": "shown[0]",
        "before": "np.array(history[0][0])",
        "after": "values[0].item()",
        "history": "np.array(history)[:, 0]",
    }


_VALUES = '''

def values_of(output):
    """The mean square of all that the layer puts out (Mordvintsev et al., 2015), (N,)."""
    return output.square().flatten(1).mean(1)

'''
_BEGIN = """
plain = to_plain((batch - low) / (high - low), COLOURS)
parameters = spectrum_of(plain, SCALE).requires_grad_()"""


LENS = Lens(
    slug="dream",
    title="DeepDream",
    question=mark("What does a layer see in this image?"),
    sentence=mark(
        "The image, changed step by step so that a layer sees more of what it sees in it."
    ),
    group=SEES,
    preview=Preview(panel=1, is_dear=True),
    run=run,
    of_images=True,
    script=script,
    parameters=(
        LayerChoice(kind="any", default="last conv", help=mark("Whose activation is to grow.")),
        steps_choice(64, 1024),
        RealNumber(
            name="rate",
            label=mark("Rate"),
            low=0.01,
            high=10.0,
            default=0.5,
            help=mark("How far each step goes."),
        ),
        seed_choice(mark("Of how the image is moved before each step.")),
    ),
)
