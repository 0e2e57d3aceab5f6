"""Cut the patches of an atlas out of the original images, and encode and decode them.

A patch shows what its cell sees, or the cell's own place (`PatchFields`): behind attention every
cell sees all of the image, or large windows of it, so that the patches of all cells would be alike.
The winning images are read a second time; each part is cut once.
"""

import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hookviz.atlas.plan import ChannelTable, LayerChannels, Plan
from hookviz.atlas.tally import NOBODY, Tally
from hookviz.capturing.image_shards import READ_THREADS, map_in_order, read_input, read_pixels
from hookviz.errors import HookVizError
from hookviz.explaining.receptive_fields.receptive_field import Fields, receptive_fields
from hookviz.images.crop_geometry import crop_axes, crop_between
from hookviz.images.formats import HEAD, find_reader
from hookviz.images.reading import decode_small_file
from hookviz.language.saying import say
from hookviz.types import Crop, InputImage, Model, Pixels, Preprocess

Box = tuple[int, int, int, int]
"""Top, left, bottom, right in pixels of the original; the last row and column not included."""

_EXACT_SIDE = 16  # patches up to this are kept to the pixel; JPEG would blur single pixels
_QUALITY = 85
_TOLERANCE = 1e-6  # of a pixel: a stretch that ends with one does not touch the next


class PatchFields:
    """Parts of inputs that the patches of an atlas show, for any thread to ask."""

    def __init__(self, model: Model, table: ChannelTable) -> None:
        """Compute nothing yet."""
        self._model, self._table = model, table
        self._fields: dict[tuple[int, ...], Fields] = {}
        self._lock = threading.Lock()  # no two threads work the same fields out

    @cached_property
    def of_cells(self) -> frozenset[str]:
        """Addresses of the layers whose patches are the cells' own places.

        Those behind attention, and those of tokens or windows whose fields are not known.
        """
        fields = self._fields_of(self._table.input_shape)

        def is_of_cells(layer: LayerChannels) -> bool:
            seen = fields.get(layer.address)
            return layer.layout.last if seen is None else bool(seen.mixed)

        return frozenset(each.address for each in self._table.layers if is_of_cells(each))

    def boxes(
        self, layer: LayerChannels, cells: NDArray[np.int32], shape: tuple[int, ...]
    ) -> NDArray[np.float64]:
        """Return the parts of an input of `shape`, ``(C, H, W)``, that cells' patches show.

        Args:
            layer: of all the cells.
            cells: row and column of each, ``(M, 2)``.
            shape: of the input.

        Returns:
            Top, left, bottom, right in pixels of the input, ``(M, 4)``.
        """
        height, width = shape[-2:]
        seen = self._fields_of(shape).get(layer.address)
        rows, columns = layer.cells if seen is None else seen.cells
        boxes = np.empty((len(cells), 4))
        boxes[:] = 0, 0, height, width  # of a line, or a layer that zeros don't run
        is_there = (cells < (rows, columns)).all(axis=1)
        row, column = cells[is_there].T
        if layer.address in self.of_cells:
            down, across = height / rows, width / columns
            edges = row * down, column * across, (row + 1) * down, (column + 1) * across
            boxes[is_there] = np.stack(edges, 1)
        elif seen is not None:
            boxes[is_there] = np.stack([edge[row, column] for edge in seen.boxes], 1)
        return boxes

    def _fields_of(self, shape: tuple[int, ...]) -> Fields:
        with self._lock:
            if shape not in self._fields:
                try:
                    self._fields[shape] = receptive_fields(self._model, shape)
                except HookVizError:  # zeros don't go through, though images do
                    self._fields[shape] = {}
            return self._fields[shape]


