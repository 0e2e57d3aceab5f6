"""``hookviz lens``: look at an image through a lens, as text and as files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np

from hookviz.capturing.batch_images import is_batch
from hookviz.capturing.inputs import prepare_input
from hookviz.cli.options import input_options, load, model_options
from hookviz.cli.terminal import MISTAKE, echo_json, print_error, progress_bar
from hookviz.codegen.facts import lens_facts_of
from hookviz.codegen.lens_script import lens_script
from hookviz.errors import HookVizError, SettingError
from hookviz.images.files import ImageFile, expand
from hookviz.lenses.contract.lens import Lens, LensResult, save_result
from hookviz.lenses.contract.many_images import stream_lens
from hookviz.lenses.contract.parameters import OneOf
from hookviz.lenses.contract.regions import parts_of_answer
from hookviz.lenses.contract.running import find_lens, list_lenses, run_lens
from hookviz.paths import path_of
from hookviz.types import Model
from hookviz.wording import text_table

_ASKED = f"{__name__}.asked"


class _WithChoices(click.Command):
    """``hookviz lens grad-cam --help`` says what can be set of that lens, too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_ASKED] = [each for each in list_lenses() if each.slug in args]
        return super().parse_args(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        """Return the options, and the parameters of the lens that was named."""
        return "\n\n".join([super().get_help(ctx), *map(_about, ctx.meta[_ASKED][:1])])


@click.command(cls=_WithChoices)
@click.argument("name", required=False)
@click.argument("images", metavar="[IMAGE]...", nargs=-1)
@click.option(
    "--set",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the lens; `hookviz lens NAME` lists them.",
)
@click.option("-o", "--out", metavar="FOLDER", help="Where pictures, tables and numbers go.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
@click.option("--code", is_flag=True, help="Print a script that computes them without HookViz.")
@model_options
@input_options
def lens(
    *,
    name: str | None,
    images: tuple[str, ...],
    arguments: tuple[str, ...],
    out: str | None,
    as_json: bool,
    code: bool,
    model: str,
    size: int | None,
    whole: bool,
    **loading: Any,
) -> None:
    """Look at an IMAGE through a lens; without a name, list the lenses.

    Tables and sentences are printed; -o writes every panel and the numbers (values.npz). With
    --code a script in plain PyTorch is printed in their place, which computes the same numbers.

    Of several images, or a folder of them, -o gets a folder for each. What is there already is not
    computed again, so that a run that was stopped goes on.
    """
    if name is None:
        _list(as_json=as_json)
        return
    chosen = find_lens(name)
    parameters: dict[str, Any] = dict(map(_parameter, arguments))
    if not images:
        if as_json:
            echo_json(_as_data(chosen))
        else:
            click.echo(_about(chosen))
        return
    _check_folder(out)
    loaded = load(model, **loading)
    pictures = expand(images, inside=True) if loaded.read is None else tuple(map(path_of, images))
    if len(pictures) > 1 or is_batch(loaded, images[0]):
        if code or as_json or out is None:
            raise SettingError(
                f"{', '.join(images)}: several images go into a folder, as with -o {name}; --json "
                "and --code are for one image."
            )
        with progress_bar(chosen.title) as report:
            options = {"size": size, "whole": whole, "progress": report, **parameters}
            written = stream_lens(name, loaded, pictures, to=out, **options)
        _tell(written)
        return
    (image,) = pictures
    with progress_bar(chosen.title) as report:
        result = run_lens(
            name, loaded, image, size=size, whole=whole, progress=report, **parameters
        )
    if out is not None:
        files = save_result(result, path_of(out), loaded)
    if code:
        click.echo(_script(result, loaded, image, size=size, whole=whole), nl=False)
        return
    _echo(result, as_json=as_json)
    if out is not None and not as_json:
        click.echo("\n".join(map(str, files)))


def _check_folder(out: str | None) -> None:
    if out is not None and not out.strip():
        raise SettingError(f"-o {out!r} names no folder; give one, such as '.'.")
    if out == "-":
        raise SettingError(
            "-o - would be standard output, and a lens writes several files: give a folder, such "
            "as '.'. --json prints the numbers."
        )


def _list(*, as_json: bool) -> None:
    """Print what lenses there are."""
    if as_json:
        echo_json([_as_data(known) for known in list_lenses()])
        return
    rows = [(known.slug, known.question, known.sentence) for known in list_lenses()]
    click.echo(text_table(("lens", "question", "what it shows"), rows))


def _tell(written: Mapping[str, Path | HookVizError]) -> None:
    """Print where each image's result is, and complain of those that have none."""
    for name, found in written.items():
        if isinstance(found, HookVizError):
            print_error(f"{name}: {found}")
        else:
            click.echo(found)
    if any(isinstance(found, HookVizError) for found in written.values()):
        click.get_current_context().exit(MISTAKE)


def _echo(result: LensResult, *, as_json: bool) -> None:
    """Print a lens's result: its numbers as JSON, or its panels as text."""
    if as_json:
        values = {key: np.asarray(value).tolist() for key, value in result.values.items()}
        echo_json({"lens": result.lens, "chosen": dict(result.chosen), "values": values})
        return
    for panel in result.panels:
        click.echo(panel.printed())


def _script(
    result: LensResult, model: Model, image: ImageFile, *, size: int | None, whole: bool
) -> str:
    """Write what the lens did as a script without HookViz."""
    model_input = prepare_input(model, image, size=size, whole=whole)
    facts = lens_facts_of(
        model,
        image.name,
        result,
        shape=tuple(model_input.tensor.shape[1:]),
        size=size,
        whole=whole,
    )
    return lens_script(facts, find_lens(result.lens).script)


def _parameter(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise SettingError(f"--set {text!r} is not NAME=VALUE, such as --set layer=conv1.")
    return name, value


def _about(lens: Lens) -> str:
    """Describe a lens and its parameters."""
    lines = [f"{lens.question} {lens.title}: {lens.sentence}"]
    if lens.parameters:
        rows = [
            (
                each.name,
                each.label,
                ", ".join(each.choices) if isinstance(each, OneOf) else "",
                each.help,
            )
            for each in lens.parameters
        ]
        rows += [(name, words, "", "") for name, words in parts_of_answer(lens).items()]
        lines += ["", text_table(("--set", "what it is", "one of", "more"), rows)]
    return "\n".join(lines)


def _as_data(lens: Lens) -> dict[str, Any]:
    """Describe a lens and its parameters for a program."""
    return {
        "lens": lens.slug,
        "title": lens.title,
        "question": lens.question,
        "sentence": lens.sentence,
        "parameters": {
            **{parameter.name: parameter.label for parameter in lens.parameters},
            **parts_of_answer(lens),
        },
    }
