"""``hookviz atlas``: find what excites every channel over many images, as a file."""

import sys
import time
from typing import Any

import click

from hookviz.atlas.making import AtlasProgress, make_atlas
from hookviz.atlas.plan import BATCH, DTYPES
from hookviz.atlas.tally import TOP
from hookviz.cli.options import engine_options, layer_names, load, model_options
from hookviz.cli.terminal import MISTAKE, echo_json, print_error, progress_bar
from hookviz.deprecated import REMOVED_IN
from hookviz.engines.engine import engine_of
from hookviz.paths import path_of
from hookviz.standalone.atlas_pages import save_atlas_pages
from hookviz.wording import byte_size

_INTERVAL = 0.5  # seconds between two lines of progress, at least


@click.command()
@click.argument("image", nargs=-1, required=True)
@model_options
@click.option(
    "--layers",
    "--layer",
    help="Names with commas between, or conv, maps, as `hookviz layers --kind` lists them; by "
    "default the conv layers, and blocks where a network has few of those.",
)
@click.option("-o", "--out", required=True, help="A folder that is made, NAME.atlas.")
@click.option(
    "--top", default=TOP, show_default=True, help="How many images are kept of each channel."
)
@click.option(
    "--batch",
    default=BATCH,
    show_default=True,
    help="Images a pass; 1 gives exactly the values that the app shows.",
)
@click.option("--size", type=click.IntRange(1), help="Side of the input in pixels.")
@click.option("--dtype", type=click.Choice(list(DTYPES)), default="float32", show_default=True)
@click.option("--patch", default=64, show_default=True, help="Longest side of a patch in pixels.")
@click.option(
    "--pages",
    metavar="FOLDER",
    help="Write it as a folder of static pages too, which open without a server.",
)
@click.option(
    "--overwrite", is_flag=True, help="Drop what was begun, or made, under that name, pages too."
)
@click.option("--anew", is_flag=True, hidden=True)  # as --overwrite was called
@engine_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def atlas(
    *,
    image: tuple[str, ...],
    model: str,
    layers: str | None,
    out: str,
    engine: str,
    workers: int | None,
    as_json: bool,
    top: int,
    batch: int,
    size: int | None,
    dtype: str,
    patch: int,
    pages: str | None,
    overwrite: bool,
    anew: bool,
    **loading: Any,
) -> None:
    """Find the images that excite each channel most, among those of a folder.

    IMAGE is a folder, a pattern or a file. For every channel of every layer the strongest images
    are kept with what the strongest cell sees, cut out of them; behind attention, with its own
    place. After Ctrl-C, a kill or a
    full disk the same command goes on where it was. An image that can't be read is reported and
    left out. With --pages the atlas, made just now or before, becomes a folder to look at in any
    browser: an index of layers, and a page for each with every channel's patches.
    """
    if anew:
        print_error(f"--anew is now called --overwrite; the old name goes in HookViz {REMOVED_IN}.")
    chosen = engine_of(engine, workers)
    loaded = load(model, **loading)
    line = _ProgressLine()
    try:
        result = make_atlas(
            loaded,
            image,
            path_of(out),
            layers=layer_names(loaded, layers),
            top=top,
            batch=batch,
            size=size,
            dtype=dtype,
            patch=patch,
            overwrite=overwrite or anew,
            progress=line.show,
            engine=chosen,
        )
    finally:
        line.end()
    for name, reason in result.left_out.items():
        print_error(f"{name}: {reason}")
    if pages is not None:
        with progress_bar(path_of(pages).name) as progress:
            written = save_atlas_pages(
                result, pages, overwrite=overwrite or anew, progress=progress
            )
    counts = result.counts
    size_on_disk = sum(file.stat().st_size for file in result.path.iterdir())
    if as_json:
        echo_json(
            {
                "atlas": str(result.path),
                "model": result.model,
                "channels": sum(result.layers.values()),
                "layers": len(result.layers),
                "bytes": size_on_disk,
                "classes": dict(result.classes),
                **({} if pages is None else {"pages": str(written)}),
                **counts,
            }
        )
    else:
        parts = [f"{counts['tallied']:,} images"]
        if counts["repeated"]:
            parts.append(f"{counts['repeated']:,} of them copies of others")
        if counts["left_out"]:
            parts.append(f"{counts['left_out']:,} left out")
        click.echo(
            f"{result.path}: {sum(result.layers.values()):,} channels of "
            f"{len(result.layers)} layers, {', '.join(parts)}, {byte_size(size_on_disk)}"
        )
        if pages is not None:
            click.echo(f"{written / 'index.html'}: its pages.")
    if counts["left_out"]:
        click.get_current_context().exit(MISTAKE)


class _ProgressLine:
    """Line on the terminal that says how far it is, and is erased at the end."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._next = 0.0

    def show(self, progress: AtlasProgress) -> None:
        """Write the line again, twice a second at most."""
        now = time.monotonic()
        if not self._is_terminal or now < self._next:
            return
        self._next = now + _INTERVAL
        click.echo(f"\r\x1b[K{in_words(progress)}", nl=False, err=True)

    def end(self) -> None:
        """Erase the line."""
        if self._is_terminal:
            click.echo("\r\x1b[K", nl=False, err=True)


def in_words(progress: AtlasProgress) -> str:
    """Say how far it is: ``Images 320 of 1,000, 12.4 a second, 55 s left``."""
    what = "Patches of images" if progress.cutting else "Images"
    words = f"{what} {progress.done:,} of {progress.images:,}"
    left = progress.seconds_left
    if left is not None:
        words += f", {progress.per_second:.1f} a second, "
        words += f"{left:.0f} s left" if left < 100 else f"{left / 60:.0f} min left"
    if progress.left_out:
        words += f", {progress.left_out:,} left out"
    return words
