"""``hookviz page``: save the explorer of an image as one HTML file."""

from typing import Any

import click

from hookviz.atlas.files import read_atlas
from hookviz.capturing.engine import capture
from hookviz.cli.input_files import file_ending_in
from hookviz.cli.options import input_options, layer_names, load, model_options, out_option
from hookviz.cli.terminal import echo_json, progress_bar
from hookviz.images.reading import read
from hookviz.standalone.saving import MOST_BYTES, save_page
from hookviz.wording import byte_size


@click.command()
@click.argument("image")
@model_options
@click.option(
    "--layers",
    "--layer",
    help="Names with commas between, or maps, as `hookviz layers --kind` lists them; "
    "convolutions by default.",
)
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
@click.option(
    "--most-bytes",
    type=click.IntRange(1),
    default=MOST_BYTES,
    show_default=True,
    help="A larger page is refused.",
)
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
    pixels, of_atlas = read(image), None if atlas is None else read_atlas(atlas)
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
    row: dict[str, Any] = {
        "out": str(file),
        "model": loaded.name,
        "weights": loaded.weights,
        "layers": list(dict.fromkeys(each.layer for each in seen.activations)),
        "bytes": file.stat().st_size,
    }
    if as_json:
        echo_json(row)
    else:
        count = len(row["layers"])
        kept = f"{count} layer{'s' * (count > 1)}"
        click.echo(f"{file}: {kept} of {loaded.title}, {byte_size(row['bytes'])}.")
