"""Make vectors of images: how alike they are to the network, whatever their pixels are like."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.capturing.batch_images import named
from hookviz.capturing.feature_index import ranked
from hookviz.capturing.feature_vectors import POOLS, Features, channel_means, unit_vectors
from hookviz.capturing.features import features
from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import FORWARD, constants, file_of, in_order
from hookviz.codegen.script_text import as_maps, quoted, source_of
from hookviz.drawing.colormaps import coloured
from hookviz.drawing.grid import make_grid
from hookviz.drawing.overlay import input_thumbnail
from hookviz.drawing.panels import (
    GridPanel,
    ImagePanel,
    Panel,
    PicturesPanel,
    TablePanel,
    TextPanel,
)
from hookviz.errors import HookVizError, shorten
from hookviz.explaining.image_features import (
    MOST_PICTURES,
    PICTURE_SIDE,
    index_neighbours,
)
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import localised, mark, say
from hookviz.lenses.contract.lens import SEES, Lens, LensOutput, Subject
from hookviz.lenses.contract.many_images import left_out, prepared_alike
from hookviz.lenses.contract.parameters import LayerChoice, MoreImages, OneOf
from hookviz.types import VECTORS, Pixels
from hookviz.wording import number

_SIDE = 720  # pixels that the similarity picture comes close to
_LEAST_CELL, _MOST_CELL = 6, 96  # pixels per image
_SMALLEST_THUMB = 14  # pixels in which a picture still says something
_MOST_CELLS = 4096  # numbers of one vector that are drawn
_MOST_COLUMNS = 12  # images whose similarities fit into a table
_MOST_PRINTS = 64
_STRONGEST = 10


def run(subject: Subject, *, layer: str | None, pool: str, images: tuple[Any, ...]) -> LensOutput:
    """Return one vector per image, and the cosine similarity of any two: x·y / (‖x‖ ‖y‖).

    The image looked at comes first; the others are prepared in the same way. ``"mean"`` is global
    average pooling (Lin, Chen, Yan, "Network in network", 2013), which ignores where something is;
    ``"flat"`` keeps every position. Values: ``vectors``, float32 ``(N, D)``; with more than one
    image also ``similarity``, float64 ``(N, N)``, and ``names``. Where HookViz was started with an
    index, its nearest images are shown, too, by the layer that it was made with
    (`index_neighbours`).

    Raises:
        HookVizError: the image looked at gives no vector; others that give none are told of.
    """
    first = subject.image if subject.image is not None else subject.model_input
    by_name = named([first, *images])
    reporter = ProgressReporter(subject.progress, 3)
    inputs = prepared_alike(subject, by_name, reporter)
    embedded = features(subject.model, inputs, layer, pool, progress=reporter.within)
    reporter.step()
    if next(iter(by_name)) in embedded.failed:
        raise HookVizError(embedded.failed[next(iter(by_name))])
    failed = left_out(embedded.failed)
    indexed, nearest = index_neighbours(subject.model, first, reporter.within)
    values: dict[str, NDArray[Any]] = {"vectors": embedded.vectors} | nearest
    if len(embedded.names) == 1:
        return (*_vector_panels(embedded, subject), *indexed, *failed), values
    similarity = embedded.similarity()
    values |= {"similarity": similarity, "names": np.array(embedded.names)}
    panels: list[Panel] = [
        *_answer(embedded, similarity),
        TextPanel(_summarize(embedded, similarity)),
        _most_alike(embedded, similarity, inputs),
        *indexed,
        _matrix(embedded, similarity, inputs),
        _neighbours(embedded),
    ]
    if len(embedded.names) <= _MOST_COLUMNS:
        panels.append(_numbers(embedded, similarity))
    return (*panels, *_fingerprints(embedded), *failed), values


def _kind(embedded: Features) -> str:
    size = embedded.vectors.shape[1]
    return say(
        "{size:,} numbers, {pooling}, from layer {layer}",
        size=size,
        pooling=say(POOLS[embedded.pool]),
        layer=embedded.layer,
    )


def _vector_panels(embedded: Features, subject: Subject) -> tuple[Panel, ...]:
    """Show one vector: a cell per number where there are not too many, and its largest."""
    vector = embedded.vectors[0]
    panels: list[Panel] = [
        TextPanel(
            say(
                "{model} turns this image into {kind}.",
                model=subject.model.title,
                kind=_kind(embedded),
            ),
            "answer",
        )
    ]
    if not embedded.failed:
        says = say("Add more images to see which of them are alike to the network.")
        panels.append(TextPanel(says, "note"))
    if vector.size <= _MOST_CELLS:
        grid = make_grid(
            vector[:, None, None], scale=_scale(vector), title=embedded.layer, width=640
        )
        panels.append(GridPanel(say("The vector"), grid, say("A cell per number.")))
    largest = np.argsort(-np.abs(vector), kind="stable")[:_STRONGEST]
    rows = tuple((int(index), number(float(vector[index]))) for index in largest)
    head = (mark("channel") if embedded.pool == "mean" else mark("place"), mark("value"))
    panels.append(
        TablePanel(say("Its largest numbers"), head, rows, say("Largest by absolute value."))
    )
    return tuple(panels)


def _answer(embedded: Features, similarity: NDArray[np.float64]) -> tuple[TextPanel, ...]:
    """Say in one sentence which image is most like the one that is looked at."""
    others = np.nan_to_num(similarity[0, 1:], nan=-np.inf)
    if not np.isfinite(others).any():
        return ()
    words = say(
        "To the network {image} is most like this one.",
        image=repr(shorten(embedded.names[int(others.argmax()) + 1], 40)),
    )
    return (TextPanel(words, "answer"),)


def _summarize(embedded: Features, similarity: NDArray[np.float64]) -> str:
    """Say which two are most alike and which least."""
    says = say(
        "{count} images as vectors of {kind}.",
        count=len(embedded.names),
        kind=_kind(embedded),
    )
    pairs = np.transpose(np.triu_indices(len(embedded.names), 1))
    shares = similarity[pairs[:, 0], pairs[:, 1]]
    known = np.flatnonzero(~np.isnan(shares))
    if not len(known):
        return say(
            "{finding} No two of them can be compared: their numbers are not finite.", finding=says
        )

    def pair_words(pair: int) -> str:
        one, other = (repr(shorten(embedded.names[index], 40)) for index in pairs[pair])
        return say(
            "{image} and {other_image} ({similarity})",
            image=one,
            other_image=other,
            similarity=number(float(shares[pair])),
        )

    most, least = known[shares[known].argmax()], known[shares[known].argmin()]
    if most == least:
        return say(
            "{finding} The similarity is {similarity}.",
            finding=says,
            similarity=number(float(shares[most])),
        )
    return say(
        "{finding} Most alike are {most_alike}, least {least_alike}.",
        finding=says,
        most_alike=pair_words(most),
        least_alike=pair_words(least),
    )


def _matrix(
    embedded: Features, similarity: NDArray[np.float64], inputs: Mapping[str, Any]
) -> ImagePanel:
    """Draw every image against every other, the images themselves along the edges."""
    count = len(similarity)
    others = similarity[~np.eye(count, dtype=bool)]
    finite = others[np.isfinite(others)]
    low = float(finite.min()) if finite.size else 0.0
    cell = min(_MOST_CELL, max(_LEAST_CELL, _SIDE // (count + 1)))
    colours = coloured(similarity, "viridis", low=low, high=1.0)
    matrix: Pixels = colours.repeat(cell, axis=0).repeat(cell, axis=1)
    order = say("from the top and from the left")
    unknown = "" if finite.size == others.size else say(" Magenta is no number.")
    if cell >= _SMALLEST_THUMB:
        thumbs = [input_thumbnail(inputs[name], cell) for name in embedded.names]
        column = np.concatenate([np.full_like(thumbs[0], 128), *thumbs])
        matrix = np.hstack([column, np.vstack([np.hstack(thumbs), matrix])])
        order = say("with the images along its edges")
    return ImagePanel(
        say("Cosine similarity"),
        matrix,
        say(
            "The similarity of each of {count} images to each, {order}; the table has the numbers.",
            count=count,
            order=order,
        ),
        say(
            "Dark violet is {low_value}, yellow is 1, the same direction.{note} The order "
            "is that of the table.",
            low_value=number(low),
            note=unknown,
        ),
    )


def _most_alike(
    embedded: Features, similarity: NDArray[np.float64], inputs: Mapping[str, Any]
) -> PicturesPanel:
    """Show the images that are most like the one looked at, with their pictures."""
    row = similarity[0]
    near = [index for index in ranked(row) if index and not np.isnan(row[index])][:MOST_PICTURES]
    names = [embedded.names[index] for index in near]
    return PicturesPanel(
        say("Most alike to this image"),
        tuple(input_thumbnail(inputs[name], PICTURE_SIDE) for name in names),
        tuple(shorten(name, 40) for name in names),
        tuple(localised(f"{row[index]:.2f}") for index in near),
    )


def _neighbours(embedded: Features) -> TablePanel:
    """List for each image the most and the least similar other."""
    rows = []
    for position, (name, others) in enumerate(embedded.nearest(len(embedded.names)).items()):
        known = [other for other in others if not np.isnan(other[1])] or [("–", np.nan)]
        (near, most), (far, least) = known[0], known[-1]
        rows.append((position, name, near, number(most), far, number(least)))
    return TablePanel(
        say("Nearest neighbours"),
        (
            "number",
            "image",
            say("most similar"),
            "similarity",
            say("least similar"),
            say("its similarity"),
        ),
        tuple(rows),
    )


def _numbers(embedded: Features, similarity: NDArray[np.float64]) -> TablePanel:
    rows = tuple(
        (name, *(localised(f"{share:.3f}").replace("-", "−") for share in row))
        for name, row in zip(embedded.names, similarity, strict=True)
    )
    return TablePanel(say("Similarity of any two"), (mark("image"), *embedded.names), rows)


def _fingerprints(embedded: Features) -> tuple[Panel, ...]:
    """Draw the vectors scaled to length 1, folded into rectangles where there is such a fold."""
    size = embedded.vectors.shape[1]
    high = next(side for side in range(int(size**0.5), 0, -1) if size % side == 0)
    if size > _MOST_CELLS or size // high > 8 * high:
        return ()
    unit = unit_vectors(embedded.vectors).astype(np.float32)
    folded = unit[:_MOST_PRINTS].reshape(-1, high, size // high)
    grid = make_grid(folded, scale=_scale(folded), title=embedded.layer)
    says = say(
        "One rectangle per image, in the order of the table, and one cell per number "
        "of its vector scaled to length 1: images that are alike have the same "
        "colours in the same places."
    )
    return (GridPanel(say("Fingerprints"), grid, says),)


def _scale(values: NDArray[np.float32]) -> str:
    return "symmetric" if np.nanmin(values, initial=0) < 0 else "layer"


def script(facts: LensFacts) -> LensCode:
    """Write code for the vector of each image, and the cosine of the angle between any two."""
    mean = facts.chosen["pool"] == "mean"
    lines = [
        constants(facts, layer="whose output becomes a vector"),
        FORWARD,
        source_of(channel_means) if mean else "",
        _VECTOR.format(
            moved=_CHANNELS_LAST if facts.layout.order == VECTORS and len(facts.output) > 1 else "",
            maps=as_maps(facts.layout),
            vector="channel_means(values)" if mean else "values.reshape(-1)  # every value",
        ),
    ]
    if "similarity" not in facts.values:  # of one image alone
        return in_order(*lines, _ONE), {"vectors": "vectors"}
    files = [facts.image, *map(file_of, named(facts.chosen["images"]))]
    listed = "\n".join(f"    {quoted(file)}," for file in files)
    lines += [source_of(unit_vectors), _SEVERAL.format(files=listed)]
    return in_order(*lines), {
        "vectors": "vectors",
        "similarity": "np.clip(unit @ unit.T, -1, 1)",
        "names": "np.array(FILES)",
    }


_VECTOR = '''

def vector_of(batch):
    """What the layer makes of an image, as a vector."""
    with torch.no_grad():
        outputs = forward(batch, LAYER)[1]
    values = outputs[LAYER]{maps}[0].numpy()
{moved}    return {vector}

'''
_CHANNELS_LAST = "    values = np.moveaxis(values, -1, 0)  # the channels were last\n"
_ONE = "vectors = np.stack([vector_of(batch)])  # (1, D)"
_SEVERAL = """\
# The images' files, in the folder where this runs, or paths.
FILES = (
{files}
)
vectors = np.stack([vector_of(batch), *(vector_of(read(file)) for file in FILES[1:])])  # (N, D)
unit = unit_vectors(vectors)  # the products of any two are cosines"""


LENS = Lens(
    slug="embedding",
    title=mark("Embedding"),
    question=mark("Which images does the network find alike?"),
    sentence=mark("Each image as one vector of features, and which images are alike by it."),
    group=SEES,
    run=run,
    script=script,
    parameters=(
        LayerChoice(kind="any", default="last map", help=mark("Late layers know what is there.")),
        OneOf(
            name="pool",
            label=mark("Vector"),
            choices=tuple(POOLS),
            help=mark("The mean of each channel, or every value at every position."),
        ),
        MoreImages(help=mark("To compare with this one.")),
    ),
)
