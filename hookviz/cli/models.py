"""``hookviz models``: list the models that there are."""

from dataclasses import asdict

import click

from hookviz.cli.terminal import echo_json
from hookviz.errors import UnknownNameError
from hookviz.models import catalog
from hookviz.types import ModelSpec
from hookviz.wording import byte_size, text_table

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