def boxes_in_original(
    fields: NDArray[np.float64], crop: Crop | None, image: Pixels
) -> list[Box | None]:
    """Return where receptive fields lie in the original; None for those that see nothing of it.

    All at once: an image can be in the lists of thousands of channels.

    Args:
        fields: top, left, bottom and right in pixels of the input, ``(M, 4)``.
        crop: which part of the original the input shows; None where that is not known, and then it
            is the whole image.
        image: the original, ``(H, W, 3)``.
    """
    size = np.array(image.shape[:2])
    sees: NDArray[np.bool_] = np.all(fields[:, :2] < fields[:, 2:], axis=1)
    if crop is None:
        whole = 0, 0, int(size[0]), int(size[1])
        return [whole if each else None for each in sees.tolist()]
    corner = np.array((crop.top, crop.left))
    scale = np.array(
        ((crop.bottom - crop.top) / crop.height, (crop.right - crop.left) / crop.width)
    )
    start, end = corner + fields[:, :2] * scale, corner + fields[:, 2:] * scale
    first = np.maximum(0, np.floor(start + _TOLERANCE)).astype(np.int64)
    last = np.minimum(size, np.ceil(end - _TOLERANCE)).astype(np.int64)
    sees &= np.all(first < last, axis=1)
    boxes = np.concatenate([first, last], axis=1)
    return [
        (int(box[0]), int(box[1]), int(box[2]), int(box[3])) if each else None
        for box, each in zip(boxes.tolist(), sees.tolist(), strict=True)
    ]


class Original:
    """Image of which parts are cut out, with halves of itself that are made once.

    A large part that becomes a small patch is taken from one of these, so that no patch costs more
    than another.
    """

    def __init__(self, pixels: Pixels) -> None:
        self._halves = [Image.fromarray(pixels)]

    def cut(self, box: Box, side: int) -> bytes:
        """Encode the part in a box as a PNG or a JPEG, no side longer than `side`.

        It is shrunk, never enlarged: one pixel can be a patch.
        """
        top, left, bottom, right = box
        height, width = bottom - top, right - left
        scale = min(1.0, side / max(height, width))
        size = max(1, round(width * scale)), max(1, round(height * scale))
        if size == (width, height):
            patch = self._halves[0].crop((left, top, right, bottom))
        else:
            level = max(0, math.floor(math.log2(max(height, width) / side)))
            image, times = self._half(level), 2**level
            ends = min(right / times, image.width), min(bottom / times, image.height)
            patch = image.resize(
                size, Image.Resampling.BILINEAR, box=(left / times, top / times, *ends)
            )
        buffer = BytesIO()
        if max(size) <= _EXACT_SIDE:
            patch.save(buffer, "PNG")
        else:
            patch.save(buffer, "JPEG", quality=_QUALITY, optimize=True)
        return buffer.getvalue()

    def _half(self, level: int) -> Image.Image:
        """Return the image with both sides divided by 2 to the power of `level`, rounded up."""
        while len(self._halves) <= level:
            self._halves.append(self._halves[-1].reduce(2))
        return self._halves[level]


def decode_patch(data: bytes, side: int, name: str) -> Pixels:
    """Decode a patch, RGB uint8 ``(h, w, 3)``, from bytes that anybody may have written.

    Raises:
        HookVizError: they are no PNG or JPEG of at most `side` pixels a side.
    """
    try:
        image = find_reader(data[:HEAD], name)(BytesIO(data))  # no more than its head is read
        small = image.format in ("PNG", "JPEG") and max(image.size) <= side
    except HookVizError:
        raise
    except Exception as error:  # on broken bytes Pillow raises whatever its line of code raises
        raise HookVizError(say("{name} is damaged.", name=name)) from error
    if not small:
        raise HookVizError(
            say("{name} is no picture of {side} pixels a side.", name=name, side=side)
        )
    return decode_small_file(data, name).pixels


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
    yield from map_in_order(cutter, rest, 2 * READ_THREADS)


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
        source = read_pixels(plan.model, image)
        if not isinstance(source, InputImage) or not isinstance(steps, Preprocess) or steps.frames:
            picture, model_input, digest = read_input(plan.model, source, plan.size)
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
