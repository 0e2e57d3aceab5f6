"""``hookviz models``, ``layers`` and ``fetch``: list models and layers, and download weights."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from hookviz.capturing.inputs import own_shape
from hookviz.capturing.list_layers import KINDS, layout_text, list_layers
from hookviz.cli.options import load
from hookviz.cli.terminal import MISTAKE, download_bar, echo_json, in_words, print_error
from hookviz.errors import HookVizError, UnknownNameError
from hookviz.explaining.receptive_fields.receptive_field import ReceptiveField, receptive_fields
from hookviz.models import catalog
from hookviz.models.bundled import BUNDLED
from hookviz.models.catalog import find_source
from hookviz.models.fetching import downloads
from hookviz.models.fetching.downloads import matches_name
from hookviz.types import LayerInfo, ModelSpec
from hookviz.wording import byte_size, text_table, times

_HEAD = ("name", "title", "family", "parameters", "download", "accuracy", "on disk")


@click.command()
@click.option("--family", multiple=True, help="Only this family, such as resnet; repeatable.")
@click.option("--on-disk", is_flag=True, help="Only those whose weights are on this machine.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def models(family: tuple[str, ...], on_disk: bool, as_json: bool) -> None:
    """List the models: size, accuracy, and whether the weights are on this machine.

    Top-1 is the share of the test images that a model gets right, in percent, mean IoU how far the
    areas of its classes are the true ones, box AP the average precision of its boxes, all of them
    by the figures of those who trained it.
    """
    listed = of_families(family) if family else catalog.list_models()
    listed = tuple(spec for spec in listed if spec.on_disk or not on_disk)
    if as_json:
        echo_json([asdict(spec) for spec in listed])
        return
    rows = [
        (
            spec.name,
            spec.title,
            spec.family,
            f"{spec.parameters:,}",
            byte_size(spec.download_bytes) if spec.download_bytes else "",
            f"{spec.accuracy:.1f} % {spec.metric}"
            if spec.accuracy == spec.accuracy
            else "",  # NaN: not known
            "yes" if spec.on_disk else "",
        )
        for spec in listed
    ]
    click.echo(text_table(_HEAD, rows, right=("parameters", "download", "accuracy")))


def of_families(wanted: tuple[str, ...]) -> tuple[ModelSpec, ...]:
    """Return the models of some families, in the catalog's order; case does not matter.

    Raises:
        UnknownNameError: there is no such family; the error names the nearest.
    """
    all_models = catalog.list_models()
    families = {spec.family.casefold(): spec.family for spec in all_models}
    for name in wanted:
        if name.casefold() not in families:
            raise UnknownNameError("model family", name, families.values())
    chosen = {name.casefold() for name in wanted}
    return tuple(spec for spec in all_models if spec.family.casefold() in chosen)


_LAYER_HEAD = (
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
        echo_json([_layer_data(*known) for known in facts])
        return
    rows = [_layer_row(*known) for known in facts]
    click.echo(
        text_table(_LAYER_HEAD, rows, right=("number", "parameters", "multiply-adds", "calls"))
    )


def _multiply_adds(layer: LayerInfo, all_layers: Sequence[LayerInfo]) -> int:
    """Return the multiply-adds of one pass: a layer's in all calls, a block's in all parts."""
    return sum(
        part.multiply_adds * part.calls
        for part in all_layers
        if f"{part.name}.".startswith(f"{layer.name}.")
    )


def _layer_data(
    layer: LayerInfo, multiply_adds: int, field: ReceptiveField | None
) -> dict[str, Any]:
    """Return a layer for JSON; its receptive field is (height, width) in pixels, None for all."""
    seen = field.size if field else None
    return {
        **asdict(layer),
        "multiply_adds": layer.multiply_adds or multiply_adds,
        "receptive_field": seen,
    }


def _layer_row(
    layer: LayerInfo, multiply_adds: int, field: ReceptiveField | None
) -> tuple[str, ...]:
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


FAILED = frozenset({"failed", "damaged", "missing"})
"""The states with which the command ends in status 2."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """State of one model's weights.

    Attributes:
        name: of the model.
        state: ``"downloaded"``, ``"there"``, ``"bundled"``, ``"elsewhere"``, ``"failed"``,
            ``"damaged"`` or ``"missing"``.
        bytes: size of the file on this machine, 0 without one.
        text: the same in words.
    """

    name: str
    state: str
    bytes: int
    text: str


@click.command()
@click.argument("name", nargs=-1)
@click.option("--family", multiple=True, help="A whole family, such as resnet; repeatable.")
@click.option("--all", "all_models", is_flag=True, help="Every model of the catalog.")
@click.option("--check", is_flag=True, help="Verify what is there, and download nothing.")
@click.option(
    "--optional", is_flag=True, help="Go on without what can't be downloaded, and say what it is."
)
@click.option("--weights-url", default="", metavar="URL", help="A mirror, for this call.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def fetch(
    *,
    name: tuple[str, ...],
    family: tuple[str, ...],
    all_models: bool,
    check: bool,
    optional: bool,
    weights_url: str,
    as_json: bool,
) -> None:
    """Download weights ahead of time, or check those that are there.

    The pretrained weights of each NAME go to torch's own folder, where other programs find them
    too. Those that are there and whole are left alone; damaged ones are downloaded again. --check
    alone verifies whatever is there; with names it also tells what is missing.
    """
    if not (name or family or all_models or check):
        raise click.UsageError("Which models? Give names, --family or --all, or --check.")
    chosen = _chosen_models(name, family, all_models)
    if check and not chosen:
        chosen = [
            spec for spec in catalog.described_models() if spec.on_disk and spec.download_bytes
        ]
        if not chosen and not as_json:
            click.echo("No downloaded weights are on this machine.")
    outcomes = []
    for spec in chosen:
        outcome = verify(spec) if check else _fetch(spec, weights_url)
        outcomes.append(outcome)
        if outcome.state in FAILED:
            print_error(f"{outcome.name}: {outcome.text}")
        elif not as_json:
            click.echo(f"{outcome.name}: {outcome.text}")
    if as_json:
        echo_json([asdict(outcome) for outcome in outcomes])
    left_out = [outcome.name for outcome in outcomes if outcome.state in FAILED]
    if left_out and optional:
        print_error(f"Left out: {', '.join(left_out)}.")
    elif left_out:
        click.get_current_context().exit(MISTAKE)


def verify(spec: ModelSpec) -> Outcome:
    """Check that a model's weights are on this machine and have the hash in their name."""
    if spec.name in BUNDLED:
        return Outcome(spec.name, "bundled", 0, "ships with HookViz.")
    source = find_source(spec.name)
    if source is not None and source.weights_url is None:
        text = "its library downloads and keeps the weights itself, when the model is first loaded."
        return Outcome(spec.name, "elsewhere", 0, text)
    path = catalog.weights_path(spec.name)
    if not path.is_file():
        text = f"not on this machine; `hookviz fetch {spec.name}` downloads it."
        return Outcome(spec.name, "missing", 0, text)
    size = path.stat().st_size
    is_intact = matches_name(path)
    if is_intact is False:
        text = (
            f"{path} is damaged: its SHA-256 is not the one in its name. "
            f"`hookviz fetch {spec.name}` downloads it again."
        )
        return Outcome(spec.name, "damaged", size, text)
    how = (
        "verified by the SHA-256 in its name"
        if is_intact
        else "not verified, as its name has no hash"
    )
    return Outcome(spec.name, "there", size, f"already there, {byte_size(size)}, {how}.")


