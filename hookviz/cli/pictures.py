"""``hookviz grid``, ``map``, ``page`` and ``live``: draw a layer or network, save the explorer."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from hookviz.atlas.files import load_atlas
from hookviz.capturing.engine import capture
from hookviz.capturing.list_layers import list_layers
from hookviz.cli.options import (
    Command,
    Row,
    destinations,
    each,
    file_ending_in,
    finish_rows,
    input_options,
    keep_existing,
    layer_names,
    load,
    model_options,
    out_option,
)
from hookviz.cli.terminal import echo_json, progress_bar
from hookviz.drawing.colormaps import COLORMAPS
from hookviz.drawing.figures import FORMATS
from hookviz.drawing.grid import make_grid
from hookviz.drawing.scales import SCALES
from hookviz.drawing.statistics import SORTS
from hookviz.errors import ModelError, SettingError
from hookviz.explaining.network_map.mapped_network import draw_network
from hookviz.images.files import ImageFile, expand
from hookviz.images.reading import read
from hookviz.paths import write_file
from hookviz.standalone.live_page import MOST_BYTES as MOST_LIVE_BYTES
from hookviz.standalone.live_page import save_live_page
from hookviz.standalone.saving import MOST_BYTES, save_page
from hookviz.types import Activation, ActivationKey, Model
from hookviz.wording import byte_size

_SUFFIXES = (".png", ".pdf", ".svg")


@click.command()
@click.argument("image", nargs=-1, required=True)
@model_options
@click.option("--layer", help="Which layer or block; the first convolution by default.")
@click.option("--sort", type=click.Choice(list(SORTS)), default="index", show_default=True)
@click.option("--top", type=click.IntRange(1), help="Only the first so many in that order.")
@click.option("--scale", type=click.Choice(list(SCALES)), default="layer", show_default=True)
@click.option("--colormap", type=click.Choice(list(COLORMAPS)), help="By the scale if left out.")
@input_options
@click.option("--figure", is_flag=True, help="A page for print, also as PNG.")
@out_option(".png", "A .png, .pdf or .svg file, or a folder.", required=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def grid(
    *,
    image: tuple[str, ...],
    model: str,
    layer: str | None,
    sort: str,
    top: int | None,
    scale: str,
    colormap: str | None,
    size: int | None,
    whole: bool,
    figure: bool,
    out: str,
    as_json: bool,
    **loading: Any,
) -> None:
    """Draw every channel of a layer for each IMAGE: a file, a folder or a pattern.

    A .png is the plain mosaic, one tile per channel; a .pdf, an .svg and --figure make a page with
    title, colour bar and legend. For many images OUT is a folder, or has {name} in it.
    """
    pictures, rows = keep_existing(expand(image))
    outputs = destinations(out, pictures, _SUFFIXES)
    if pictures:
        loaded = load(model, **loading)
        wanted = layer or _first_conv(loaded)

        def draw(picture: ImageFile) -> Row:
            activation = _activation(loaded, picture, wanted, size=size, whole=whole)
            channel_grid = make_grid(activation, sort=sort, top=top, scale=scale, colormap=colormap)
            kind = outputs[picture].suffix[1:].casefold()
            page = figure or kind != "png"
            title = f"{picture.name} · {channel_grid.title}" if len(pictures) > 1 else None
            outputs[picture].write_bytes(
                channel_grid.figure_bytes(kind, title=title) if page else channel_grid.png()
            )
            return {
                "out": str(outputs[picture]),
                "model": loaded.name,
                "weights": loaded.weights,
                "layer": channel_grid.title,
                "shape": channel_grid.shape,
                "channels": channel_grid.order.tolist(),
                "legend": channel_grid.legend,
            }

        rows += each(pictures, draw)
    finish_rows(rows, _echo_grid, as_json=as_json)


def _echo_grid(row: Row) -> None:
    click.echo(f"{row['out']}: {row['layer']}. {row['legend']}")


def _first_conv(model: Model) -> str:
    convs = list_layers(model)
    if not convs:
        raise ModelError(
            f"{model.title} runs no conv layer to draw; `hookviz layers --kind maps` lists what "
            "else can be drawn."
        )
    return convs[0].name


def _activation(
    model: Model, picture: ImageFile, layer: str, *, size: int | None, whole: bool
) -> Activation:
    """Capture a layer's output for a picture; `layer` may name a call and a part: ``relu#1[0]``."""
    name = (
        layer if layer in dict(model.network.named_modules()) else ActivationKey.read(layer).layer
    )
    return capture(model, picture, name, size=size, whole=whole, logits=False)[layer]


