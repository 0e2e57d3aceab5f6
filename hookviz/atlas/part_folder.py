"""Keep an unfinished atlas in a folder beside it, from which work goes on after any end.

Every file in it is there as a whole or not at all, and is on the disk before the next step counts
on it. Nobody else works on it meanwhile. The `PatchFile` has one patch after another, and is
continued at the last patch that is on the disk.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from hookviz.atlas.patches import CutImage, CutPatches
from hookviz.atlas.plan import Plan, differences
from hookviz.atlas.tally import SUMS, Tally
from hookviz.errors import HookVizError, shorten
from hookviz.paths import sync_folder, write_whole

try:
    import fcntl
except ImportError:  # Windows has no such locks; there two at once are not told apart
    fcntl = None  # type: ignore[assignment]

_PLAN, _TALLY, _LOCK = "plan.json", "tally.safetensors", "lock"
LEFTOVERS = (_PLAN, _TALLY, "cut.safetensors", _LOCK)
"""Files that only the making needs; after a kill they can still be in a finished atlas."""

PATCHES = "patches.bin"
_CUT = "cut.safetensors"
_SECONDS = 10.0  # of work that a kill costs


@dataclass(frozen=True, slots=True)
class PartFolder:
    """Folder of an atlas that is not finished.

    Attributes:
        folder: ``NAME.atlas.part``.
        target: ``NAME.atlas``, what it becomes.
    """

    folder: Path
    target: Path

    @classmethod
    def of(cls, target: Path) -> "PartFolder":
        """Return the folder that becomes `target`."""
        return cls(target.with_name(f"{target.name}.part"), target)

    @contextmanager
    def locked(self, plan: Plan, *, overwrite: bool) -> Iterator[None]:
        """Lock the folder for work on `plan` by this process alone.

        Raises:
            HookVizError: another process works in it, or it is of another plan.
            OSError: it can't be made.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / _LOCK).open("wb") as lock:
            if fcntl is not None:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise HookVizError(
                        f"Another process is making {str(self.target)!r} now. Wait for it, or give "
                        "another name."
                    ) from None
            self._check(plan, overwrite=overwrite)
            yield

    def _check(self, plan: Plan, *, overwrite: bool) -> None:
        description = plan.described()
        if overwrite:
            for file in self.folder.iterdir():
                if file.name != _LOCK:
                    file.unlink()
        if not (self.folder / _PLAN).exists():
            self.write(_PLAN, json.dumps(description).encode())
            return
        try:
            begun = json.loads((self.folder / _PLAN).read_bytes())
            # which HookViz 0.1 did not write down: a tally of others has another shape
            begun.setdefault("layers", description["layers"])
            what = differences(begun, description)
        except (ValueError, AttributeError) as error:
            raise self._damaged(error) from error
        if what:
            raise HookVizError(
                f"{str(self.folder)!r} is the beginning of another atlas: {what}. Give another "
                "name, or overwrite it (overwrite=True, --overwrite), which drops that work."
            )

    def write(self, name: str, data: bytes) -> None:
        """Write a file that is there as a whole or not at all.

        Raises:
            OSError: the disk is full, and what was there before is still there.
        """
        write_whole(self.folder / name, data)

    def write_tally(self, tally: Tally, shards: int) -> None:
        """Write down the tally of the first `shards` shards."""
        about = {
            "shards": str(shards),
            "left_out": json.dumps(tally.left_out),
            **{name: str(getattr(tally, name)) for name in _COUNTS},
        }
        self.write(_TALLY, save(_arrays(tally), about))

    def read_tally(self, empty: Tally) -> tuple[Tally, int]:
        """Read the tally that was written down and its number of shards; `empty` and 0 without one.

        Raises:
            HookVizError: it is damaged.
        """
        path = self.folder / _TALLY
        if not path.exists():
            return empty, 0
        try:
            with safetensors.safe_open(path, "np") as file:
                about = file.metadata() or {}
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            _fill(empty, arrays, about)
            return empty, int(about["shards"])
        except (safetensors.SafetensorError, OSError, ValueError, KeyError) as error:
            raise self._damaged(error) from error

    def finish(self) -> None:
        """Give the folder its final name; from then on it is an atlas.

        Raises:
            HookVizError: there is something of that name already.
        """
        try:
            self.folder.rename(self.target)
        except OSError as error:
            raise HookVizError(
                f"The atlas is complete in {str(self.folder)!r}, but can't be called "
                f"{self.target.name!r}: {error.strerror or error}."
            ) from error
        sync_folder(self.target.parent)
        for name in LEFTOVERS:
            (self.target / name).unlink(missing_ok=True)

    def drop(self) -> None:
        """Remove the folder with all that is in it."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _damaged(self, error: Exception) -> HookVizError:
        reason = shorten(str(error), 100)
        return HookVizError(
            f"{str(self.folder)!r}, the beginning of this atlas, is damaged ({reason}). "
            "Overwrite it (overwrite=True, --overwrite)."
        )


_COUNTS = ("tallied", "repeated", "left_out_count")


def _arrays(tally: Tally) -> dict[str, NDArray[Any]]:
    digests = np.frombuffer(b"".join(tally.digests), np.uint8).reshape(len(tally.digests), -1)
    return {
        "top.values": tally.top.values,
        "top.places": tally.top.indices,
        "top.cells": tally.top.cells,
        "histograms.counts": tally.histograms.counts,
        "histograms.exponents": tally.histograms.exponents,
        "digests": digests if tally.digests else np.zeros((0, 16), np.uint8),
        "digest_places": np.array(list(tally.digests.values()), np.int64),
        **{name: np.ascontiguousarray(getattr(tally, name)) for name in SUMS},
    }


def _fill(tally: Tally, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, str]) -> None:
    parts: list[tuple[Any, str, str]] = [(tally, name, name) for name in SUMS]
    parts += [(tally.top, "indices", "top.places")]
    parts += [(tally.top, name, f"top.{name}") for name in ("values", "cells")]
    parts += [(tally.histograms, name, f"histograms.{name}") for name in ("counts", "exponents")]
    for owner, name, key in parts:
        before, now = getattr(owner, name), arrays[key]
        if before.shape != now.shape or before.dtype != now.dtype:
            raise ValueError(f"{key} is {now.dtype} of {now.shape}")
        setattr(owner, name, now.copy())
    indices = arrays["digest_places"].tolist()
    tally.digests = dict(zip(map(bytes, arrays["digests"]), indices, strict=True))
    tally.left_out = {int(index): reason for index, reason in json.loads(about["left_out"]).items()}
    for name in _COUNTS:
        setattr(tally, name, int(about[name]))


class PatchFile(CutPatches):
    """Patches cut so far that are put on the disk from time to time."""

    def __init__(self, part: PartFolder, entries: int) -> None:
        """Restore what `part` holds already, or begin an empty file."""
        path = part.folder / PATCHES
        super().__init__(entries, path.open("r+b" if path.exists() else "w+b"))
        self._part = part
        if not self._restore():
            super().__init__(entries, self.file)
        self.file.truncate(self.starts[-1])
        self.file.seek(self.starts[-1])
        self._kept = time.monotonic()

    def __enter__(self) -> "PatchFile":
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def add(self, image: CutImage) -> None:
        """Take in the next image's patches."""
        super().add(image)
        if time.monotonic() - self._kept > _SECONDS:
            self.keep()

    def keep(self) -> None:
        """Write all of it to the disk, and how far it is."""
        self.file.flush()
        os.fsync(self.file.fileno())
        about = {"next_place": str(self.next_index), "faults": json.dumps(self.faults)}
        self._part.write(_CUT, save(self._arrays(), about))
        self._kept = time.monotonic()

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {
            "patches": self.patches,
            "images": self.images,
            "places": np.array(self.indices, np.int64),
            "sizes": np.array(self.sizes, np.int32).reshape(-1, 2),
            "starts": np.array(self.starts, np.int64),
            "boxes": np.array(self.boxes, np.int32).reshape(-1, 4),
            "patch_images": np.array(self.patch_images, np.int32),
        }

    def _restore(self) -> bool:
        """Restore what was written down; return whether it was there, and whole."""
        path = self._part.folder / _CUT
        if not path.exists():
            return False
        try:
            with safe_open(path, "np") as file:
                about = file.metadata() or {}
                read: Callable[[str], NDArray[Any]] = file.get_tensor
                starts = read("starts").tolist()
                if (self._part.folder / PATCHES).stat().st_size < starts[-1]:
                    return False  # cut again what is not there
                self.patches, self.images = read("patches").copy(), read("images").copy()
                self.indices, self.patch_images = (
                    read("places").tolist(),
                    read("patch_images").tolist(),
                )
                self.sizes = [(int(height), int(width)) for height, width in read("sizes")]
                self.boxes = [tuple(box) for box in read("boxes").tolist()]
                self.starts = starts
                self.next_index = int(about["next_place"])
                self.faults = {int(key): why for key, why in json.loads(about["faults"]).items()}
        except (SafetensorError, OSError, ValueError, KeyError):
            return False
        return True
