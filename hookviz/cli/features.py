"""``hookviz features``: make a vector per image, and say which images are alike."""

from typing import Any

import click

from hookviz.capturing import features as making
from hookviz.capturing.feature_vectors import POOLS, check_suffix
from hookviz.cli.options import engine_options, input_options, load, model_options, out_option
from hookviz.cli.terminal import MISTAKE, complain, echo_json, progress_bar
from hookviz.engines.engine import engine_of
from hookviz.images.files import expand
from hookviz.paths import path_of
from hookviz.wording import text_table


@click.command()
@click.argument("image", nargs=-1, required=True)
@model_options
@click.option("--layer", help="Whose output; the last maps by default.")
@click.option("--pool", type=click.Choice(list(POOLS)), default="mean", show_default=True)
@input_options
@out_option(".npz", "A .parquet file, which `hookviz similar` can be asked, or an .npz file.")
@engine_options
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
    engine: str,
    workers: int | None,
    as_json: bool,
    **loading: Any,
) -> None:
    """Make a vector of each IMAGE, and say which are alike.

    Prints each image's nearest other one by cosine similarity. An image that can't be read is
    reported, and the rest go on. A folder gives what is in its folders, too.
    """
    path = None if out is None else path_of(out)
    if path:
        check_suffix(path)
    chosen = engine_of(engine, workers)
    pictures = expand(image, inside=True)
    loaded = load(model, **loading)
    with progress_bar("Images") as report:
        extracted = making.features(
            loaded,
            {str(picture): picture for picture in pictures},
            layer,
            pool,
            size=size,
            whole=whole,
            progress=report,
            engine=chosen,
        )
    for name, reason in extracted.failed.items():
        complain(f"{name}: {reason}")
    if path:
        extracted.save(path)
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
            (name, other, f"{cosine:.4f}")
            for name, others in nearest.items()
            for other, cosine in others
        ]
        if rows:
            click.echo(text_table(("image", "nearest", "similarity"), rows, right=("similarity",)))
    if extracted.failed:
        click.get_current_context().exit(MISTAKE)
