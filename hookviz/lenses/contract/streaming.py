"""Look at any number of images through a lens, one after another or to files on a disk."""

import json
import os
from collections.abc import Callable, Generator, Mapping, Sized
from itertools import chain
from pathlib import Path
from typing import Any, overload
from urllib.parse import quote

from torch import nn

from hookviz.capturing.batch_images import Images
from hookviz.capturing.image_names import name_images
from hookviz.errors import HookVizError, SettingError, UnknownNameError, shorten
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import say
from hookviz.lenses.contract.result import NUMBERS, LensResult, save_result
from hookviz.lenses.contract.running import check_names, find_lens, run_lens
from hookviz.models.wrapping import as_model
from hookviz.paths import path_of, write_whole
from hookviz.types import Model, Progress, ignore

_ABOUT = "hookviz-lens.json"


@overload
def stream_lens(
    slug: str,
    model: Model | nn.Module,
    images: Images,
    *,
    to: None = None,
    size: int | None = None,
    whole: bool = False,
    progress: Progress = ignore,
    **parameters: Any,
) -> Generator[tuple[str, LensResult | HookVizError], None, None]: ...


@overload
def stream_lens(
    slug: str,
    model: Model | nn.Module,
    images: Images,
    *,
    to: str | os.PathLike[str],
    size: int | None = None,
    whole: bool = False,
    progress: Progress = ignore,
    **parameters: Any,
) -> dict[str, Path | HookVizError]: ...


def stream_lens(
    slug: str,
    model: Model | nn.Module,
    images: Images,
    *,
    to: str | os.PathLike[str] | None = None,
    size: int | None = None,
    whole: bool = False,
    progress: Progress = ignore,
    **parameters: Any,
) -> Generator[tuple[str, LensResult | HookVizError], None, None] | dict[str, Path | HookVizError]:
    """Look at each of several images through a lens; one result is in memory at a time.

    Without `to` you get an iterator of pairs: each image's name with its `LensResult`, or with a
    `HookVizError` where the image can't be read or the lens can't work on it.

    With `to` each result goes into a folder of its own in that folder, its panels as files and its
    numbers as ``values.npz``, and you get these folders by the images' names, or why there is none.
    What is there already is not computed again: a run that was stopped goes on.

    Args:
        slug: one of `list_lenses`.
        model: from `load_model` or `wrap`, or a module of one's own.
        images: what `capture` takes for several images, such as a folder or a loader; as a mapping
            where they have names.
        to: a folder for the results, which is made.
        size: side of the inputs in pixels, in place of the model's own.
        whole: take in the whole images instead of their centre crops.
        progress: called with the share done where the number of images is known; what it raises
            ends the run.
        parameters: of `run_lens`; layers, classes and such are chosen for each image by itself.

    Raises:
        UnknownNameError: there is no such lens.
        SettingError: a parameter is not one of the lens's, or has a value that means nothing; or
            the folder holds results of another run.

    >>> model = hookviz.load_model("shapesnet")
    >>> paths = ["assets/samples/star.jpg", "assets/samples/heart.jpg"]
    >>> for name, result in hookviz.stream_lens("grad-cam", model, paths, layer="stage2"):
    ...     print(name, result.values["map"].shape)
    star.jpg (16, 16)
    heart.jpg (16, 16)
    """
    check_names(find_lens(slug), parameters)
    model = as_model(model)
    asked = {"size": size, "whole": whole, **parameters}
    if to is None:
        return _results(slug, model, images, asked, progress)
    folder = path_of(to)
    _begin(folder, slug, model, asked)

    def is_there(name: str) -> bool:
        return (folder / _as_folder(name) / NUMBERS).exists()

    written: dict[str, Path | HookVizError] = {}
    for name, result in _results(slug, model, images, asked, progress, is_there=is_there):
        written[name] = folder / _as_folder(name)
        if isinstance(result, HookVizError):
            written[name] = result
        elif not is_there(name):
            save_result(result, folder / _as_folder(name), model)
    return written


def _results(
    slug: str,
    model: Model,
    images: Images,
    asked: Mapping[str, Any],
    progress: Progress,
    *,
    is_there: Callable[[str], bool] = lambda _name: False,
) -> Generator[tuple[str, Any], None, None]:
    """Yield each image's name with its result, or why there is none; None for what is there."""
    is_counted = hasattr(images, "__getitem__") and not isinstance(images, str | bytes)
    total = len(images) if is_counted and isinstance(images, Sized) else 0
    reporter = ProgressReporter(progress if total else ignore, total or 1)
    for name, image in name_images(model, images):
        try:
            within = reporter.within if total else ignore
            found = (
                None if is_there(name) else run_lens(slug, model, image, progress=within, **asked)
            )
        except (SettingError, UnknownNameError):  # of the call: every image would fail alike
            raise
        except HookVizError as error:
            if reporter.was_ended_by(error):
                raise
            yield name, error
        else:
            yield name, found
        if total:
            reporter.step()


def _as_folder(name: str) -> str:
    """Return a folder's name for an image's, which may have a ``/`` in it or be ``..``."""
    plain = quote(name, safe=" ()+,;=@")
    return plain if plain.strip(". ") else plain.replace(".", "%2E").replace(" ", "%20")


def _begin(folder: Path, slug: str, model: Model, settings: Mapping[str, Any]) -> None:
    """Make the folder, or go on with the one that the same call has begun.

    Raises:
        SettingError: it holds something else.
    """
    about = {"lens": slug, "model": model.name, "weights": model.weights, "digest": model.digest}
    about |= {name: shorten(repr(value), 1000) for name, value in sorted(settings.items())}
    file = folder / _ABOUT
    found = json.loads(file.read_text("utf-8")) if file.exists() else None
    if found is None and folder.exists() and any(folder.iterdir()):
        raise SettingError(
            say("{folder!r} holds other files; give an empty folder.", folder=str(folder))
        )
    for name in dict.fromkeys(chain(about, found or ())):
        if found is not None and found.get(name) != about.get(name):
            raise SettingError(
                say(
                    "{folder!r} holds results with {name}={earlier}, not {wanted}; give another "
                    "folder.",
                    folder=str(folder),
                    name=name,
                    earlier=found.get(name),
                    wanted=about.get(name),
                )
            )
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(file, json.dumps(about, indent=1).encode())
