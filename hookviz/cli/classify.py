"""``hookviz classify``: measure how well a layer's features tell classes of images apart."""

from typing import Any

import click

from hookviz.capturing.feature_vectors import POOLS
from hookviz.cli.options import input_options, load, model_options
from hookviz.cli.terminal import MISTAKE, complain, echo_json, progress_bar
from hookviz.explaining.image_features import LinearProbe, linear_probe
from hookviz.wording import percent, text_table


@click.command()
@click.argument("folder")
@model_options
@click.option("--layer", help="A layer or a block; the last maps by default.")
@click.option("--pool", type=click.Choice(list(POOLS)), default="mean", show_default=True)
@click.option("--folds", type=click.IntRange(2, 100), default=5, show_default=True)
@input_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def classify(
    *,
    folder: str,
    model: str,
    layer: str | None,
    pool: str,
    folds: int,
    size: int | None,
    whole: bool,
    as_json: bool,
    **loading: Any,
) -> None:
    """Tell how well a layer's features tell the class folders of a FOLDER apart.

    FOLDER has a folder for each class, such as photos/cats and photos/dogs. A logistic regression
    on the standardised features is cross-validated: each image is answered by a classifier that has
    seen neither it nor a copy of it. The network is not trained. Needs scikit-learn.
    """
    loaded = load(model, **loading)
    with progress_bar("Images") as report:
        probe = linear_probe(
            loaded,
            folder,
            layer,
            pool,
            folds=folds,
            size=size,
            whole=whole,
            progress=report,
        )
    for name, reason in probe.failed.items():
        complain(f"{name}: {reason}")
    if as_json:
        echo_json(_as_data(probe))
    else:
        click.echo(_in_words(probe))
    if probe.failed:
        click.get_current_context().exit(MISTAKE)


def _as_data(probe: LinearProbe) -> dict[str, Any]:
    return {
        "layer": probe.layer,
        "pool": probe.pool,
        "accuracy": probe.accuracy,
        "deviation": probe.deviation,
        "baseline": probe.baseline,
        "accuracies": probe.accuracies.tolist(),
        "classes": dict(zip(probe.classes, probe.counts, strict=True)),
        "confusion": probe.confusion.tolist(),
        "copies": probe.copies,
        "wrong": dict(probe.wrong),
        "failed": dict(probe.failed),
    }


def _in_words(probe: LinearProbe) -> str:
    folds = len(probe.accuracies)
    lines = [
        f"{probe.layer}: {percent(probe.accuracy)} right, ± {percent(probe.deviation)} over "
        f"{folds} folds; always the most frequent class: {percent(probe.baseline)}",
    ]
    if probe.copies:
        lines.append(f"{probe.copies} of the images are copies of others, in one fold with these")
    head = ("class", "images", "right", *(f"as {name}" for name in probe.classes))
    rows = [
        (name, str(count), percent(share), *map(str, row))
        for name, count, share, row in zip(
            probe.classes, probe.counts, probe.by_class, probe.confusion.tolist(), strict=True
        )
    ]
    return "\n".join([*lines, text_table(head, rows, right=head[1:])])