@click.command()
@click.argument("image")
@model_options
@click.option(
    "--depth",
    type=click.IntRange(1),
    help="Blocks in blocks that are opened: 1 leaves the outer ones closed; all by default.",
)
@input_options
@click.option("--dpi", type=click.IntRange(50, 600), default=200, show_default=True)
@out_option(".svg", "An .svg, .png or .pdf file.", required=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def map(  # noqa: A001 - the command's name
    *,
    image: str,
    model: str,
    depth: int | None,
    size: int | None,
    whole: bool,
    dpi: int,
    out: str,
    as_json: bool,
    **loading: Any,
) -> None:
    """Draw the network for a paper: each layer with its strongest channels on an IMAGE.

    In an .svg text stays text, and every layer and line has an id.
    """
    file = file_ending_in(out, tuple(f".{each}" for each in FORMATS))
    loaded = load(model, **loading)
    with progress_bar(file.name) as progress:
        drawn = draw_network(loaded, image, depth=depth, size=size, whole=whole, progress=progress)
    write_file(file, drawn.figure_bytes(file.suffix[1:].casefold(), dpi), SettingError)
    _echo_saved(file, loaded, list(drawn.layers), "part", as_json=as_json)


_layers_option = click.option(
    "--layers",
    "--layer",
    help="Names with commas between, or maps, as `hookviz layers --kind` lists them; "
    "convolutions by default.",
)


def _most_bytes_option(default: int) -> Callable[[Command], Command]:
    return click.option(
        "--most-bytes",
        type=click.IntRange(1),
        default=default,
        show_default=True,
        help="A larger page is refused.",
    )


@click.command()
@click.argument("image")
@model_options
@_layers_option
@click.option(
    "--sums", help="Layers, likewise, of which any cell's sum can be looked at, at more bytes."
)
@click.option("--atlas", help="Of this model, a folder NAME.atlas: what excites each channel.")
@click.option(
    "--whole-network",
    is_flag=True,
    help="Begin with a map of the network, each layer with its strongest channels.",
)
@input_options
@_most_bytes_option(MOST_BYTES)
@out_option(".html", "An .html file.", required=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def page(
    *,
    image: str,
    model: str,
    layers: str | None,
    sums: str | None,
    atlas: str | None,
    whole_network: bool,
    size: int | None,
    whole: bool,
    most_bytes: int,
    out: str,
    as_json: bool,
    **loading: Any,
) -> None:
    """Save the explorer of an IMAGE as one HTML file, which opens without a server.

    It has every channel of every layer with its values as float16, and the sum at each channel's
    strongest cell, in every language, light and dark. In an article it stands in an iframe with
    ?layer=NAME&channel=NUMBER&embed=1 behind its name.
    """
    file = file_ending_in(out, (".html", ".htm"))
    pixels, of_atlas = read(image), None if atlas is None else load_atlas(atlas)
    loaded = load(model, **loading)
    seen = capture(loaded, pixels, layer_names(loaded, layers), size=size, whole=whole)
    with progress_bar(file.name) as progress:
        save_page(
            seen,
            file,
            image=pixels,
            sums=layer_names(loaded, sums) or (),
            atlas=of_atlas,
            whole_network=whole_network,
            most_bytes=most_bytes,
            progress=progress,
        )
    layer_list = list(dict.fromkeys(each.layer for each in seen.activations))
    _echo_saved(file, loaded, layer_list, "layer", as_json=as_json)


@click.command()
@click.argument("image", nargs=-1)
@model_options
@_layers_option
@_most_bytes_option(MOST_LIVE_BYTES)
@out_option(".html", "An .html file.", required=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def live(
    *,
    image: tuple[str, ...],
    model: str,
    layers: str | None,
    most_bytes: int,
    out: str,
    as_json: bool,
    **loading: Any,
) -> None:
    """Save a network as one HTML file that runs it in a browser, on any image.

    The page offers each IMAGE, or the samples without any, and opens with the first. It needs no
    server and no network; to make it takes hookviz[live].
    """
    file = file_ending_in(out, (".html", ".htm"))
    loaded = load(model, **loading)
    names = layer_names(loaded, layers)
    with progress_bar(file.name) as progress:
        save_live_page(
            loaded,
            file,
            samples=expand(image),
            layers=names,
            most_bytes=most_bytes,
            progress=progress,
        )
    layer_list = names or [each.name for each in list_layers(loaded)]
    _echo_saved(file, loaded, layer_list, "layer", as_json=as_json)


def _echo_saved(file: Path, model: Model, layers: list[str], noun: str, *, as_json: bool) -> None:
    """Print the contents and the size of a saved file."""
    size = file.stat().st_size
    if as_json:
        about = {"out": str(file), "model": model.name, "weights": model.weights}
        echo_json({**about, "layers": layers, "bytes": size})
    else:
        count = f"{len(layers)} {noun}{'s' * (len(layers) > 1)}"
        click.echo(f"{file}: {count} of {model.title}, {byte_size(size)}.")
