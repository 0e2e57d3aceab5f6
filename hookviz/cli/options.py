"""Options that subcommands share: load their models, find their images, name their output files."""

import os
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import nullcontext, redirect_stdout
from functools import reduce, wraps
from io import StringIO
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import click

from hookviz.capturing.list_layers import KINDS, list_layers
from hookviz.cli.terminal import MISTAKE, download_bar, echo_json, in_words, print_error
from hookviz.engines import engine
from hookviz.errors import EngineError, HookVizError, ImageError, SettingError, UnknownNameError
from hookviz.images import reading
from hookviz.images.files import ImageFile, ImageUrl
from hookviz.machine.memory import keep_freed_memory, own_memory
from hookviz.models import bundled, catalog, hugging_face, user_models
from hookviz.models.loading import load_model
from hookviz.models.user_models import is_program_file
from hookviz.paths import path_of
from hookviz.types import Model

Command = Callable[..., Any]


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return a decorator that gives a command these options, in this order."""
    return lambda command: reduce(lambda made, option: option(made), reversed(options), command)


model_options = _options(
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
"""Options that `load` takes."""

other_model_options = _options(
    click.option("--other-model", help="The other model; --model with other weights if left out."),
    click.option(
        "--other-weights",
        help="Of the other model: pretrained, random, or the path of a checkpoint.",
    ),
)
"""Options that `load_both` takes beside those of `load`."""

input_options = _options(
    click.option("--size", type=click.IntRange(1), help="Side of the input in pixels."),
    click.option("--whole", is_flag=True, help="Take in the whole image, not its centre crop."),
)
"""Options of how an image becomes an input."""

engine_options = _options(
    click.option(
        "--engine",
        default=engine.LOCAL,
        show_default=True,
        help="local, ray for processes of this machine, or ray://HOST:PORT for a cluster.",
    ),
    click.option("--workers", type=click.IntRange(1), help="Of Ray; one a processor by default."),
)
"""Options that `engine_of` takes."""


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


Picture = TypeVar("Picture", bound=ImageFile)
Row = dict[str, Any]
"""What a command says about one image: at least ``"image"``, and ``"error"`` where it failed."""


def destinations(
    out: str, pictures: Sequence[ImageFile], suffixes: Sequence[str]
) -> dict[ImageFile, Path]:
    """Return the path of each image's result; the folders are made.

    `out` is a file where it ends in one of `suffixes`, and then it takes one image, or has
    ``{name}`` in it for an image's name without its ending. Otherwise it is a folder, in which
    results get the images' names and the first of `suffixes`. Images of one name are numbered.

    Raises:
        SettingError: `out` is empty, can't take that many images, ends in something else, or is an
            image that would be read.
        OSError: the folder can't be made.
    """
    if not out.strip():
        raise SettingError(f"-o {out!r} names no file; give one, or a folder such as './'.")
    out = os.path.expanduser(out)  # noqa: PTH111 - a Path would lose the "/" at the end
    name = Path(out)
    known = name.suffix.casefold() in suffixes
    if "{name}" in out:
        pattern = out if known else f"{out}{suffixes[0]}"
    elif name.is_dir() or out.endswith(("/", os.sep)) or not name.suffix:
        pattern = str(name / "{name}") + suffixes[0]
    elif known:
        pattern = out
    else:
        raise SettingError(
            f"{out!r} ends in none of {', '.join(suffixes)}; for a folder of that name, "
            f"write {out + '/'!r}."
        )
    if "{name}" not in pattern and len(pictures) > 1:
        raise SettingError(
            f"{len(pictures)} images don't go into one file {out!r}; give a folder, "
            f"or a name such as {str(name.with_stem('{name}'))!r}."
        )
    sources = {picture.resolve() for picture in pictures if isinstance(picture, Path)}
    taken: dict[str, int] = {}
    outputs: dict[ImageFile, Path] = {}
    for picture in pictures:
        output = _free_path(pattern, picture.stem, taken)
        if output.resolve() in sources:
            raise SettingError(f"{str(output)!r} is an image to be read; give another name for -o.")
        output.parent.mkdir(parents=True, exist_ok=True)
        outputs[picture] = output
    return outputs


def file_ending_in(out: str, suffixes: Collection[str]) -> Path:
    """Return the file that the option ``-o`` names.

    Raises:
        SettingError: it ends in none of the suffixes.
    """
    path = path_of(out)
    if path.suffix.casefold() not in suffixes:
        raise SettingError(f"-o {out!r} ends in none of {', '.join(suffixes)}.")
    return path


def keep_existing(pictures: Sequence[ImageFile]) -> tuple[list[ImageFile], list[Row]]:
    """Return the files that are there, and a row for each that is not, which is reported.

    Of a URL that is known when it is read.

    A model may have to be downloaded first; a typing mistake is told before that.
    """
    existing_files: list[ImageFile] = []
    missing: list[Row] = []
    for picture in pictures:
        if isinstance(picture, ImageUrl) or picture.is_file():
            existing_files.append(picture)
        else:
            try:
                reading.read(picture)
            except ImageError as error:
                missing.append(failed_row(picture, error))
    return existing_files, missing


def each(pictures: Sequence[Picture], work: Callable[[Picture], Row]) -> list[Row]:
    """Call `work` on each image and return the rows; one that fails is reported.

    A bar on standard error shows how far it is, where that is a terminal and the images are many.

    Raises:
        UnknownNameError, SettingError, EngineError: the same would happen with every image.
    """
    rows: list[Row] = []
    shown = len(pictures) > 1 and sys.stderr.isatty()
    with click.progressbar(
        pictures,
        label="Images",
        file=sys.stderr,
        hidden=not shown,
        show_pos=True,
        item_show_func=lambda picture: picture.name if picture else "",
    ) as bar:
        for picture in bar:
            try:
                rows.append({"image": str(picture), **work(picture)})
            except (UnknownNameError, SettingError, EngineError):
                raise
            except (HookVizError, OSError) as error:
                if shown:
                    click.echo("\r\x1b[K", nl=False, err=True)  # the message takes the bar's line
                rows.append(failed_row(picture, error))
    return rows


def failed_row(picture: object, error: Exception) -> Row:
    """Report an image that failed on standard error, and return its row."""
    print_error(f"{picture}: {in_words(error)}")
    return {"image": str(picture), "error": in_words(error)}


def finish_rows(rows: Sequence[Row], echo: Callable[[Row], None], *, as_json: bool) -> None:
    """Print the rows as JSON, or those that worked by `echo`; end in status 2 if one failed."""
    if as_json:
        echo_json(rows)
    else:
        for row in rows:
            if "error" not in row:
                echo(row)
    if any("error" in row for row in rows):
        click.get_current_context().exit(MISTAKE)


def _free_path(pattern: str, stem: str, taken: dict[str, int]) -> Path:
    """Fill the image's name into `pattern`, with a number where that is taken already.

    `taken` has the last number that each was given, so that many of one name take no longer.
    """
    plain = pattern.replace("{name}", stem).casefold()  # some file systems know no upper case
    for number in count(taken.get(plain, 0) + 1):
        path = pattern.replace("{name}", stem if number == 1 else f"{stem}-{number}")
        key = path.casefold()
        if number == 1 or key not in taken:
            taken[plain] = number
            taken.setdefault(key, 1)
            return Path(path)
    raise AssertionError("unreachable")
