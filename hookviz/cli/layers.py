"""``hookviz layers``: what a model is made of."""

from dataclasses import asdict

import click

from hookviz.cli.options import load
from hookviz.cli.tables import echo_json, table, times
from hookviz.survey import list_layers, own_shape
from hookviz.types import LayerInfo

_HEAD = ("layer", "kind", "kernel", "stride", "input → output", "parameters", "calls")


@click.command()
@click.argument("model")
@click.option(
    "--weights",
    default="random",
    show_default=True,
    help="pretrained, random or a checkpoint; the layers are the same with any of them.",
)
@click.option("--all", "every", is_flag=True, help="Every layer, not only the convolutions.")
@click.option("--size", type=click.IntRange(1), help="Side of the input in pixels.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def layers(model: str, weights: str, every: bool, size: int | None, as_json: bool) -> None:
    """List a model's layers in order of execution, with their shapes.

    Shapes are channels×height×width. Nothing is downloaded, since they don't depend on weights.
    """
    loaded = load(model, weights, device="cpu")
    channels, height, width = own_shape(loaded)
    shape = (channels, size or height, size or width)
    found = list_layers(loaded, kind="all" if every else "conv", input_shape=shape)
    if as_json:
        echo_json([asdict(layer) for layer in found])
        return
    click.echo(table(_HEAD, list(map(_row, found)), right=("parameters", "calls")))


def _row(layer: LayerInfo) -> tuple[str, ...]:
    return (
        layer.name,
        layer.kind,
        times(layer.kernel_size),
        times(layer.stride),
        f"{times(layer.input_shape)} → {times(layer.output_shape)}",
        f"{layer.parameters:,}",
        str(layer.calls),
    )
