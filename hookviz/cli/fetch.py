"""``hookviz fetch``: weights on this machine before the class begins."""

from dataclasses import asdict, dataclass

import click

from hookviz.cli import download
from hookviz.cli.messages import MISTAKE, complain, in_words
from hookviz.cli.models import of_families
from hookviz.cli.tables import echo_json
from hookviz.errors import HookVizError
from hookviz.models import catalog
from hookviz.models.bundled import BUNDLED
from hookviz.models.fetching.downloads import matches_name
from hookviz.types import ModelSpec
from hookviz.wording import byte_size

FAILED = frozenset({"failed", "damaged", "missing"})
"""The states with which the command ends in status 2."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one model's weights.

    Attributes:
        name: of the model.
        state: ``"downloaded"``, ``"there"``, ``"bundled"``, ``"failed"``, ``"damaged"`` or
            ``"missing"``.
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
@click.option("--all", "every", is_flag=True, help="Every model of the catalog.")
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
    every: bool,
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
    if not (name or family or every or check):
        raise click.UsageError("Which models? Give names, --family or --all, or --check.")
    chosen = _chosen(name, family, every)
    if check and not chosen:
        chosen = [
            spec for spec in catalog.described_models() if spec.on_disk and spec.download_bytes
        ]
        if not chosen and not as_json:
            click.echo("No downloaded weights are on this machine.")
    outcomes = []
    for spec in chosen:
        outcome = verified(spec) if check else _fetched(spec, weights_url)
        outcomes.append(outcome)
        if outcome.state in FAILED:
            complain(f"{outcome.name}: {outcome.text}")
        elif not as_json:
            click.echo(f"{outcome.name}: {outcome.text}")
    if as_json:
        echo_json([asdict(outcome) for outcome in outcomes])
    left_out = [outcome.name for outcome in outcomes if outcome.state in FAILED]
    if left_out and optional:
        complain(f"Left out: {', '.join(left_out)}.")
    elif left_out:
        click.get_current_context().exit(MISTAKE)


def verified(spec: ModelSpec) -> Outcome:
    """Whether a model's weights are on this machine, and are what their file's name promises."""
    if spec.name in BUNDLED:
        return Outcome(spec.name, "bundled", 0, "ships with HookViz.")
    path = catalog.weights_path(spec.name)
    if not path.is_file():
        text = f"not on this machine; `hookviz fetch {spec.name}` downloads it."
        return Outcome(spec.name, "missing", 0, text)
    size = path.stat().st_size
    right = matches_name(path)
    if right is False:
        text = (
            f"{path} is damaged: its SHA-256 is not the one in its name. "
            f"`hookviz fetch {spec.name}` downloads it again."
        )
        return Outcome(spec.name, "damaged", size, text)
    how = (
        "verified by the SHA-256 in its name" if right else "not verified, as its name has no hash"
    )
    return Outcome(spec.name, "there", size, f"already there, {byte_size(size)}, {how}.")


def _fetched(spec: ModelSpec, mirror: str) -> Outcome:
    outcome = verified(spec)
    if outcome.state in {"bundled", "there"}:
        return outcome
    try:
        if outcome.state == "damaged":
            catalog.weights_path(spec.name).unlink()
        size = download.fetch(spec, mirror).stat().st_size
    except (HookVizError, OSError) as error:
        return Outcome(spec.name, "failed", 0, in_words(error))
    return Outcome(spec.name, "downloaded", size, f"downloaded {byte_size(size)}.")


def _chosen(names: tuple[str, ...], families: tuple[str, ...], every: bool) -> list[ModelSpec]:
    """The models asked for, once each; every name is looked up before anything is downloaded.

    Raises:
        UnknownNameError: there is no such model or family; the error names the nearest.
    """
    specs = [catalog.find_model(name) for name in names]
    specs += of_families(families) if families else ()
    specs += catalog.described_models() if every else ()
    return list({spec.name: spec for spec in specs}.values())
