"""``hookviz compare`` and ``similarity``: compare captures of two images or models.

`compare` prints and draws the difference of two captures; `similarity` measures how alike the
layers of two models are over many images, by linear CKA.
"""

import re
from math import isnan, nan
from pathlib import Path
from typing import Any

import click

from hookviz.capturing.engine import capture
from hookviz.capturing.list_layers import list_layers
from hookviz.cli.options import (
    engine_options,
    file_ending_in,
    input_options,
    layer_names,
    load_both,
    model_options,
    other_model_options,
    out_option,
)
from hookviz.cli.terminal import MISTAKE, echo_json, print_error, progress_bar
from hookviz.comparing.captures import Comparison, LayerComparison
from hookviz.comparing.captures import compare as compare_captures
from hookviz.comparing.similarity import ChannelMatches, Similarity
from hookviz.comparing.similarity import similarity as similarity_of
from hookviz.engines.engine import engine_of
from hookviz.errors import ImageError, SettingError
from hookviz.images import reading
from hookviz.images.files import expand
from hookviz.paths import path_of
from hookviz.types import Capture, Model
from hookviz.wording import number, text_table, times

_SUFFIXES = (".png", ".pdf", ".svg")
_HEAD = ("layer", "shape", "correlation", "difference", "cosine", "most changed")
_LISTED = 10  # channels, where no other number is asked for


@click.command()
@click.argument("image")
@click.argument("other_image", required=False)
@model_options
@other_model_options
@click.option("--layer", help="Which layer or block; every convolution that both have by default.")
@click.option("--other-layer", help="The layer of the other model; --layer by default.")
@click.option("--top", type=click.IntRange(1), help="Only so many channels, most changed first.")
@input_options
@out_option(".png", "The difference as a .png, .pdf or .svg file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def compare(
    *,
    image: str,
    other_image: str | None,
    model: str,
    weights: str,
    other_model: str | None,
    other_weights: str | None,
    layer: str | None,
    other_layer: str | None,
    top: int | None,
    size: int | None,
    whole: bool,
    out: str | None,
    as_json: bool,
    **loading: Any,
) -> None:
    """Compare what a layer makes of two images, or two models of one.

    A is IMAGE in the model, and B is OTHER_IMAGE, or the same one, in the other model, or the same
    one. For each layer it prints the means over the channels: correlation, mean absolute
    difference, cosine; then the most changed channels of the layer, or of the first one. The
    picture is B - A: red where B has more, blue where it has less.
    """
    file = None if out is None else file_ending_in(out, _SUFFIXES)
    paths = [_picture(image), _picture(image if other_image is None else other_image)]
    others = (other_image, other_model, other_weights, other_layer)
    if all(other is None for other in others):
        raise SettingError(
            f"There is nothing to compare {image!r} with: give a second image, --other-model, "
            "--other-weights or --other-layer."
        )
    if other_layer is not None and layer is None:
        raise SettingError(f"--other-layer {other_layer} needs a --layer to be compared with.")
    pictures = [reading.read(path) for path in paths]
    models = load_both(model, weights, other_model, other_weights, **loading)
    a, b = (
        capture(
            network,
            picture,
            _layers_to_capture(network, wanted),
            size=size,
            whole=whole,
            logits=False,
        )
        for network, picture, wanted in zip(
            models, pictures, (layer, other_layer or layer), strict=True
        )
    )
    comparison = compare_captures(a, b, layer, other_layer)
    chosen = comparison.layers[0]
    legend = None
    if file is not None:
        grid = chosen.grid(top=top)
        kind = file.suffix[1:].casefold()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(grid.png() if kind == "png" else grid.figure_bytes(kind))
        legend = grid.legend
    if as_json:
        about = {"a": _capture_metadata(a, paths[0]), "b": _capture_metadata(b, paths[1])}
        drawn = {"out": None if file is None else str(file), "legend": legend}
        echo_json({**about, **_as_data(comparison, top), **drawn})
        return
    for name, cap, path in zip("AB", (a, b), paths, strict=True):
        inside = times(cap.input.shape[1:])
        click.echo(f"{name}: {path} in {cap.model} ({cap.weights}), input {inside}")
    _echo(comparison, top)
    if file is not None:
        click.echo(f"{file}: {chosen.name}, B − A. {legend}")


