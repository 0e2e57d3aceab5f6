"""Write the files of an atlas as docs/atlas.md describes them, and read them back.

A folder may come from anybody. Nothing in it is executed, no name in it is opened, and every number
is checked against the others before it is used as an index. Patches stay on the disk until they are
shown.

`known_atlases` are those that ship with HookViz, and those it was started with.
"""

import json
import logging
import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

import hookviz
from hookviz import shallow_json
from hookviz.atlas.atlas import Atlas, AtlasImage
from hookviz.atlas.part_folder import PATCHES
from hookviz.atlas.patches import CutPatches, PatchFields
from hookviz.atlas.plan import Plan
from hookviz.atlas.tally import BINS, SMALLEST, Tally
from hookviz.errors import HookVizError, nearest_names, shorten
from hookviz.machine.memory import MEGABYTE
from hookviz.paths import fault_of, path_of
from hookviz.settings import ASSETS, settings
from hookviz.types import Model

_MOST_JSON = 512 * MEGABYTE
_LONGEST = 4096  # letters of a name or a path
_WIDEST = 128  # exponent of the width of a bin; no float32 needs a wider one
_MOST = 1 << 31  # of anything that is counted
_ANEW = "Make it anew: hookviz atlas photos/ -o photos.atlas."

FOLDER = ASSETS / "atlases"
"""Folder of the atlases in the box and their drawings; their photographs are the samples."""

PHOTOGRAPH = "photograph"
"""Class of the atlases in the box that says how a picture was made, and little of what it shows."""

_log = logging.getLogger("hookviz")


class _DamagedError(Exception):
    """Says what is wrong with the content of an atlas."""


def load_atlas(path: str | os.PathLike[str]) -> Atlas:
    """Read the atlas in a folder that `make_atlas` or ``hookviz atlas`` made.

    Nothing in it is executed, and no image that it names is opened.

    Args:
        path: ``NAME.atlas``.

    Raises:
        HookVizError: there is no such folder, it is no atlas or one of a newer HookViz, or it is
            not finished, truncated or damaged.

    >>> atlas = hookviz.load_atlas("assets/atlases/shapesnet.atlas")
    >>> best = atlas.top_activations("stage3.second.conv", 40)[0]
    >>> best.image.category, best.cell, best.patch.shape  # (h, w, 3)
    ('ring', (5, 5), (32, 32, 3))
    """
    folder = path_of(path)
    name = repr(shorten(folder.name))
    _check_files(folder, name)
    try:
        about = _about(folder / ABOUT, name)
        numbers = _numbers(folder / NUMBERS)
        patch_bytes = (folder / PATCHES).stat().st_size
        return _atlas(folder, about, numbers, folder / PATCHES, patch_bytes)
    except _DamagedError as error:
        raise HookVizError(f"{name} is damaged: {shorten(str(error), 200)}. {_ANEW}") from error
    except OSError as error:
        raise HookVizError(f"{name} can't be read: {error.strerror or error}.") from error


def _check_files(folder: Path, name: str) -> None:
    """Check that the files of an atlas are there."""
    if not folder.is_dir():
        known = folder.parent.glob("*.atlas") if folder.parent.is_dir() else ()
        near = nearest_names(folder.name, [path.name for path in known])
        part = folder.with_name(f"{folder.name}.part")
        if part.is_dir():
            raise HookVizError(
                f"The atlas {name} is not finished: {part.name!r} is there. The command that began "
                "it goes on where it was."
            )
        what = "no folder, and so no atlas" if folder.exists() else "not there"
        hint = f"Did you mean {near[0]!r}?" if near else _ANEW
        raise HookVizError(f"{name} is {what}. {hint}")
    for file in (ABOUT, NUMBERS, PATCHES):
        path = folder / file
        if not path.is_file():
            what = fault_of(path) or "missing"
            raise HookVizError(f"{name} is no whole atlas: its {file} is {what}. {_ANEW}")


def _about(path: Path, name: str) -> dict[str, Any]:
    if path.stat().st_size > _MOST_JSON:
        raise _DamagedError(f"{ABOUT} is larger than {_MOST_JSON // MEGABYTE} MB")
    try:
        about = shallow_json.parse(path.read_bytes())
    except ValueError as error:
        raise _DamagedError(f"{ABOUT} is no JSON, or not all of it") from error
    form = about.get("form") if isinstance(about, dict) else None
    if not isinstance(form, int) or isinstance(form, bool) or form < 1:
        raise HookVizError(f"{name} is no atlas: {ABOUT} says no form. {_ANEW}")
    if form > FORM:
        made_by = shorten(str(about.get("hookviz", "")), 20) or "a newer one"
        raise HookVizError(
            f"{name} was made by HookViz {made_by}, and this is HookViz {hookviz.__version__}, "
            "which can't read it yet. Use that one, or make the atlas anew with this one."
        )
    return dict(about)


