"""``hookviz map``: draw the whole network for a paper."""

from typing import Any

import click

from hookviz.cli.input_files import file_ending_in
from hookviz.cli.options import input_options, load, model_options, out_option
from hookviz.cli.terminal import echo_json, progress_bar
from hookviz.drawing.figures import FORMATS
from hookviz.errors import SettingError
from hookviz.explaining.network_map.mapped_network import map_network
from hookviz.paths import write_file
from hookviz.wording import byte_size


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
        drawn = map_network(loaded, image, depth=depth, size=size, whole=whole, progress=progress)
    write_file(file, drawn.figure_bytes(file.suffix[1:].casefold(), dpi), SettingError)
    row: dict[str, Any] = {
        "out": str(file),
        "model": loaded.name,
        "weights": loaded.weights,
        "layers": list(drawn.layers),
        "bytes": file.stat().st_size,
    }
    if as_json:
        echo_json(row)
    else:
        count = len(row["layers"])
        click.echo(f"{file}: {count} parts of {loaded.title}, {byte_size(row['bytes'])}.")