def _picture(text: str) -> Path:
    path = path_of(text)
    if path.is_dir():
        raise ImageError(
            f"{text!r} is a folder, and compare takes one image or two: `hookviz similarity` "
            "compares models over all images of a folder."
        )
    return path


def _layers_to_capture(model: Model, layer: str | None) -> list[str] | None:
    """Return the layers to capture for an address such as ``relu#1[0]``; None for all of a kind."""
    if layer is None:
        return None
    name = re.split(r"[#\[]", layer)[0]
    return [*(known.name for known in list_layers(model)), name]


def _capture_metadata(cap: Capture, path: Path) -> dict[str, Any]:
    return {
        "image": str(path),
        "model": cap.model,
        "weights": cap.weights,
        "digest": cap.digest,
        "input": tuple(cap.input.shape),
    }


def _as_data(comparison: Comparison, top: int | None) -> dict[str, Any]:
    names = ("correlation", "mean_absolute_difference", "cosine")
    chosen = comparison.layers[0]
    return {
        "layers": [
            {
                "layer": str(layer.a.address),
                "other_layer": str(layer.b.address),
                "shape": tuple(layer.a.values.shape),
                **dict(zip(names, layer.channels.means, strict=True)),
                "most_changed": int(layer.channels.most_changed[0]),
            }
            for layer in comparison.layers
        ],
        "left_out": dict(comparison.left_out),
        "channels": {
            "layer": str(chosen.a.address),
            "most_changed": [
                {"channel": channel, **dict(zip(names, numbers, strict=True))}
                for channel, numbers in _channels(chosen, top or len(chosen.channels))
            ],
        },
    }


def _channels(chosen: LayerComparison, top: int) -> list[tuple[int, tuple[float, ...]]]:
    """Return the most changed channels with their three numbers."""
    compared = chosen.channels
    measures = (compared.correlation, compared.mean_absolute_difference, compared.cosine)
    return [
        (channel, tuple(float(numbers[channel]) for numbers in measures))
        for channel in compared.most_changed[:top].tolist()
    ]


def _echo(comparison: Comparison, top: int | None) -> None:
    rows = [
        (
            layer.name,
            times(layer.a.values.shape),
            *map(number, layer.channels.means),
            str(layer.channels.most_changed[0]),
        )
        for layer in comparison.layers
    ]
    click.echo(text_table(_HEAD, rows, right=_HEAD[2:]))
    if comparison.left_out:
        click.echo(f"not compared: {len(comparison.left_out):,}, such as {_first(comparison)}")
    chosen = comparison.layers[0]
    head = ("channel", *_HEAD[2:5])
    rows = [
        (str(channel), *map(number, numbers))
        for channel, numbers in _channels(chosen, top or _LISTED)
    ]
    click.echo(f"{chosen.name}, most changed channels of {len(chosen.channels):,}:")
    click.echo(text_table(head, rows, right=head))


def _first(comparison: Comparison) -> str:
    name, reason = next(iter(comparison.left_out.items()))
    return f"{name}: {reason}"


_MATRIX_SUFFIXES = (".csv", ".png", ".pdf", ".svg")
_MOST_COLUMNS = 24  # of a matrix that fits into a terminal


