"""``hookviz compare``: two captures side by side, as numbers and as a picture of the difference."""

import re
from pathlib import Path
from typing import Any

import click

from hookviz.capturing.engine import capture
from hookviz.capturing.layer_trace import list_layers
from hookviz.cli.options import input_options, load_both, model_options, other_model_options
from hookviz.cli.tables import echo_json
from hookviz.comparing.captures import Comparison, LayerComparison
from hookviz.comparing.captures import compare as compare_captures
from hookviz.errors import ImageError, SettingError
from hookviz.images import reading
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
@click.option("-o", "--out", help="The difference as a .png, .pdf or .svg file.")
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
    file = None if out is None else _file(out)
    paths = [_picture(image), _picture(image if other_image is None else other_image)]
    others = (other_image, other_model, other_weights, other_layer)
    if all(each is None for each in others):
        raise SettingError(
            f"There is nothing to compare {image!r} with: give a second image, --other-model, "
            "--other-weights or --other-layer."
        )
    if other_layer is not None and layer is None:
        raise SettingError(f"--other-layer {other_layer} needs a --layer to be compared with.")
    pictures = [reading.read(path) for path in paths]
    models = load_both(model, weights, other_model, other_weights, **loading)
    a, b = (
        capture(each, picture, _names(each, wanted), size=size, whole=whole, logits=False)
        for each, picture, wanted in zip(
            models, pictures, (layer, other_layer or layer), strict=True
        )
    )
    found = compare_captures(a, b, layer, other_layer)
    chosen = found.layers[0]
    legend = None
    if file is not None:
        grid = chosen.grid(top=top)
        kind = file.suffix[1:].casefold()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(grid.png() if kind == "png" else grid.figure_bytes(kind))
        legend = grid.legend
    if as_json:
        about = {"a": _about(a, paths[0]), "b": _about(b, paths[1])}
        drawn = {"out": None if file is None else str(file), "legend": legend}
        echo_json({**about, **_as_data(found, top), **drawn})
        return
    for name, each, path in zip("AB", (a, b), paths, strict=True):
        inside = times(each.input.shape[1:])
        click.echo(f"{name}: {path} in {each.model} ({each.weights}), input {inside}")
    _echo(found, top)
    if file is not None:
        click.echo(f"{file}: {chosen.name}, B − A. {legend}")


def _file(out: str) -> Path:
    path = path_of(out)
    if path.suffix.casefold() not in _SUFFIXES:
        raise SettingError(f"-o {out!r} ends in none of {', '.join(_SUFFIXES)}.")
    return path


def _picture(text: str) -> Path:
    path = path_of(text)
    if path.is_dir():
        raise ImageError(
            f"{text!r} is a folder, and compare takes one image or two: `hookviz similarity` "
            "compares models over all images of a folder."
        )
    return path


def _names(model: Model, layer: str | None) -> list[str] | None:
    """The layer of a written address, ``relu#1[0]``, among those that may be named in its place."""
    if layer is None:
        return None
    name = re.split(r"[#\[]", layer)[0]
    return [*(each.name for each in list_layers(model)), name]


def _about(each: Capture, path: Path) -> dict[str, Any]:
    return {
        "image": str(path),
        "model": each.model,
        "weights": each.weights,
        "digest": each.digest,
        "input": tuple(each.input.shape),
    }


def _as_data(found: Comparison, top: int | None) -> dict[str, Any]:
    names = ("correlation", "mean_absolute_difference", "cosine")
    chosen = found.layers[0]
    return {
        "layers": [
            {
                "layer": str(each.a.address),
                "other_layer": str(each.b.address),
                "shape": tuple(each.a.values.shape),
                **dict(zip(names, each.channels.means, strict=True)),
                "most_changed": int(each.channels.most_changed[0]),
            }
            for each in found.layers
        ],
        "left_out": dict(found.left_out),
        "channels": {
            "layer": str(chosen.a.address),
            "most_changed": [
                {"channel": channel, **dict(zip(names, numbers, strict=True))}
                for channel, numbers in _channels(chosen, top or len(chosen.channels))
            ],
        },
    }


def _channels(chosen: LayerComparison, top: int) -> list[tuple[int, tuple[float, ...]]]:
    """The most changed channels with their three numbers."""
    compared = chosen.channels
    every = (compared.correlation, compared.mean_absolute_difference, compared.cosine)
    return [
        (channel, tuple(float(numbers[channel]) for numbers in every))
        for channel in compared.most_changed[:top].tolist()
    ]


def _echo(found: Comparison, top: int | None) -> None:
    rows = [
        (
            each.name,
            times(each.a.values.shape),
            *map(number, each.channels.means),
            str(each.channels.most_changed[0]),
        )
        for each in found.layers
    ]
    click.echo(text_table(_HEAD, rows, right=_HEAD[2:]))
    if found.left_out:
        click.echo(f"not compared: {len(found.left_out):,}, such as {_first(found)}")
    chosen = found.layers[0]
    head = ("channel", *_HEAD[2:5])
    rows = [
        (str(channel), *map(number, numbers))
        for channel, numbers in _channels(chosen, top or _LISTED)
    ]
    click.echo(f"{chosen.name}, most changed channels of {len(chosen.channels):,}:")
    click.echo(text_table(head, rows, right=head))


def _first(found: Comparison) -> str:
    name, reason = next(iter(found.left_out.items()))
    return f"{name}: {reason}"
