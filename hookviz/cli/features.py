"""``hookviz features``, ``similar`` and ``classify``: work with a feature vector per image.

`features` writes the vectors, `similar` looks an image up in them, and `classify` measures how well
they tell classes apart.
"""

from pathlib import Path
from typing import Any

import click

from hookviz.capturing import features as making
from hookviz.capturing.feature_index import FeatureIndex
from hookviz.capturing.feature_vectors import POOLS, check_suffix
from hookviz.cli.options import engine_options, input_options, load, model_options, out_option
from hookviz.cli.terminal import MISTAKE, echo_json, print_error, progress_bar
from hookviz.engines.engine import engine_of
from hookviz.errors import SettingError, shorten
from hookviz.explaining.image_features import LinearProbe, linear_probe
from hookviz.images.files import expand
from hookviz.models import catalog
from hookviz.paths import path_of
from hookviz.types import Model
from hookviz.wording import percent, text_table


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
        print_error(f"{name}: {reason}")
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


@click.command()
@click.argument("image")
@click.argument("index")
@click.option("-n", "--count", type=click.IntRange(1), default=10, show_default=True)
@click.option("--model", help="The model, where it is your own: package.module:factory or a .pt2.")
@click.option("--weights", help="The checkpoint, where the index was made with one.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda or mps.")
@click.option("--half", is_flag=True, help="Compute in half precision, on GPUs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def similar(
    *,
    image: str,
    index: str,
    count: int,
    model: str | None,
    weights: str | None,
    as_json: bool,
    **loading: Any,
) -> None:
    """Name the images of an INDEX that are most like an IMAGE to the network.

    The index is a file of `hookviz features photos/ -o index.parquet`. The image's vector is made
    with the model, layer and options that the index was made with.
    """
    feature_index = FeatureIndex.load(index)
    loaded = _model_of(feature_index, model, weights, **loading)
    nearest = feature_index.nearest(loaded, image, count)
    if as_json:
        features = feature_index.features
        echo_json({"model": features.model, "layer": features.layer, "nearest": nearest})
        return
    rows = [(str(rank + 1), name, f"{cosine:.4f}") for rank, (name, cosine) in enumerate(nearest)]
    click.echo(text_table(("", "image", "similarity"), rows, right=("", "similarity")))


def _model_of(index: FeatureIndex, model: str | None, weights: str | None, **loading: Any) -> Model:
    """Load the model that the index was made with.

    What a file says is never a module to be imported or a path to be read: names of the catalog
    alone are taken from it.
    """
    features = index.features
    if model is None and features.model not in {spec.name for spec in catalog.list_models()}:
        raise SettingError(
            f"The index was made with {shorten(features.model)!r}, which is no model of the "
            "catalog: name it with --model package.module:factory."
        )
    if weights is None and model is None and features.weights not in ("pretrained", "random"):
        name = Path(features.weights).name
        raise SettingError(
            f"The index was made with weights from {shorten(name)!r}: name that file with "
            "--weights."
        )
    chosen = weights or (features.weights if model is None else "pretrained")
    return load(model or features.model, chosen, **loading)


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
        print_error(f"{name}: {reason}")
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
