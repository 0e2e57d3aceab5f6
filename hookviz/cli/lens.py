"""``hookviz lens``: look at an image through a lens, as text and as files."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
from PIL import Image

from hookviz.cli.options import input_options, load, model_options
from hookviz.cli.tables import echo_json, table
from hookviz.drawing.charts import chart_png
from hookviz.drawing.panels import ChartPanel, GridPanel, ImagePanel, Panel, TablePanel, TextPanel
from hookviz.errors import SettingError
from hookviz.lenses.contract.lens import Lens
from hookviz.lenses.contract.result import LensResult
from hookviz.lenses.contract.running import find_lens, list_lenses, run_lens
from hookviz.paths import path_of
from hookviz.types import Progress


@click.command()
@click.argument("name", required=False)
@click.argument("image", required=False)
@click.option(
    "--set",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the lens; `hookviz lens NAME` lists them.",
)
@click.option("-o", "--out", metavar="FOLDER", help="Where pictures, tables and numbers go.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
@model_options
@input_options
def lens(
    *,
    name: str | None,
    image: str | None,
    arguments: tuple[str, ...],
    out: str | None,
    as_json: bool,
    model: str,
    size: int | None,
    whole: bool,
    **loading: Any,
) -> None:
    """Look at an IMAGE through a lens; without a name, list the lenses.

    Tables and sentences are printed; -o writes every panel and the numbers (values.npz).
    """
    if name is None:
        if as_json:
            echo_json([_as_data(known) for known in list_lenses()])
            return
        rows = [(known.slug, known.question, known.sentence) for known in list_lenses()]
        click.echo(table(("lens", "question", "what it shows"), rows))
        return
    chosen = find_lens(name)
    parameters: dict[str, Any] = dict(map(_parameter, arguments))
    if image is None:
        if as_json:
            echo_json(_as_data(chosen))
        else:
            click.echo(_about(chosen))
        return
    if out is not None and not out.strip():
        raise SettingError(f"-o {out!r} names no folder; give one, such as '.'.")
    loaded = load(model, **loading)
    with _bar(chosen) as report:
        result = run_lens(
            name, loaded, image, size=size, whole=whole, progress=report, **parameters
        )
    if out is not None:
        written = _write(result, path_of(out))
    if as_json:
        values = {key: np.asarray(value).tolist() for key, value in result.values.items()}
        echo_json({"lens": result.lens, "chosen": dict(result.chosen), "values": values})
        return
    for panel in result.panels:
        _print(panel)
    if out is not None:
        click.echo("\n".join(map(str, written)))


def _parameter(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise SettingError(f"--set {text!r} is not NAME=VALUE, such as --set layer=conv1.")
    return name, value


def _about(lens: Lens) -> str:
    """What a lens does and takes."""
    lines = [f"{lens.question} {lens.title}: {lens.sentence}"]
    if lens.parameters:
        rows = [(parameter.name, parameter.label, parameter.help) for parameter in lens.parameters]
        lines += ["", table(("--set", "what it is", "more"), rows)]
    return "\n".join(lines)


def _as_data(lens: Lens) -> dict[str, Any]:
    """What a lens does and takes, for a program."""
    return {
        "lens": lens.slug,
        "title": lens.title,
        "question": lens.question,
        "sentence": lens.sentence,
        "parameters": {parameter.name: parameter.label for parameter in lens.parameters},
    }


@contextmanager
def _bar(lens: Lens) -> Iterator[Progress]:
    """What to tell how far the lens is, while a bar shows it with the time that is left.

    The bar is on standard error, and only where that is a terminal.
    """
    with click.progressbar(
        length=1000, label=lens.title, file=sys.stderr, hidden=not sys.stderr.isatty()
    ) as bar:
        yield lambda share: bar.update(int(1000 * share) - bar.pos)


def _print(panel: Panel) -> None:
    if isinstance(panel, TextPanel):
        click.echo(panel.text)
    elif isinstance(panel, TablePanel):
        rows = [tuple(map(_text, row)) for row in panel.rows]
        click.echo(f"\n{panel.title}\n" + table(panel.columns, rows))
    else:
        click.echo(f"[{panel.heading if isinstance(panel, GridPanel) else panel.title}]")


def _text(cell: str | float) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def _write(result: LensResult, folder: Path) -> list[Path]:
    """Every panel as a file, in order, and the numbers; what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for number, panel in enumerate(result.panels):
        if isinstance(panel, TextPanel):
            continue
        kind = "csv" if isinstance(panel, TablePanel) else "png"
        path = folder / f"{number + 1}-{result.lens}.{kind}"
        if isinstance(panel, GridPanel):
            path.write_bytes(panel.grid.png())
        elif isinstance(panel, ImagePanel):
            Image.fromarray(panel.picture).save(path)
        elif isinstance(panel, ChartPanel):
            path.write_bytes(chart_png(panel))
        else:
            path.write_text(panel.csv(), encoding="utf-8")
        written.append(path)
    numbers = folder / "values.npz"
    numbers.write_bytes(result.npz())
    return [*written, numbers]