def _numbers(path: Path) -> dict[str, NDArray[Any]]:
    try:
        return dict(load(path.read_bytes()))
    except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise _DamagedError(f"{NUMBERS} is truncated or changed ({error})") from error


def atlas_in_memory(
    name: str, about: Mapping[str, Any], numbers: Mapping[str, NDArray[Any]], patches: bytes
) -> Atlas:
    """Build an atlas of what its three files would hold, under a name that is never opened.

    Raises:
        HookVizError: the numbers don't fit together.
    """
    try:
        return _atlas(Path(name), about, dict(numbers), patches, len(patches))
    except _DamagedError as error:
        raise HookVizError(f"{name!r} is no atlas: {shorten(str(error), 200)}.") from error


def _atlas(
    path: Path,
    about: Mapping[str, Any],
    numbers: dict[str, NDArray[Any]],
    patches: Path | bytes,
    patch_bytes: int,
) -> Atlas:
    """Build the atlas of what was read, its patches `patch_bytes` long."""
    listed = _list(about, "layers")
    layers = _layers(listed)
    images = tuple(_image(each) for each in _list(about, "images"))
    classes = {_text(each, "name"): _count(each, "images") for each in _list(about, "classes")}
    top = _count(about, "top")
    patch = _count(about, "patch")
    size = about.get("size")
    if not 1 <= top <= 1000 or not 1 <= patch <= 4096 or not (size is None or _is_count(size)):
        raise _DamagedError("its options mean nothing")
    counts = about.get("counts")
    if not isinstance(counts, dict):
        raise _DamagedError("counts are missing")
    _check(numbers, sum(layers.values()), top, len(classes), images)
    _check_starts(numbers["patch_start"], patch_bytes)
    for array in numbers.values():
        array.setflags(write=False)
    return Atlas(
        path=path,
        model=_text(about, "model"),
        title=_text(about, "title"),
        weights=_text(about, "weights"),
        digest=_text(about, "digest"),
        top=top,
        layers=MappingProxyType(layers),
        of_cells=frozenset(each["address"] for each in listed if each.get("patches") == CELLS),
        images=images,
        classes=MappingProxyType(classes),
        counts=MappingProxyType(
            {name: _count(counts, name) for name in ("images", "tallied", "repeated", "left_out")}
        ),
        left_out=MappingProxyType(
            {_text(each, "name"): _text(each, "reason") for each in _list(about, "left_out")}
        ),
        options=MappingProxyType(
            {
                "preprocess": _text(about, "preprocess"),
                "size": size,
                "batch": _count(about, "batch"),
                "dtype": _text(about, "dtype"),
                "patch": patch,
                "names": _text(about, "names"),
            }
        ),
        _numbers=MappingProxyType(numbers),
        _patches=patches,
    )


def _layers(listed: list[Any]) -> dict[str, int]:
    layers: dict[str, int] = {}
    first = 0
    for each in listed:
        address, channels = _text(each, "address"), _count(each, "channels")
        if address in layers or not channels or _count(each, "first") != first:
            raise _DamagedError(f"the channels of {address!r} are not where they should be")
        layers[address] = channels
        first += channels
    return layers


def _image(entry: Any) -> AtlasImage:
    return AtlasImage(
        name=_text(entry, "name"),
        digest=_text(entry, "digest"),
        category=_text(entry, "class"),
        height=_count(entry, "height"),
        width=_count(entry, "width"),
        path=_text(entry, "path"),
    )