def _fetch(spec: ModelSpec, mirror: str) -> Outcome:
    outcome = verify(spec)
    if outcome.state in {"bundled", "there", "elsewhere"}:
        return outcome
    try:
        if outcome.state == "damaged":
            catalog.weights_path(spec.name).unlink()
        size = _download(spec, mirror).stat().st_size
    except (HookVizError, OSError) as error:
        return Outcome(spec.name, "failed", 0, in_words(error))
    return Outcome(spec.name, "downloaded", size, f"downloaded {byte_size(size)}.")


def _download(spec: ModelSpec, mirror: str) -> Path:
    """Download the pretrained weights of a model under a bar, and return their path.

    Args:
        spec: of a model whose weights don't ship with HookViz.
        mirror: an address that serves the same file names, in place of ``HOOKVIZ_WEIGHTS_URL``;
            empty for none.

    Raises:
        WeightsError: they can't be downloaded, or what came is something else.
    """
    path = catalog.weights_path(spec.name)
    url = f"{mirror.rstrip('/')}/{path.name}" if mirror else catalog.weights_url(spec.name)
    with download_bar(spec) as report:
        return downloads.fetch(url, path, report)


def _chosen_models(
    names: tuple[str, ...], families: tuple[str, ...], all_models: bool
) -> list[ModelSpec]:
    """Return the models asked for, once each; names are looked up before any download.

    Raises:
        UnknownNameError: there is no such model or family; the error names the nearest.
    """
    specs = [catalog.find_model(name) for name in names]
    specs += of_families(families) if families else ()
    specs += catalog.described_models() if all_models else ()
    return list({spec.name: spec for spec in specs}.values())
