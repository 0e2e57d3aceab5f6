"""DeepDream: the image on the screen, changed so that a layer sees more of what it sees in it."""

import numpy as np

from hookviz.drawing.overlay import input_picture
from hookviz.drawing.panels import ImagePanel, TextPanel
from hookviz.drawing.pictures import enlarged
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.lens import Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import LayerChoice, RealNumber
from hookviz.lenses.contract.watching import seed_choice, steps_choice, watched
from hookviz.synthesis.goals import Objective
from hookviz.synthesis.method import SynthesisMethod
from hookviz.synthesis.model_range import InputRange, picture_shape
from hookviz.synthesis.optimizing import Optimization
from hookviz.synthesis.resuming import run_resumed
from hookviz.wording import number


def run(subject: Subject, *, layer: str, steps: int, rate: float, seed: int) -> LensOutput:
    """The picture that climbs from the input along the layer's mean square.

    DeepDream (Mordvintsev, Olah and Tyka, 2015) in Fourier space: what is there in the layer, if
    only a little, grows. Values are ``picture`` ``(H, W, 3)`` uint8, ``before`` and ``after``: the
    layer's mean square, and ``history`` ``(steps,)``.

    Raises:
        HookVizError: the model takes no pictures.
        ModelError: there is nothing to climb; where another layer can be climbed it is named.
    """
    picture_shape(subject.model, None)  # says that it takes none
    method = SynthesisMethod(size=None, seed=seed, rate=rate)
    start = InputRange.of(subject.model, subject.shape).to_picture(subject.model_input.tensor)
    optimization = Optimization(subject.model, [Objective(layer)], method, start=start)
    key = ("dream", subject.model.digest, subject.model_input.digest, layer, method)

    def show(now: Optimization) -> None:
        subject.partial(_output(subject, layer, now, now.values[0]))

    run_resumed(optimization, steps, subject.cache, key, watched(subject, steps, show))
    return _output(subject, layer, optimization, optimization.measured()[0])


def _output(subject: Subject, layer: str, optimization: Optimization, value: float) -> LensOutput:
    """What there is so far; the same panels at every step."""
    (picture,) = optimization.pictures()
    before = optimization.history[0][0]
    panels = (
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
    )
    return panels, {
        "picture": picture,
        "before": np.array(before),
        "after": np.array(value),
        "history": np.array(optimization.history, np.float64)[:, 0],
    }


LENS = Lens(
    slug="dream",
    title="DeepDream",
    question=mark("What does it see in this image?"),
    sentence=mark(
        "The image, changed step by step so that a layer sees more of what it sees in it."
    ),
    run=run,
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
