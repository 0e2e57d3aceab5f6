"""``hookviz similarity``: measure how alike the layers of two models are, by linear CKA."""

from math import isnan, nan
from typing import Any

import click

from hookviz.cli.input_files import file_ending_in
from hookviz.cli.options import (
    engine_options,
    input_options,
    layer_names,
    load_both,
    model_options,
    other_model_options,
    out_option,
)
from hookviz.cli.terminal import MISTAKE, complain, echo_json, progress_bar
from hookviz.comparing.similarity import ChannelMatches, Similarity
from hookviz.comparing.similarity import similarity as similarity_of
from hookviz.engines.engine import engine_of
from hookviz.images.files import expand
from hookviz.wording import text_table

_SUFFIXES = (".csv", ".png", ".pdf", ".svg")
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
    file = None if out is None else file_ending_in(out, _SUFFIXES)
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
        complain(f"{name}: {reason}")
    matched = None if match is None else _matched(result, match)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_file_bytes(result, file.suffix[1:].casefold()))
    if as_json:
        echo_json(_as_data(result, matched))
    else:
        _echo(result, matched)
    if result.failed:
        click.get_current_context().exit(MISTAKE)


def _file_bytes(result: Similarity, kind: str) -> bytes:
    return result.csv().encode() if kind == "csv" else result.figure_bytes(kind)


def _matched(result: Similarity, match: str) -> ChannelMatches:
    layer, _, other = match.partition("=")
    return result.matches(layer, other or None)


def _as_data(result: Similarity, matched: ChannelMatches | None) -> dict[str, Any]:
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


def _echo(result: Similarity, matched: ChannelMatches | None) -> None:
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
