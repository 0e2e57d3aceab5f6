"""Show where a segmenting network sees which class, and where it sees one of them."""

import numpy as np
from numpy.typing import NDArray

from hookviz.capturing.segmentation_maps import ClassMaps, segmentation_maps
from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import in_order, one_line
from hookviz.drawing.colormaps import coloured
from hookviz.drawing.panels import Panel, PicturesPanel, TablePanel, TextPanel, overlay_panel
from hookviz.errors import SettingError
from hookviz.language.naming import class_label
from hookviz.language.saying import mark, say
from hookviz.lenses.contract.lens import LOOKS, Lens, LensOutput, Preview, Subject
from hookviz.lenses.contract.parameters import WholeNumber
from hookviz.types import Pixels
from hookviz.wording import percent

_AREA = -1  # the class of the largest area
_LEGEND = 8  # classes in the legend; the table has all of them
_SWATCH = 48  # pixels
_GROUND = "__background__"  # what torchvision's networks call all that is of no class


def run(subject: Subject, *, number: int) -> LensOutput:
    """Return which class each pixel is likeliest to be of, and how likely it is of one of them.

    Probabilities are the softmax over the classes of the scores at each pixel (Long, Shelhamer and
    Darrell, 2015). Values are ``winners``, ``(H, W)``, the class of each pixel; ``shares``,
    ``(classes,)``, what part of the pixels each wins; ``target``, the class that is asked about,
    the one of the largest area by default, and its ``probability``, ``(H, W)``.

    Raises:
        ModelError: the network puts out no scores of classes at each pixel.
        SettingError: there is no such class.
    """
    found = segmentation_maps(subject.model, subject.model_input, progress=subject.progress)
    labels = [class_label(number, found.categories) for number in range(len(found))]
    winners = found.winners.numpy()
    shares = np.bincount(winners.ravel(), minlength=len(found)) / winners.size
    chosen = _largest(found, shares) if number == _AREA else number
    if chosen >= len(found):
        raise SettingError(
            say(
                "There is no class {number}: {model} has {count:,}, from 0.",
                number=chosen,
                model=subject.model.title,
                count=len(found),
            )
        )
    probability = found.probabilities[chosen].numpy()
    colours, order = palette(len(found)), np.argsort(-shares, kind="stable")
    won = [int(number) for number in order if shares[number] > 0]
    panels: tuple[Panel, ...] = (
        TextPanel(
            say(
                "{label} covers {share} of the image, more than any other.",
                label=labels[won[0]],
                share=percent(shares[won[0]]),
            ),
            "answer",
        ),
        TextPanel(_about(labels, shares, won)),
        overlay_panel(
            say("The likeliest class of each pixel"),
            subject.model_input,
            subject.image,
            colours[winners],
            alt=say("The image, coloured by the likeliest class of each pixel"),
        ),
        overlay_panel(
            labels[chosen],
            subject.model_input,
            subject.image,
            coloured(probability, low=0.0, high=1.0),
            alt=say("How likely each pixel is of the class {label}", label=labels[chosen]),
            caption=say("Black is 0 %, pale yellow 100 %."),
        ),
        PicturesPanel(
            say("Legend"),
            tuple(
                np.full((_SWATCH, _SWATCH, 3), colours[each], np.uint8) for each in won[:_LEGEND]
            ),
            tuple(labels[number] for number in won[:_LEGEND]),
            tuple(percent(shares[number]) for number in won[:_LEGEND]),
        ),
        TablePanel(
            say("Share of the pixels"),
            (mark("number"), mark("class"), mark("share"), mark("largest probability")),
            tuple(
                (
                    int(number),
                    labels[number],
                    percent(shares[number]),
                    percent(float(found.probabilities[number].max())),
                )
                for number in order
            ),
        ),
    )
    return panels, {
        "winners": winners,
        "shares": shares,
        "target": np.array(chosen),
        "probability": probability,
    }


def palette(count: int) -> Pixels:
    """Return a colour for each class, RGB uint8 ``(count, 3)``, dark grey for the first.

    Hues are the golden angle apart, so that those of neighbours differ much, and any class has the
    same colour in every picture.
    """
    hues = np.arange(count) * 0.618034 % 1
    thirds = np.abs((hues[:, None] + np.array([0, 2 / 3, 1 / 3])) % 1 * 6 - 3) - 1
    colours: Pixels = (255 * (0.25 + 0.75 * thirds.clip(0, 1))).round().astype(np.uint8)
    colours[:1] = 48
    return colours


def _largest(found: ClassMaps, shares: NDArray[np.float64]) -> int:
    """Return the class of the largest area, but for what is of none."""
    own = shares.copy()
    own[[each == _GROUND for each in found.categories]] = -1
    return int(own.argmax())


def _about(labels: list[str], shares: NDArray[np.float64], won: list[int]) -> str:
    return say(
        "Each pixel has scores of {count:,} classes, and the colour of the likeliest. Largest: "
        "{label}, {share} of all pixels. {others:,} more win any.",
        count=len(labels),
        label=labels[won[0]],
        share=percent(shares[won[0]]),
        others=len(won) - 1,
    )


def script(facts: LensFacts) -> LensCode:
    """Write code for the classes of all pixels, and the probability of one."""
    number, names = facts.chosen["number"], facts.categories
    if number == _AREA:
        ground = names.index(_GROUND) if _GROUND in names else None
        chosen = _LARGEST.format(but="" if ground is None else f"own[{ground}] = -1  # of no class")
    else:
        label = names[number] if number < len(names) else "a class without a name"
        chosen = f"TARGET = {number}  # the class: {one_line(label)}"
    return in_order(_SCORES, chosen), {
        "winners": "winners",
        "shares": "shares",
        "target": "np.array(TARGET)",
        "probability": "probabilities[TARGET].numpy()",
    }


_SCORES = """
with torch.no_grad():
    output = model(batch)
scores = output["out"] if isinstance(output, dict) else output  # (1, classes, H, W)
probabilities = scores[0].softmax(0)
winners = probabilities.argmax(0).numpy()
shares = np.bincount(winners.ravel(), minlength=len(probabilities)) / winners.size
"""
_LARGEST = """
own = shares.copy()
{but}
TARGET = int(own.argmax())  # the class of the largest area
"""


LENS = Lens(
    slug="segmentation",
    title=mark("The classes as maps"),
    question=mark("What is where?"),
    sentence=mark("Of a network that segments: the class of each pixel, and how sure it is."),
    group=LOOKS,
    preview=Preview(),
    run=run,
    script=script,
    parameters=(
        WholeNumber(
            name="number",
            label=mark("Class number"),
            low=_AREA,
            high=99_999,
            default=_AREA,
            unset=mark("the largest"),
            help=mark("Whose map is shown; the numbers are in the table."),
        ),
    ),
)
