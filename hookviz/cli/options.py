"""Share options among subcommands, and load the model that they ask for."""

import os
import sys
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from functools import reduce, wraps
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from hookviz.capturing.list_layers import KINDS, list_layers
from hookviz.cli.terminal import download_bar
from hookviz.engines import engine
from hookviz.errors import SettingError
from hookviz.machine.memory import keep_freed_memory, own_memory
from hookviz.models import bundled, catalog, hugging_face, user_models
from hookviz.models.loading import load_model
from hookviz.models.user_models import is_program_file
from hookviz.paths import path_of
from hookviz.types import Model

Command = Callable[..., Any]

_MODEL_OPTIONS = (
    click.option(
        "--model",
        # not the page's: people's scripts name its layers without naming the model
        default=bundled.SHAPESNET.name,
        show_default=True,
        help="A name that `hookviz models` lists, hf:OWNER/NAME, package.module:factory, "
        "or a .pt2 file.",
    ),
    click.option(
        "--weights",
        default="pretrained",
        show_default=True,
        help="pretrained, random, or the path of a checkpoint.",
    ),
    click.option("--labels", metavar="FILE", help="A label per class: text lines or JSON."),
    click.option(
        "--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1 or mps."
    ),
    click.option("--half", is_flag=True, help="Compute in half precision, on GPUs."),
)

_OTHER_MODEL_OPTIONS = (
    click.option("--other-model", help="The other model; --model with other weights if left out."),
    click.option(
        "--other-weights",
        help="Of the other model: pretrained, random, or the path of a checkpoint.",
    ),
)

_INPUT_OPTIONS = (
    click.option("--size", type=click.IntRange(1), help="Side of the input in pixels."),
    click.option("--whole", is_flag=True, help="Take in the whole image, not its centre crop."),
)

_ENGINE_OPTIONS = (
    click.option(
        "--engine",
        default=engine.LOCAL,
        show_default=True,
        help="local, ray for processes of this machine, or ray://HOST:PORT for a cluster.",
    ),
    click.option("--workers", type=click.IntRange(1), help="Of Ray; one a processor by default."),
)


def engine_options(command: Command) -> Command:
    """Decorate `command` with the options that `engine_of` takes."""
    return _with(_ENGINE_OPTIONS, command)


def model_options(command: Command) -> Command:
    """Decorate `command` with the options that `load` takes."""
    return _with(_MODEL_OPTIONS, command)


def out_option(suffix: str, text: str, *, required: bool = False) -> Callable[[Command], Any]:
    """Decorate a command with ``-o``, of which ``-`` stands for standard output.

    The command gets a path in its place, and what it prints goes to standard error.

    Args:
        suffix: of the kind of file that standard output gets.
        text: what the help says of the option.
        required: whether it can't be left out.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def run(*, out: str | None, **options: Any) -> Any:
            if out != "-":
                return command(out=out, **options)
            with TemporaryDirectory() as folder:
                file, said = Path(folder, f"stdout{suffix}"), StringIO()
                try:
                    with redirect_stdout(said):
                        command(out=str(file), **options)
                except SettingError as error:
                    raise SettingError(str(error).replace(f"{folder}{os.sep}", "")) from error
                finally:  # where some images failed, the command ends by an exception
                    click.echo(said.getvalue().replace(f"{folder}{os.sep}", ""), err=True, nl=False)
                    if file.is_file():
                        click.echo(file.read_bytes(), nl=False)
            return None

        words = f"{text} - is standard output, as {suffix}."
        return click.option("-o", "--out", required=required, help=words)(run)

    return decorate


def other_model_options(command: Command) -> Command:
    """Decorate `command` with the options that `load_both` takes beside those of `load`."""
    return _with(_OTHER_MODEL_OPTIONS, command)


def input_options(command: Command) -> Command:
    """Decorate `command` with the options of how an image becomes an input."""
    return _with(_INPUT_OPTIONS, command)


def load(
    name: str,
    weights: str = "pretrained",
    *,
    labels: str | None = None,
    device: str = "auto",
    half: bool = False,
) -> Model:
    """Load the model asked for; weights that are not on this machine are downloaded under a bar.

    Memory is kept between passes from here on: the process does nothing but this command.

    Raises:
        HookVizError: as `load_model` does, and `user_models.build` for ``package.module:factory``.
    """
    keep_freed_memory(own_memory().reserve)
    own_labels = None if labels is None else path_of(labels)
    if hugging_face.owns(name):
        return load_model(name, weights, device=device, half=half, labels=own_labels)
    if (is_program_file(name) or ":" in name) and name not in {
        spec.name for spec in catalog.list_models()
    }:
        return _from_factory(name, weights=weights, labels=labels, device=device, half=half)
    spec = catalog.find_model(name)
    progress = download_bar(spec) if weights == "pretrained" and not spec.on_disk else nullcontext()
    with progress as report:
        model = load_model(
            name,
            weights,
            device=device,
            half=half,
            labels=own_labels,
            progress=report,
        )
    if model.note:
        click.echo(model.note, err=True)
    return model


def load_both(
    name: str,
    weights: str,
    other_name: str | None,
    other_weights: str | None,
    *,
    labels: str | None = None,
    **loading: Any,
) -> tuple[Model, Model]:
    """Load the model asked for and the other one, which is the same unless it is named.

    Raises:
        HookVizError: as `load` does.
    """
    first = load(name, weights, labels=labels, **loading)
    if other_name is None and other_weights is None:
        return first, first
    if other_name is None:
        return first, load(name, other_weights or weights, labels=labels, **loading)
    return first, load(other_name, other_weights or "pretrained", **loading)


def layer_names(model: Model, text: str | None) -> list[str] | None:
    """Return the layers of a list with commas, or all of a kind; None for the default ones."""
    if text is None:
        return None
    if text.strip() in KINDS:
        return [layer.name for layer in list_layers(model, kind=text.strip())]
    return [name.strip() for name in text.split(",") if name.strip()] or None


def _from_factory(path: str, *, weights: str, labels: str | None, device: str, half: bool) -> Model:
    """Build the model of ``package.module:factory``, found from the current directory."""
    has_options = labels is not None or half or device not in ("auto", "cpu")
    if has_options or weights not in ("pretrained", "random"):
        raise SettingError(
            f"{path} makes its model whole: leave out --weights, --labels, --device and --half, "
            "and let the factory choose them, for example with hookviz.wrap(…, categories=…)."
        )
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return user_models.build(path)


def _with(options: tuple[Callable[[Command], Command], ...], command: Command) -> Command:
    return reduce(lambda decorated, option: option(decorated), reversed(options), command)