def _check(
    numbers: Mapping[str, NDArray[Any]],
    channels: int,
    top: int,
    classes: int,
    images: tuple[AtlasImage, ...],
) -> None:
    """Check that the arrays have the right shapes and types, and fit together."""
    patches = len(numbers["patch_box"]) if "patch_box" in numbers else 0
    lists = (channels, top)
    shapes: dict[str, tuple[str, tuple[int, ...]]] = {
        "value": ("float32", lists),
        "image": ("int32", lists),
        "cell": ("int32", (*lists, 2)),
        "patch": ("int32", lists),
        "patch_start": ("int64", (patches + 1,)),
        "patch_box": ("int32", (patches, 4)),
        "patch_image": ("int32", (patches,)),
        **dict.fromkeys(("mean", "mean_maximum", "zeros"), ("float64", (channels,))),
        **dict.fromkeys(("not_finite", "images", "strongest"), ("int64", (channels,))),
        "histogram": ("uint32", (channels, BINS)),
        "exponent": ("int16", (channels,)),
        "class_maximum": ("float32", (classes, channels)),
    }
    for name, (kind, shape) in shapes.items():
        array = numbers.get(name)
        if array is None or array.dtype != kind or array.shape != shape:
            what = "missing" if array is None else f"{array.dtype} of {array.shape}"
            raise _DamagedError(f"{name} is {what}, and should be {kind} of {shape}")
    bounds = {"image": len(images), "patch": patches, "patch_image": len(images), "cell": _MOST}
    for name, end in bounds.items():
        array = numbers[name]
        if array.size and not (array.min() >= -1 and array.max() < end):
            raise _DamagedError(f"{name} leads nowhere")
    exponents = numbers["exponent"]
    if exponents.size and not (exponents.min() >= SMALLEST and exponents.max() <= _WIDEST):
        raise _DamagedError("a histogram has no such bins")
    shown = numbers["patch"] >= 0
    owners = numbers["patch_image"][numbers["patch"][shown]] if patches else np.zeros(0)
    if not np.array_equal(owners, numbers["image"][shown]):
        raise _DamagedError("a patch is of another image than it should be")
    heights = np.array([image.height for image in images] or [0])[numbers["patch_image"]]
    widths = np.array([image.width for image in images] or [0])[numbers["patch_image"]]
    rows, columns, ends, sides = numbers["patch_box"].T
    if not (
        ((rows >= 0) & (rows < ends) & (ends <= heights)).all()
        and ((columns >= 0) & (columns < sides) & (sides <= widths)).all()
    ):
        raise _DamagedError("a patch lies outside of its image")


def _check_starts(starts: NDArray[np.int64], patch_bytes: int) -> None:
    if starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] > patch_bytes:
        raise _DamagedError(f"{PATCHES} is truncated, or its patches are not one after another")


def _list(owner: Mapping[str, Any], name: str) -> list[Any]:
    value = owner.get(name)
    if not isinstance(value, list):
        raise _DamagedError(f"{name} is no list")
    return value


def _text(owner: Any, name: str) -> str:
    value = owner.get(name) if isinstance(owner, dict) else None
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise _DamagedError(f"{name} is no text, or too long a one")
    return value.encode("utf-8", "replace").decode()  # half a letter can't be shown anywhere


def _count(owner: Any, name: str) -> int:
    value = owner.get(name) if isinstance(owner, dict) else None
    if not _is_count(value):
        raise _DamagedError(f"{name} is no number of something")
    return int(value)  # type: ignore[arg-type] # by the check


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST


def atlas_of(model: Model) -> Atlas | None:
    """Return the atlas of this very network and its way to make inputs; None without one.

    One that HookViz was started with goes before the one in the box.
    """
    return next((atlas for atlas in known_atlases() if atlas.belongs_to(model)), None)


def known_atlases() -> tuple[Atlas, ...]:
    """Read the atlases of ``HOOKVIZ_ATLAS``, a list as ``PATH`` is one, and then those in the box.

    One that can't be read is left out, and the log says why.
    """
    return _read(settings().atlas)


@lru_cache(maxsize=1)
def _read(listed: str) -> tuple[Atlas, ...]:
    paths = [Path(path) for path in listed.split(os.pathsep) if path]
    atlases = []
    for path in (*paths, *sorted(FOLDER.glob("*.atlas"))):
        try:
            atlases.append(load_atlas(path))
        except HookVizError as error:
            _log.warning("An atlas is left out: %s", error)
    return tuple(atlases)


FORM = 1
"""Version of the file format; a reader takes those up to its own."""

CELLS = "cells"
"""Said of a layer's patches that are the cells' own places, and not what the cells see."""

ABOUT = "atlas.json"
NUMBERS = "numbers.safetensors"
_MOST_IN_BIN = 2**32 - 1  # images
_LONGEST_REASON = 300  # letters of a reason


