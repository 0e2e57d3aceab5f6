"""``hookviz features``: a vector per image, and which images are alike."""

import sys
from typing import Any

import click

from hookviz.capturing import features as making
from hookviz.cli.input_files import expand
from hookviz.cli.messages import MISTAKE, complain
from hookviz.cli.options import input_options, load, model_options
from hookviz.cli.tables import echo_json, table
from hookviz.errors import SettingError
from hookviz.paths import path_of

_SUFFIXES = (".npz", ".parquet")


@click.command()
@click.argument("image", nargs=-1, required=True)
@model_options
@click.option("--layer", help="Whose output; the last convolution by default.")
@click.option("--pool", type=click.Choice(list(making.POOLS)), default="mean", show_default=True)
@input_options
@click.option("-o", "--out", help="An .npz or a .parquet file.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def features(
    *,
    image: tuple[str, ...],
    model: str,
    layer: str | None,
    pool: str,
    size: int | None,
    whole: bool,
    out: str | None,
    as_json: bool,
    **loading: Any,
) -> None:
    """Make a vector of each IMAGE, and say which are alike.

    Prints each image's nearest other one by cosine similarity. An image that can't be read is
    reported, and the rest go on.
    """
    path = None if out is None else path_of(out)
    suffix = path.suffix.casefold() if path else ""
    if path and suffix not in _SUFFIXES:
        raise SettingError(f"{out!r} ends in none of {', '.join(_SUFFIXES)}.")
    pictures = expand(image)
    loaded = load(model, **loading)
    with click.progressbar(
        length=1000,
        label="Images",
        file=sys.stderr,
        hidden=not sys.stderr.isatty(),
    ) as bar:
        extracted = making.features(
            loaded,
            {str(picture): picture for picture in pictures},
            layer,
            pool,
            size=size,
            whole=whole,
            progress=lambda share: bar.update(int(1000 * share) - bar.pos),
        )
    for name, reason in extracted.failed.items():
        complain(f"{name}: {reason}")
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(extracted.npz() if suffix == ".npz" else extracted.parquet())
    nearest = extracted.nearest()
    if as_json:
        echo_json(
            {
                "layer": extracted.layer,
                "numbers": extracted.vectors.shape[1],
                "nearest": {name: others[:1] for name, others in nearest.items()},
                "failed": dict(extracted.failed),
            }
        )
    else:
        click.echo(f"{extracted.layer}: {extracted.vectors.shape[1]:,} numbers for each image")
        rows = [
            (name, other, f"{alike:.4f}")
            for name, others in nearest.items()
            for other, alike in others
        ]
        if rows:
            click.echo(table(("image", "nearest", "similarity"), rows, right=("similarity",)))
    if extracted.failed:
        click.get_current_context().exit(MISTAKE)
