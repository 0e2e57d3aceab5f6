"""``hookviz fetch``: bring weights to this machine before the class begins."""

from dataclasses import asdict, dataclass
from pathlib import Path

import click

from hookviz.cli.models import of_families
from hookviz.cli.terminal import MISTAKE, complain, download_bar, echo_json, in_words
from hookviz.errors import HookVizError
from hookviz.models import catalog
from hookviz.models.bundled import BUNDLED
from hookviz.models.catalog import find_source
from hookviz.models.fetching import downloads
from hookviz.models.fetching.downloads import matches_name
from hookviz.types import ModelSpec
from hookviz.wording import byte_size

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
    chosen = _chosen(name, family, all_models)
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


def _fetched(spec: ModelSpec, mirror: str) -> Outcome:
    outcome = verified(spec)
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


def _chosen(names: tuple[str, ...], families: tuple[str, ...], all_models: bool) -> list[ModelSpec]:
    """Return the models asked for, once each; names are looked up before any download.

    Raises:
        UnknownNameError: there is no such model or family; the error names the nearest.
    """
    specs = [catalog.find_model(name) for name in names]
    specs += of_families(families) if families else ()
    specs += catalog.described_models() if all_models else ()
    return list({spec.name: spec for spec in specs}.values())
