"""Draw a patch of an image for each channel in one picture, which is cut into tiles."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hookviz.drawing.layout import Geometry, lay_out
from hookviz.drawing.pictures import encode_png, middle_square
from hookviz.types import Pixels


@dataclass(frozen=True, eq=False, slots=True)
class PatchSheet:
    """Picture of patches side by side.

    Attributes:
        png: the picture, a pixel for a pixel of a patch; clear where there is no patch.
        geometry: where each lies in it.
    """

    png: bytes
    geometry: Geometry


def patch_sheet(patches: Sequence[Pixels | None], side: int) -> PatchSheet:
    """Draw patches, RGB uint8 ``(h, w, 3)``, as squares of `side` pixels, in their order.

    One of other proportions is cut to its middle square.

    Args:
        patches: one or more; None leaves its place clear.
        side: pixels of a square.
    """
    geometry = replace(lay_out(len(patches), side, side), magnification=1)
    sheet = np.zeros((geometry.height, geometry.width, 4), np.uint8)
    for position, patch in enumerate(patches):
        if patch is not None:
            left, top, right, bottom = geometry.box(position)
            sheet[top:bottom, left:right, :3] = middle_square(patch, side)
            sheet[top:bottom, left:right, 3] = 255
    return PatchSheet(encode_png(sheet, compress_level=1), geometry)
