"""Build the files of a finished atlas from a tally and its patches, as docs/atlas.md has them."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

import hookviz
from hookviz.atlas.patches import CutPatches, PatchFields
from hookviz.atlas.plan import Plan
from hookviz.atlas.tally import Tally
from hookviz.errors import shorten

FORM = 1
"""Version of the file format; a reader takes those up to its own."""

CELLS = "cells"
"""Said of a layer's patches that are the cells' own places, and not what the cells see."""

ABOUT = "atlas.json"
NUMBERS = "numbers.safetensors"
_MOST = 2**32 - 1  # of a bin
_LONGEST = 300  # letters of a reason


def numbers(tally: Tally, cut: CutPatches) -> dict[str, NDArray[Any]]:
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
        "histogram": np.minimum(tally.histograms.counts, _MOST).astype(np.uint32),
        "exponent": tally.histograms.exponents,
        "class_maximum": (tally.class_maxima / of_class).astype(np.float32),
    }


def about(plan: Plan, tally: Tally, cut: CutPatches, folder: Path) -> dict[str, Any]:
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
            **({"fault": shorten(cut.faults[number], _LONGEST)} if number in cut.faults else {}),
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
            {"name": plan.sources[index].name, "reason": shorten(reason, _LONGEST)}
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


def files(plan: Plan, tally: Tally, cut: CutPatches, folder: Path) -> Mapping[str, bytes]:
    """Return the files beside the patches, by name."""
    text = json.dumps(about(plan, tally, cut, folder), ensure_ascii=True, indent=0)
    arrays = {name: np.ascontiguousarray(each) for name, each in numbers(tally, cut).items()}
    return {ABOUT: text.encode(), NUMBERS: save(arrays)}


def _relative_path(path: Path | None, folder: Path) -> str:
    """Return the path from a folder to a file in it, with ``/``; empty for one elsewhere."""
    if path is None:
        return ""
    real, base = Path(os.path.abspath(path)), Path(os.path.abspath(folder))  # noqa: PTH100 - links stay
    return real.relative_to(base).as_posix() if real.is_relative_to(base) else ""
