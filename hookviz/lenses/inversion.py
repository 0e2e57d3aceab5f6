"""Feature inversion: what a layer still knows of the image, as the image rebuilt from it."""

from dataclasses import replace

import numpy as np

from hookviz.drawing.overlay import input_picture
from hookviz.drawing.panels import ImagePanel, Panel, TextPanel
from hookviz.drawing.pictures import enlarged
from hookviz.errors import HookVizError
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.lens import Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import LayerChoice, RealNumber, WholeNumber
from hookviz.lenses.contract.watching import seed_choice, steps_choice, watched
from hookviz.synthesis.inversion import SMOOTH, Inversion, begin_inversion, inversion, spread
from hookviz.synthesis.optimizing import Optimization
from hookviz.synthesis.resuming import run_resumed
from hookviz.wording import number


def run(
    subject: Subject, *, layer: str | None, layers: int, steps: int, smooth: float, seed: int
) -> LensOutput:
    """The image rebuilt from the activations of one layer, or of several between first and last.

    A picture climbs down the distance ``|Φ(x) − Φ₀|² / |Φ₀|²`` (Mahendran and Vedaldi, 2015) from
    noise; total variation, times `smooth`, is added. Values are ``pictures`` ``(N, H, W, 3)``
    uint8, ``distances`` ``(N,)`` and ``layers``, the names.

    Raises:
        HookVizError: the model takes no pictures, or has no conv layer.
        ModelError: a layer puts out no maps, or zeros alone.
    """
    if not layer and not subject.convs:
        raise HookVizError(
            say("{model} has no conv layer to rebuild the image from.", model=subject.model.title)
        )
    names = (layer,) if layer else spread([conv.name for conv in subject.convs], layers)
    method = replace(SMOOTH, strength=smooth, seed=seed)
    reporter = ProgressReporter(subject.progress, len(names))
    done: list[Inversion] = []
    for name in names:
        optimization = begin_inversion(subject.model, subject.model_input, name, method)
        key = ("inversion", subject.model.digest, subject.model_input.digest, name, method)

        def show(now: Optimization) -> None:
            subject.partial(_output(subject, names, [*done, inversion(now)]))

        run_resumed(
            optimization, steps, subject.cache, key, watched(subject, steps, show, reporter)
        )
        done.append(inversion(optimization))
        reporter.step()
    return _output(subject, names, done)


def _output(subject: Subject, names: tuple[str, ...], done: list[Inversion]) -> LensOutput:
    """What there is so far; the same panels at every step, grey where nothing is yet."""
    original = input_picture(subject.model_input)
    grey = np.full_like(original, 128)
    rebuilt: list[Panel] = []
    for place, name in enumerate(names):
        each = done[place] if place < len(done) else None
        rebuilt.append(
            ImagePanel(
                name,
                enlarged(grey if each is None else each.picture),
                alt=say("The image rebuilt from {name}", name=name),
                caption=""
                if each is None
                else say("distance {distance}", distance=number(each.distance)),
            )
        )
    panels = (
        TextPanel(
            say(
                "Each picture was rebuilt from one layer's activations alone. Distance 0 is "
                "the same activations, 1 as far as none at all."
            )
        ),
        ImagePanel(
            say("The image"), enlarged(original), alt=say("The image as the network gets it")
        ),
        *rebuilt,
        TextPanel(
            say(
                "What is missing the layer has dropped, or the steps have not found: a small "
                "distance beside another picture says that the layer can't tell the two "
                "apart."
            ),
            "note",
        ),
    )
    return panels, {
        "pictures": np.stack([each.picture for each in done]),
        "distances": np.array([each.distance for each in done]),
        "layers": np.array([each.layer for each in done]),
    }


LENS = Lens(
    slug="inversion",
    title=mark("Feature inversion"),
    question=mark("What does a layer still know?"),
    sentence=mark("The image rebuilt from a layer's activations alone."),
    run=run,
    parameters=(
        LayerChoice(
            label=mark("One layer"),
            kind="maps",
            default="none",
            help=mark("One layer alone; several from first to last else."),
        ),
        WholeNumber(
            name="layers",
            label=mark("Layers"),
            low=1,
            high=12,
            default=5,
            help=mark("How many, where none is chosen."),
        ),
        steps_choice(
            96,
            text=mark("Passes there and back for each layer. More of them go on from those done."),
        ),
        RealNumber(
            name="smooth",
            label=mark("Smoothness"),
            low=0.0,
            high=10.0,
            default=SMOOTH.strength,
            help=mark("What the total variation counts."),
            rare=True,
        ),
        seed_choice(mark("Of the noise to begin with.")),
    ),
)
