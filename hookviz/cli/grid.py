"""``hookviz grid``: draw every channel of a layer as a picture."""

from typing import Any

import click

from hookviz.capturing.engine import capture
from hookviz.capturing.list_layers import list_layers
from hookviz.cli.input_files import Row, destinations, each, existing
from hookviz.cli.options import input_options, load, model_options, out_option
from hookviz.cli.terminal import MISTAKE, echo_json
from hookviz.drawing.colormaps import COLORMAPS
from hookviz.drawing.grid import make_grid
from hookviz.drawing.scales import SCALES
from hookviz.drawing.statistics import SORTS
from hookviz.errors import ModelError
from hookviz.images.files import ImageFile, expand
from hookviz.types import Activation, ActivationKey, Model

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
    pictures, rows = existing(expand(image))
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
    if as_json:
        echo_json(rows)
    else:
        for row in rows:
            if "error" not in row:
                click.echo(f"{row['out']}: {row['layer']}. {row['legend']}")
    if any("error" in row for row in rows):
        click.get_current_context().exit(MISTAKE)


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