def atlas_numbers(tally: Tally, cut: CutPatches) -> dict[str, NDArray[Any]]:
    """Return the arrays of ``numbers.safetensors`` by name."""
    shape = tally.top.indices.shape
    is_filled = tally.top.indices >= 0
    seen = np.maximum(tally.images, 1)
    of_class = np.maximum(tally.class_images, 1)[:, None]
    return {
        "value": np.where(is_filled, tally.top.values, np.float32(0)),
        "image": cut.images.reshape(shape),
        "cell": tally.top.cells,
        "patch": cut.patches.reshape(shape),
        "patch_start": np.array(cut.starts, np.int64),
        "patch_box": np.array(cut.boxes, np.int32).reshape(-1, 4),
        "patch_image": np.array(cut.patch_images, np.int32),
        "mean": tally.sums / np.maximum(tally.numbers, 1),
        "mean_maximum": tally.maxima / seen,
        "zeros": tally.zeros / np.maximum(tally.histograms.counts.sum(axis=1), 1),
        "not_finite": tally.not_finite,
        "images": tally.images,
        "strongest": tally.strongest,
        "histogram": np.minimum(tally.histograms.counts, _MOST_IN_BIN).astype(np.uint32),
        "exponent": tally.histograms.exponents,
        "class_maximum": (tally.class_maxima / of_class).astype(np.float32),
    }


def atlas_about(plan: Plan, tally: Tally, cut: CutPatches, folder: Path) -> dict[str, Any]:
    """Return the content of ``atlas.json``.

    Args:
        plan: what it is of.
        tally: of all images.
        cut: the patches.
        folder: the one that the atlas lies in; images in it are named by their path from there.
    """
    digests = {index: digest.hex() for digest, index in tally.digests.items()}
    images = [
        {
            "name": plan.sources[index].name,
            "path": _relative_path(plan.sources[index].path, folder),
            "digest": digests.get(index, ""),
            "class": plan.sources[index].category if plan.classes else "",
            "height": height,
            "width": width,
            **(
                {"fault": shorten(cut.faults[number], _LONGEST_REASON)}
                if number in cut.faults
                else {}
            ),
        }
        for number, (index, (height, width)) in enumerate(zip(cut.indices, cut.sizes, strict=True))
    ]
    described = plan.described()
    of_cells = PatchFields(plan.model, plan.table).of_cells if cut.boxes else frozenset()
    model = plan.model
    return {
        "form": FORM,
        "hookviz": hookviz.__version__,
        "model": model.name,
        "title": model.title,
        "weights": model.weights,
        "digest": model.digest,
        "preprocess": described["preprocess"],
        "size": plan.size,
        "top": plan.top,
        "batch": plan.batch,
        "dtype": plan.dtype,
        "patch": plan.patch,
        "names": described["names"],
        "counts": {
            "images": len(plan.sources),
            "tallied": tally.tallied,
            "repeated": tally.repeated,
            "left_out": tally.left_out_count,
        },
        "left_out": [
            {"name": plan.sources[index].name, "reason": shorten(reason, _LONGEST_REASON)}
            for index, reason in sorted(tally.left_out.items())
        ],
        "classes": [
            {"name": name, "images": int(count)}
            for name, count in zip(plan.classes, tally.class_images, strict=True)
        ],
        "layers": [
            {
                "address": layer.address,
                "first": layer.first,
                "channels": layer.channels,
                "rows": layer.cells[0],
                "columns": layer.cells[1],
                **({"patches": CELLS} if layer.address in of_cells else {}),
            }
            for layer in plan.table.layers
        ],
        "images": images,
    }


def atlas_files(plan: Plan, tally: Tally, cut: CutPatches, folder: Path) -> Mapping[str, bytes]:
    """Return the files beside the patches, by name."""
    text = json.dumps(atlas_about(plan, tally, cut, folder), ensure_ascii=True, indent=0)
    arrays = {name: np.ascontiguousarray(each) for name, each in atlas_numbers(tally, cut).items()}
    return {ABOUT: text.encode(), NUMBERS: save(arrays)}


def _relative_path(path: Path | None, folder: Path) -> str:
    """Return the path from a folder to a file in it, with ``/``; empty for one elsewhere."""
    if path is None:
        return ""
    real, base = Path(os.path.abspath(path)), Path(os.path.abspath(folder))  # noqa: PTH100 - links stay
    return real.relative_to(base).as_posix() if real.is_relative_to(base) else ""
