"""Cut the patches of all winning images, which are read a second time; each part is cut once."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from hookviz.atlas import reading_ahead
from hookviz.atlas.patch_fields import PatchFields
from hookviz.atlas.patches import Box, Original, boxes_in_original
from hookviz.atlas.plan import Plan
from hookviz.atlas.tally import Tally
from hookviz.atlas.top_k import NOBODY
from hookviz.errors import HookVizError
from hookviz.images.crop_geometry import crop_axes, crop_between
from hookviz.language.saying import say
from hookviz.types import Crop, InputImage, Preprocess


@dataclass(frozen=True, eq=False)
class CutImage:
    """Winning image with the patches that are cut out of it.

    Attributes:
        index: among all images.
        size: height and width in pixels; (0, 0) where it has no pixels, or is gone.
        entries: which entries of the lists show it, each as ``channel · k + rank``.
        patches: for each entry which of `boxes` it shows; -1 for none.
        boxes: where the patches lie in the image.
        data: a PNG or JPEG for each of `boxes`.
        fault: why there are no patches; empty where there are.
    """

    index: int
    size: tuple[int, int]
    entries: NDArray[np.int64]
    patches: NDArray[np.int32] = field(repr=False)
    boxes: tuple[Box, ...] = field(repr=False, default=())
    data: tuple[bytes, ...] = field(repr=False, default=())
    fault: str = ""


def winners(tally: Tally) -> dict[int, NDArray[np.int64]]:
    """Return which entries of the lists show each image, by the image's index, ascending."""
    flat = tally.top.indices.reshape(-1)
    order = np.argsort(flat, kind="stable")
    order = order[flat[order] != NOBODY]
    indices, starts = np.unique(flat[order], return_index=True)
    return (
        dict(zip(indices.tolist(), np.split(order, starts[1:]), strict=True)) if len(order) else {}
    )


def cut_images(plan: Plan, tally: Tally, after: int) -> Iterator[CutImage]:
    """Cut the patches of each winning image in order, from index `after` on."""
    cutter = Cutter(plan, tally)
    rest = [index for index in cutter.entries if index >= after]
    yield from reading_ahead.in_order(cutter, rest, 2 * reading_ahead.THREADS)


class Cutter:
    """Callable that reads a winning image again and cuts its patches, in any thread.

    Attributes:
        entries: from `winners`.
    """

    def __init__(self, plan: Plan, tally: Tally) -> None:
        """Cut what is in the lists of `tally`, once it is complete."""
        self.entries = winners(tally)
        self._plan, self._tally = plan, tally
        self._digests = {
            index: digest for digest, index in tally.digests.items() if index in self.entries
        }
        self._owner = np.empty(plan.table.channels, np.int64)  # the layer of each channel
        for number, layer in enumerate(plan.table.layers):
            self._owner[layer.rows] = number
        self._fields = PatchFields(plan.model, plan.table)

    def __call__(self, index: int) -> CutImage:
        """Cut the patches of the winning image at `index`, or say why there are none."""
        plan, entries = self._plan, self.entries[index]
        patches = np.full(len(entries), -1, np.int32)
        try:
            picture, crop, shape, digest = self._read_again(index)
        except HookVizError as error:
            return CutImage(index, (0, 0), entries, patches, fault=str(error))
        if digest != self._digests.get(index):
            return CutImage(index, (0, 0), entries, patches, fault=say("It has changed meanwhile."))
        if picture is None:
            return CutImage(index, (0, 0), entries, patches)
        boxes: dict[Box, int] = {}
        found = boxes_in_original(self._fields_of(entries, shape), crop, picture.pixels)
        for number, box in enumerate(found):
            if box is not None:
                patches[number] = boxes.setdefault(box, len(boxes))
        original = Original(picture.pixels)
        data = tuple(original.cut(box, plan.patch) for box in boxes)
        size = (picture.height, picture.width)
        return CutImage(index, size, entries, patches, tuple(boxes), data)

    def _read_again(
        self, index: int
    ) -> tuple[InputImage | None, Crop | None, tuple[int, ...], bytes]:
        """Read an image; return its pixels, its crop and shape as an input, and its digest.

        The input itself, which takes half of the time, is made only where nothing else tells those.

        Raises:
            HookVizError: it can't be read any more.
        """
        plan = self._plan
        image, steps = plan.sources[index].image, plan.model.preprocess
        source = reading_ahead.read_pixels(plan.model, image)
        if not isinstance(source, InputImage) or not isinstance(steps, Preprocess) or steps.frames:
            picture, model_input, digest = reading_ahead.read(plan.model, source, plan.size)
            return picture, model_input.crop, tuple(model_input.tensor.shape[1:]), digest
        side = steps.crop if plan.size is None else plan.size
        crop = crop_between(*crop_axes(source, steps, side))
        return source, crop, (steps.channels, side, side), bytes.fromhex(source.digest)

    def _fields_of(self, entries: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[np.float64]:
        """Return the part of an input of `shape` that each entry's patch shows, ``(M, 4)``."""
        owners = self._owner[entries // self._tally.top.k]
        cells = self._tally.top.cells.reshape(-1, 2)[entries]
        fields = np.empty((len(entries), 4))
        for number in np.unique(owners).tolist():
            of_layer = owners == number
            layer = self._plan.table.layers[number]
            fields[of_layer] = self._fields.boxes(layer, cells[of_layer], shape)
        return fields


class CutPatches:
    """Patches that have been cut so far, one after another in a file, and what each shows.

    Attributes:
        file: the patches, one after another.
        next_index: from which image on there is more to cut.
        patches: for each entry of the lists the number of its patch, int32 ``(C · k,)``.
        images: for each entry the number of its image among the winners, int32 ``(C · k,)``.
        indices: of each winning image among all.
        sizes: height and width of each winning image.
        faults: why winning images have no patches, by their numbers.
        starts: where each patch begins in the file, and where the last one ends.
        boxes: top, left, bottom, right of each patch in its image.
        patch_images: the number of the image of each patch.
    """

    def __init__(self, entries: int, file: BinaryIO) -> None:
        """Begin with no patch and an empty file."""
        self.file = file
        self.next_index = 0
        self.patches: NDArray[np.int32] = np.full(entries, -1, np.int32)
        self.images: NDArray[np.int32] = np.full(entries, -1, np.int32)
        self.indices: list[int] = []
        self.sizes: list[tuple[int, int]] = []
        self.faults: dict[int, str] = {}
        self.starts: list[int] = [0]
        self.boxes: list[tuple[int, ...]] = []
        self.patch_images: list[int] = []

    def add(self, image: CutImage) -> None:
        """Take in the next image's patches."""
        number, first = len(self.indices), len(self.boxes)
        self.indices.append(image.index)
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
        self.next_index = image.index + 1
