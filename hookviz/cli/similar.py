"""``hookviz similar``: find the images of an index that are like another one."""

from pathlib import Path
from typing import Any

import click

from hookviz.capturing.feature_index import FeatureIndex
from hookviz.cli.options import load
from hookviz.cli.terminal import echo_json
from hookviz.errors import SettingError, shorten
from hookviz.models import catalog
from hookviz.types import Model
from hookviz.wording import text_table


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
