"""Show what a layer still knows of the image: the image rebuilt from its activations alone."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hookviz.codegen import optimizing
from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import constants, in_order
from hookviz.codegen.script_text import quoted, source_of
from hookviz.drawing.overlay import input_picture
from hookviz.drawing.panels import ImagePanel, Panel, TextPanel
from hookviz.drawing.pictures import enlarged
from hookviz.errors import HookVizError
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.lens import SEES, Lens, LensOutput, Preview, Subject, how_note
from hookviz.lenses.contract.parameters import LayerChoice, RealNumber, WholeNumber
from hookviz.lenses.contract.shared_choices import seed_choice, step_callback, steps_choice
from hookviz.synthesis.inversion import SMOOTH, Inversion, begin_inversion, inversion, spread
from hookviz.synthesis.optimizing import Optimization, run_resumed, total_variation
from hookviz.synthesis.settings import MaximizationConfig
from hookviz.wording import number


def run(
    subject: Subject, *, layer: str | None, layers: int, steps: int, smooth: float, seed: int
) -> LensOutput:
    """Rebuild the image from the activations of one layer, or of several between first and last.

    A picture is optimised from noise to lower the distance ``|Φ(x) − Φ₀|² / |Φ₀|²`` (Mahendran and
    Vedaldi, 2015); total variation, times `smooth`, is added. Values are ``pictures``
    ``(N, H, W, 3)`` uint8, ``distances`` ``(N,)`` and ``layers``, the names.

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

        def show(now: Optimization) -> None:
            subject.partial(_output(subject, names, [*done, inversion(now)]))

        done.append(
            run_inversion(
                subject, name, method, steps, step_callback(subject, steps, show, reporter)
            )
        )
        reporter.step()
    return _output(subject, names, done)


def run_inversion(
    subject: Subject,
    layer: str,
    method: MaximizationConfig,
    steps: int,
    after: Callable[[Optimization], object],
) -> Inversion:
    """Rebuild the subject's image from one layer's activations; `after` is called each step."""
    optimization = begin_inversion(subject.model, subject.model_input, layer, method)
    key = ("inversion", subject.model.cache_key, subject.model_input.digest, layer, method)
    run_resumed(optimization, steps, subject.cache, key, after)
    return inversion(optimization)


def _output(subject: Subject, names: tuple[str, ...], done: list[Inversion]) -> LensOutput:
    """Return the panels and numbers so far; pictures that are still to be made are grey."""
    original = input_picture(subject.model_input)
    grey = np.full_like(original, 128)
    rebuilt: list[Panel] = []
    for index, name in enumerate(names):
        result = done[index] if index < len(done) else None
        rebuilt.append(
            ImagePanel(
                name,
                enlarged(grey if result is None else result.picture),
                alt=say("The image rebuilt from {name}", name=name),
                caption=""
                if result is None
                else say("distance {distance}", distance=number(result.distance)),
            )
        )
    answer = say(
        "From {layer} alone the image comes back to a distance of {distance}.",
        layer=done[-1].layer,
        distance=number(done[-1].distance),
    )
    panels = (
        TextPanel(answer, "answer"),
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
        *how_note(done[-1].how),
    )
    return panels, {
        "pictures": np.stack([result.picture for result in done]),
        "distances": np.array([result.distance for result in done]),
        "layers": np.array([result.layer for result in done]),
    }


def script(facts: LensFacts) -> LensCode:
    """Write a picture for each layer that was gone through, from the same noise."""
    chosen = facts.chosen
    names = (chosen["layer"],) if chosen["layer"] else spread(facts.convs, chosen["layers"])
    done = [quoted(name) for name in names[: facts.values["layers"][0]]]
    listed = f"{done[0]}," if len(done) == 1 else "\n" + "".join(f"    {each},\n" for each in done)
    lines = (
        f"LAYERS = ({listed})",
        constants(
            facts,
            steps=optimizing.STEPS_SAYS,
            smooth="what the total variation counts",
            seed="of the noise to begin with",
        ),
        "SIZE = batch.shape[2:]  # rows and columns of pixels",
        optimizing.as_input(facts),
        optimizing.fourier(),
        optimizing.output_of(facts, of="layer"),
        source_of(total_variation),
        _DISTANCE,
        _REBUILT.format(channels=facts.shape[0]),
        optimizing.levels(facts, "torch.cat(pictures)"),
    )
    return in_order(*lines), {
        "pictures": "shown",
        "distances": "np.array(distances)",
        "layers": "np.array(LAYERS)",
    }


_DISTANCE = '''

def distance(output, known):
    """|output - known|² / |known|² (Mahendran and Vedaldi, 2015): 0 for the same, 1 for nothing."""
    return (output - known).square().sum() / known.square().sum()

'''
_REBUILT = '''

def rebuilt(layer):
    """A picture that the layer hardly tells from the image, and the distance that is left."""
    with torch.no_grad():
        known = output_of(batch, layer)
    noise = torch.Generator().manual_seed(SEED)  # the same for every layer
    parameters = 0.01 * torch.randn((1, {channels}, *SCALE.shape, 2), generator=noise)
    parameters.requires_grad_()  # real and imaginary parts of a spectrum
    optimizer = torch.optim.Adam([parameters], lr=0.05, eps=1e-16)  # gradients can be tiny
    for _ in range(STEPS):
        pictures = pictures_of(parameters)
        loss = distance(output_of(as_input(pictures), layer), known)
        loss = loss + 10 * SMOOTH * total_variation(pictures)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        pictures = pictures_of(parameters)
        return pictures, distance(output_of(as_input(pictures), layer), known).item()


pictures, distances = zip(*(rebuilt(layer) for layer in LAYERS), strict=True)'''


LENS = Lens(
    slug="inversion",
    title=mark("Feature inversion"),
    question=mark("What does a layer still know?"),
    sentence=mark("The image rebuilt from a layer's activations alone."),
    group=SEES,
    preview=Preview(panel=3, is_dear=True),
    run=run,
    of_images=True,
    script=script,
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
