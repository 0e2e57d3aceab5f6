"""Write patches one after another into one file that can be continued after any end."""

import json
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from hookviz.atlas.cutting import CutImage, CutPatches
from hookviz.atlas.part_folder import PartFolder

PATCHES = "patches.bin"
CUT = "cut.safetensors"
_SECONDS = 10.0  # of work that a kill costs


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
        self._part.write(CUT, save(self._arrays(), about))
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
        path = self._part.folder / CUT
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
