"""Images as vectors: how alike they are to the network, whatever their pixels are like."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from hookviz.capturing.features import POOLS, Features, features, named
from hookviz.capturing.inputs import prepare
from hookviz.drawing.grid import coloured, make_grid
from hookviz.drawing.panels import GridPanel, ImagePanel, Panel, TablePanel, TextPanel
from hookviz.errors import HookVizError, shorten
from hookviz.lenses.contract.lens import Lens, LensOutput, Subject
from hookviz.lenses.contract.parameters import LayerChoice, MoreImages, OneOf
from hookviz.types import ModelInput, Pixels, Preprocess
from hookviz.wording import number

_SIDE = 720  # pixels that the similarity picture comes close to
_LEAST_CELL, _MOST_CELL = 6, 96  # pixels per image
_SMALLEST_THUMB = 14  # pixels in which a picture still says something
_MOST_CELLS = 4096  # numbers of one vector that are drawn
_MOST_COLUMNS = 12  # images whose similarities fit into a table
_MOST_PRINTS = 64
_STRONGEST = 10


def run(subject: Subject, *, layer: str | None, pool: str, images: tuple[Any, ...]) -> LensOutput:
    """One vector per image, and the cosine similarity of any two: x·y / (‖x‖ ‖y‖).

    The image looked at comes first; the others are prepared in the same way. ``"mean"`` is global
    average pooling (Lin, Chen, Yan, "Network in network", 2013), which ignores where something is;
    ``"flat"`` keeps every position. Values: ``vectors``, float32 ``(N, D)``; with more than one
    image also ``similarity``, float64 ``(N, N)``, and ``names``.

    Raises:
        HookVizError: the image looked at gives no vector; others that give none are told of.
    """
    first = subject.image if subject.image is not None else subject.model_input
    listed = named([first, *images])
    inputs = _prepared(subject, listed)
    found = features(
        subject.model,
        inputs,
        layer,
        pool,
        progress=lambda share: subject.progress((1 + share) / 2),
    )
    if next(iter(listed)) in found.failed:
        raise HookVizError(found.failed[next(iter(listed))])
    failed = [
        TextPanel(f"{shorten(name)} is left out: {reason}", "bad")
        for name, reason in found.failed.items()
    ]
    values: dict[str, NDArray[Any]] = {"vectors": found.vectors}
    if len(found.names) == 1:
        return (*_alone(found, subject), *failed), values
    similarity = found.similarity()
    values |= {"similarity": similarity, "names": np.array(found.names)}
    panels: list[Panel] = [
        TextPanel(_says(found, similarity)),
        _matrix(found, similarity, inputs),
        _neighbours(found),
    ]
    if len(found.names) <= _MOST_COLUMNS:
        panels.append(_numbers(found, similarity))
    return (*panels, *_fingerprints(found), *failed), values


def _prepared(subject: Subject, listed: Mapping[str, Any]) -> dict[str, Any]:
    """The images as inputs; one that can't be made an input stays, and `features` tells why."""
    options = _same_way(subject)
    inputs: dict[str, Any] = {}
    for place, (name, image) in enumerate(listed.items()):
        subject.progress(place / len(listed) / 2)
        if place == 0:
            inputs[name] = subject.model_input
            continue
        try:
            inputs[name] = prepare(subject.model, image, **options)
        except HookVizError:
            inputs[name] = image
    return inputs


def _same_way(subject: Subject) -> dict[str, Any]:
    """The `prepare` options that make the subject's own input of its image."""
    steps = subject.model.preprocess
    if not isinstance(steps, Preprocess):
        return {}
    side = min(subject.shape[1:])
    ways: list[dict[str, Any]] = [
        {},
        {"size": side},
        {"whole": True},
        {"size": side, "whole": True},
    ]
    for way in ways if subject.image is not None else []:
        try:
            made = prepare(subject.model, subject.image, **way)
        except HookVizError:
            continue
        if made.digest == subject.model_input.digest:
            return way
    square = len(subject.shape) == 3 and subject.shape[1] == subject.shape[2]
    return {"size": side} if square and side >= subject.model.min_size else {}


def _kind(found: Features) -> str:
    return f"{found.vectors.shape[1]:,} numbers, {POOLS[found.pool]}, from layer {found.layer}"


def _alone(found: Features, subject: Subject) -> tuple[Panel, ...]:
    """One vector: a cell per number where there are not too many, and its largest."""
    vector = found.vectors[0]
    panels: list[Panel] = [
        TextPanel(f"{subject.model.title} turns this image into {_kind(found)}.")
    ]
    if not found.failed:
        says = "Add more images to see which of them are alike to the network."
        panels.append(TextPanel(says, "note"))
    if vector.size <= _MOST_CELLS:
        grid = make_grid(vector[:, None, None], scale=_scale(vector), title=found.layer, width=640)
        panels.append(GridPanel("The vector", grid, "A cell per number."))
    largest = np.argsort(-np.abs(vector), kind="stable")[:_STRONGEST]
    rows = tuple((int(place), number(float(vector[place]))) for place in largest)
    head = ("channel" if found.pool == "mean" else "place", "value")
    panels.append(TablePanel("Its largest numbers", head, rows, "Largest by absolute value."))
    return tuple(panels)


