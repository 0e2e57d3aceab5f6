"""The patches one after another in one file, whose growth can be gone on with after any end."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from hookviz.atlas.cutting import CutImage
from hookviz.atlas.part_folder import PartFolder

PATCHES = "patches.bin"
CUT = "cut.safetensors"
_SECONDS = 10.0  # of work that a kill costs


class PatchFile:
    """What has been cut so far.

    Attributes:
        next_place: from which image on there is more to cut.
        patches: for each entry of the lists the number of its patch, int32 ``(C · k,)``.
        images: for each entry the number of its image among the winners, int32 ``(C · k,)``.
        places: of each winning image among all.
        sizes: height and width of each winning image.
        faults: why winning images have no patches, by their numbers.
        starts: where each patch begins in the file, and where the last one ends.
        boxes: top, left, bottom, right of each patch in its image.
        patch_images: the number of the image of each patch.
    """

    def __init__(self, part: PartFolder, entries: int) -> None:
        """What `part` holds of it already, or an empty file."""
        self._part = part
        self.next_place = 0
        self.patches: NDArray[np.int32] = np.full(entries, -1, np.int32)
        self.images: NDArray[np.int32] = np.full(entries, -1, np.int32)
        self.places: list[int] = []
        self.sizes: list[tuple[int, int]] = []
        self.faults: dict[int, str] = {}
        self.starts: list[int] = [0]
        self.boxes: list[tuple[int, ...]] = []
        self.patch_images: list[int] = []
        self._restore(part.folder / CUT)
        path = part.folder / PATCHES
        self._file: BinaryIO = path.open("r+b" if path.exists() else "w+b")
        self._file.truncate(self.starts[-1])
        self._file.seek(self.starts[-1])
        self._kept = time.monotonic()

    def __enter__(self) -> "PatchFile":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def add(self, image: CutImage) -> None:
        """Take in the next image's patches."""
        number, first = len(self.places), len(self.boxes)
        self.places.append(image.place)
        self.sizes.append(image.size)
        if image.fault:
            self.faults[number] = image.fault
        self.images[image.entries] = number
        self.patches[image.entries] = np.where(image.patches < 0, -1, image.patches + first)
        for box, data in zip(image.boxes, image.data, strict=True):
            self._file.write(data)
            self.starts.append(self.starts[-1] + len(data))
            self.boxes.append(box)
            self.patch_images.append(number)
        self.next_place = image.place + 1
        if time.monotonic() - self._kept > _SECONDS:
            self.keep()

    def keep(self) -> None:
        """Have all of it on the disk, and written down how far it is."""
        self._file.flush()
        os.fsync(self._file.fileno())
        about = {"next_place": str(self.next_place), "faults": json.dumps(self.faults)}
        self._part.write(CUT, save(self.arrays(), about))
        self._kept = time.monotonic()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The numbers of it by name."""
        return {
            "patches": self.patches,
            "images": self.images,
            "places": np.array(self.places, np.int64),
            "sizes": np.array(self.sizes, np.int32).reshape(-1, 2),
            "starts": np.array(self.starts, np.int64),
            "boxes": np.array(self.boxes, np.int32).reshape(-1, 4),
            "patch_images": np.array(self.patch_images, np.int32),
        }

    def _restore(self, path: Path) -> None:
        if not path.exists():
            return
        try:
            with safe_open(path, "np") as file:
                about = file.metadata() or {}
                read: Callable[[str], NDArray[Any]] = file.get_tensor
                starts = read("starts").tolist()
                if (self._part.folder / PATCHES).stat().st_size < starts[-1]:
                    return  # cut again what is not there
                self.patches, self.images = read("patches").copy(), read("images").copy()
                self.places, self.patch_images = (
                    read("places").tolist(),
                    read("patch_images").tolist(),
                )
                self.sizes = [(int(height), int(width)) for height, width in read("sizes")]
                self.boxes = [tuple(box) for box in read("boxes").tolist()]
                self.starts = starts
                self.next_place = int(about["next_place"])
                self.faults = {int(key): why for key, why in json.loads(about["faults"]).items()}
        except (SafetensorError, OSError, ValueError, KeyError):
            self.__init__(self._part, len(self.patches))  # type: ignore[misc]