@click.command()
@click.argument("image", nargs=-1, required=True)
@model_options
@other_model_options
@click.option("--layers", "--layer", help="Names with commas, or conv, maps or all.")
@click.option("--other-layers", "--other-layer", help="The same of the other model.")
@click.option(
    "--match",
    metavar="LAYER[=OTHER]",
    help="Print the best-matching channel of the OTHER layer for each of LAYER.",
)
@click.option("--biased", is_flag=True, help="The paper's estimate, near 1 for a few images.")
@input_options
@out_option(".csv", "The matrix as a .csv file, or drawn: .png, .pdf or .svg.")
@engine_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def similarity(
    *,
    image: tuple[str, ...],
    model: str,
    weights: str,
    other_model: str | None,
    other_weights: str | None,
    layers: str | None,
    other_layers: str | None,
    match: str | None,
    biased: bool,
    size: int | None,
    whole: bool,
    out: str | None,
    engine: str,
    workers: int | None,
    as_json: bool,
    **loading: Any,
) -> None:
    """Tell how alike the layers of two models are over many images.

    Linear CKA of every layer of the one with every layer of the other, from 0 for nothing in
    common to 1; by default of one model with itself. IMAGE is a file, a folder with what is in its
    folders, or a pattern. An image that can't be read is reported, and the rest go on.
    """
    file = None if out is None else file_ending_in(out, _MATRIX_SUFFIXES)
    chosen = engine_of(engine, workers)
    pictures = expand(image, inside=True)
    a, b = load_both(model, weights, other_model, other_weights, **loading)
    with progress_bar("Images") as report:
        result = similarity_of(
            a,
            b,
            {str(picture): picture for picture in pictures},
            layer_names(a, layers),
            layer_names(b, other_layers),
            size=size,
            whole=whole,
            unbiased=not biased,
            progress=report,
            engine=chosen,
        )
    for name, reason in result.failed.items():
        print_error(f"{name}: {reason}")
    matched = None if match is None else _channel_matches(result, match)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        kind = file.suffix[1:].casefold()
        file.write_bytes(result.csv().encode() if kind == "csv" else result.figure_bytes(kind))
    if as_json:
        echo_json(_similarity_data(result, matched))
    else:
        _echo_similarity(result, matched)
    if result.failed:
        click.get_current_context().exit(MISTAKE)


def _channel_matches(result: Similarity, match: str) -> ChannelMatches:
    layer, _, other = match.partition("=")
    return result.matches(layer, other or None)


def _similarity_data(result: Similarity, matched: ChannelMatches | None) -> dict[str, Any]:
    return {
        "models": result.models,
        "weights": result.weights,
        "digests": result.digests,
        "images": len(result.names),
        "unbiased": result.unbiased,
        "layers": result.layers,
        "other_layers": result.other_layers,
        "cka": result.cka.tolist(),
        "nearest": result.nearest(),
        "matches": matched
        and {
            "layer": matched.layer,
            "other_layer": matched.other_layer,
            "channels": matched.channels.tolist(),
            "correlations": matched.correlations.tolist(),
        },
        "failed": dict(result.failed),
    }


def _echo_similarity(result: Similarity, matched: ChannelMatches | None) -> None:
    first, second = (
        f"{name} ({weights})" for name, weights in zip(result.models, result.weights, strict=True)
    )
    click.echo(f"A: {first}, B: {second}, {len(result.names):,} images. {result.note}".rstrip())
    nearest = result.nearest()
    rows = [(layer, *_cells(*nearest.get(layer, ("none", nan)))) for layer in result.layers]
    click.echo(text_table(("layer of A", "nearest of B", "CKA"), rows, right=("CKA",)))
    if len(result.other_layers) <= _MOST_COLUMNS:
        numbers = [str(number) for number in range(1, len(result.other_layers) + 1)]
        click.echo("\nlinear CKA; columns are the layers of B in order:")
        matrix = [
            (layer, *map(_short, row))
            for layer, row in zip(result.layers, result.cka.tolist(), strict=True)
        ]
        click.echo(text_table(("layer of A", *numbers), matrix, right=numbers))
    if matched is not None:
        click.echo(f"\nchannels of {matched.layer} (A) and {matched.other_layer} (B):")
        head = ("A", "B", "correlation")
        pairs = [
            (str(channel), *_match_cells(matched, channel))
            for channel in matched.best_first.tolist()
        ]
        click.echo(text_table(head, pairs, right=head))


def _cells(name: str, value: float) -> tuple[str, str]:
    return name, _short(value)


def _match_cells(matched: ChannelMatches, channel: int) -> tuple[str, str]:
    other = int(matched.channels[channel])
    return _cells("none" if other < 0 else str(other), float(matched.correlations[channel]))


def _short(value: float) -> str:
    return "–" if isnan(value) else f"{value:z.2f}".replace("-", "−")
