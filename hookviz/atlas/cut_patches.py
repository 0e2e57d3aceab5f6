"""What has been cut of the images so far: the patches one after another, and what each shows."""

from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from hookviz.atlas.cutting import CutImage


class CutPatches:
    """What has been cut so far.

    Attributes:
        file: the patches, one after another.
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

    def __init__(self, entries: int, file: BinaryIO) -> None:
        """Nothing is cut yet; the file is empty."""
        self.file = file
        self.next_place = 0
        self.patches: NDArray[np.int32] = np.full(entries, -1, np.int32)
        self.images: NDArray[np.int32] = np.full(entries, -1, np.int32)
        self.places: list[int] = []
        self.sizes: list[tuple[int, int]] = []
        self.faults: dict[int, str] = {}
        self.starts: list[int] = [0]
        self.boxes: list[tuple[int, ...]] = []
        self.patch_images: list[int] = []

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
            self.file.write(data)
            self.starts.append(self.starts[-1] + len(data))
            self.boxes.append(box)
            self.patch_images.append(number)
        self.next_place = image.place + 1