def _says(found: Features, similarity: NDArray[np.float64]) -> str:
    """Which two are most alike and which least."""
    says = f"{len(found.names)} images as vectors of {_kind(found)}."
    pairs = np.transpose(np.triu_indices(len(found.names), 1))
    shares = similarity[pairs[:, 0], pairs[:, 1]]
    known = np.flatnonzero(~np.isnan(shares))
    if not len(known):
        return f"{says} No two of them can be compared: their numbers are not finite."

    def told(place: int) -> str:
        one, other = (repr(shorten(found.names[index], 40)) for index in pairs[place])
        return f"{one} and {other} ({number(float(shares[place]))})"

    most, least = known[shares[known].argmax()], known[shares[known].argmin()]
    if most == least:
        return f"{says} The similarity is {number(float(shares[most]))}."
    return f"{says} Most alike are {told(most)}, least {told(least)}."


def _matrix(
    found: Features, similarity: NDArray[np.float64], inputs: Mapping[str, Any]
) -> ImagePanel:
    """Every image against every other, the images themselves along the edges."""
    count = len(similarity)
    others = similarity[~np.eye(count, dtype=bool)]
    finite = others[np.isfinite(others)]
    low = float(finite.min()) if finite.size else 0.0
    cell = min(_MOST_CELL, max(_LEAST_CELL, _SIDE // (count + 1)))
    colours = coloured(similarity, "viridis", low=low, high=1.0)
    matrix: Pixels = colours.repeat(cell, axis=0).repeat(cell, axis=1)
    order = "from the top and from the left"
    unknown = "" if finite.size == others.size else " Magenta is no number."
    if cell >= _SMALLEST_THUMB:
        thumbs = [_thumb(inputs[name], cell) for name in found.names]
        column = np.concatenate([np.full_like(thumbs[0], 128), *thumbs])
        matrix = np.hstack([column, np.vstack([np.hstack(thumbs), matrix])])
        order = "with the images along its edges"
    return ImagePanel(
        "Cosine similarity",
        matrix,
        f"The similarity of each of {count} images to each, {order}; the table has the numbers.",
        f"Dark violet is {number(low)}, yellow is 1, the same direction.{unknown} The order is "
        "that of the table.",
    )


def _thumb(made: ModelInput, side: int) -> Pixels:
    """What the network saw, or a grey picture of it, `side` pixels square."""
    picture = made.picture
    if picture is None:
        grey = made.tensor[0].mean(0).numpy()
        span = float(grey.max() - grey.min()) or 1.0
        levels = np.nan_to_num((grey - grey.min()) / span * 255).astype(np.uint8)
        picture = np.repeat(levels[..., None], 3, axis=2)
    fitted = ImageOps.fit(Image.fromarray(picture), (side, side), Image.Resampling.BILINEAR)
    thumb: Pixels = np.asarray(fitted)
    return thumb


def _neighbours(found: Features) -> TablePanel:
    """For each image the most and the least similar other."""
    rows = []
    for place, (name, others) in enumerate(found.nearest(len(found.names)).items()):
        known = [other for other in others if not np.isnan(other[1])] or [("–", np.nan)]
        (near, most), (far, least) = known[0], known[-1]
        rows.append((place, name, near, number(most), far, number(least)))
    return TablePanel(
        "Nearest neighbours",
        ("number", "image", "most similar", "similarity", "least similar", "its similarity"),
        tuple(rows),
    )


def _numbers(found: Features, similarity: NDArray[np.float64]) -> TablePanel:
    rows = tuple(
        (name, *(f"{share:.3f}".replace("-", "−") for share in row))
        for name, row in zip(found.names, similarity, strict=True)
    )
    return TablePanel("Similarity of any two", ("image", *found.names), rows)


def _fingerprints(found: Features) -> tuple[Panel, ...]:
    """The vectors scaled to length 1, each folded into a rectangle where there is such a fold."""
    size = found.vectors.shape[1]
    high = next(side for side in range(int(size**0.5), 0, -1) if size % side == 0)
    if size > _MOST_CELLS or size // high > 8 * high:
        return ()
    lengths = np.linalg.norm(found.vectors.astype(np.float64), axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):  # infinity / infinity
        unit = (found.vectors / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    folded = unit[:_MOST_PRINTS].reshape(-1, high, size // high)
    grid = make_grid(folded, scale=_scale(folded), title=found.layer)
    says = (
        "One rectangle per image, in the order of the table, and one cell per number of its vector "
        "scaled to length 1: images that are alike have the same colours in the same places."
    )
    return (GridPanel("Fingerprints", grid, says),)


def _scale(values: NDArray[np.float32]) -> str:
    return "symmetric" if np.nanmin(values, initial=0) < 0 else "layer"


LENS = Lens(
    slug="embedding",
    title="Embedding",
    group="Features",
    sentence="Each image as one vector of features, and which images are alike by it.",
    run=run,
    parameters=(
        LayerChoice(kind="all", default="last map", help="Late layers know what is there."),
        OneOf(
            name="pool",
            label="Vector",
            choices=tuple(POOLS),
            help="The mean of each channel, or every value at every position.",
        ),
        MoreImages(help="To compare with this one."),
    ),
)
