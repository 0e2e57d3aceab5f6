"""``hookviz layers``: list what a model is made of."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from hookviz.capturing.inputs import own_shape
from hookviz.capturing.list_layers import KINDS, layout_text, list_layers
from hookviz.cli.options import load
from hookviz.cli.terminal import echo_json
from hookviz.explaining.receptive_fields.receptive_field import ReceptiveField, receptive_fields
from hookviz.types import LayerInfo
from hookviz.wording import text_table, times

_HEAD = (
    *("number", "layer", "kind", "kernel", "stride", "input → output", "layout"),
    *("sees", "parameters", "multiply-adds", "calls"),
)


@click.command()
@click.argument("model")
@click.option(
    "--weights",
    default="random",
    show_default=True,
    help="pretrained, random or a checkpoint; the layers are the same with any of them.",
)
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default="conv",
    show_default=True,
    help="Convolutions; whatever puts out maps, blocks such as layer1 too; or all layers.",
)
@click.option("--all", "kind", flag_value="all", help="The same as --kind all.")
@click.option("--size", type=click.IntRange(1), help="Side of the input in pixels.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def layers(model: str, weights: str, kind: str, size: int | None, as_json: bool) -> None:
    """List a model's layers in order of execution, with their shapes.

    Blocks stand before their parts, and count the parameters of all of them. Shapes are
    channels×height×width, also of layers whose own layout has the channels last, or tokens. Of an
    unknown layout they are as the layer puts them out: that is no map. "sees" is the receptive
    field in pixels of the input. Nothing is downloaded, since none of it depends on weights.
    """
    loaded = load(model, weights, device="cpu")
    channels, *extent = own_shape(loaded)
    shape = (channels, *(size or length for length in extent))
    all_layers = list_layers(loaded, kind="all", input_shape=shape)
    infos = list_layers(loaded, kind=kind, input_shape=shape)
    fields = receptive_fields(loaded, shape)
    facts = [(layer, _multiply_adds(layer, all_layers), fields.get(layer.name)) for layer in infos]
    if as_json:
        echo_json([_as_data(*known) for known in facts])
        return
    rows = [_row(*known) for known in facts]
    click.echo(text_table(_HEAD, rows, right=("number", "parameters", "multiply-adds", "calls")))


def _multiply_adds(layer: LayerInfo, all_layers: Sequence[LayerInfo]) -> int:
    """Return the multiply-adds of one pass: a layer's in all calls, a block's in all parts."""
    parts = (part for part in all_layers if part.name == layer.name or _is_in(part, layer))
    return sum(part.multiply_adds * part.calls for part in parts)


def _is_in(part: LayerInfo, block: LayerInfo) -> bool:
    return part.name.startswith(f"{block.name}.")


def _as_data(layer: LayerInfo, multiply_adds: int, field: ReceptiveField | None) -> dict[str, Any]:
    """Return a layer for JSON; its receptive field is (height, width) in pixels, None for all."""
    seen = field.size if field else None
    return {
        **asdict(layer),
        "multiply_adds": layer.multiply_adds or multiply_adds,
        "receptive_field": seen,
    }


def _row(layer: LayerInfo, multiply_adds: int, field: ReceptiveField | None) -> tuple[str, ...]:
    extent = "–"
    if field is not None:
        extent = "all" if field.size is None else times(field.size)
    return (
        str(layer.index + 1),
        layer.name,
        layer.kind,
        times(layer.kernel_size),
        times(layer.stride),
        f"{times(layer.input_shape)} → {times(layer.output_shape)}",
        layout_text(layer),
        extent,
        f"{layer.parameters:,}",
        f"{multiply_adds:,}",
        str(layer.calls),
    )
