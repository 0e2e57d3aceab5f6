"""Read what Pillow can't, by packages that may be installed: tifffile, pydicom, pillow-heif."""

from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from hookviz.errors import ImageError
from hookviz.images.bit_depth import in_window, window_of
from hookviz.images.choices import (
    NO_CHOICES,
    Choices,
    Selection,
    Window,
    check_has_no_window,
    checked_page,
)
from hookviz.images.formats import (
    BandsError,
    check_size,
    is_tiff,
    not_installed,
)
from hookviz.language.saying import say
from hookviz.reader.wall import quoted

_NO_DATA = 42113  # GDAL's tag: the value of pixels without any
_MOST_BYTES = 40  # that a pixel of all bands may take


def preload() -> None:
    """Load what is installed, for a process that can't import any more."""
    if find_spec("tifffile") is not None:  # it imports its decoders once they are used
        import_module("tifffile._imagecodecs")
        tifffile, file = import_module("tifffile"), BytesIO()
        tifffile.imwrite(file, np.zeros((8, 8, 5), np.uint16), planarconfig="contig")
        bands_of_tiff(file.getvalue(), "preload", 64, NO_CHOICES, 1)


def check_can_read_bands(name: str, error: BandsError) -> None:
    """Refuse a TIFF of many bands where nothing that reads them is installed."""
    if find_spec("tifffile") is None:
        raise ImageError(
            say(
                "{file} is a TIFF of {count} bands of {bits} bits, which Pillow doesn't read. "
                'After pip install "hookviz[tiff]" three can be chosen, read_image(path, '
                "bands=(3, 2, 1)); or give all of them as a float tensor of (C, H, W).",
                file=quoted(name),
                count=error.count,
                bits=error.bits,
            )
        )


def check_is_tiff(data: bytes, name: str) -> None:
    """Refuse bands of what is no TIFF, or where nothing reads them."""
    if not is_tiff(data):
        raise ImageError(
            say("{file} is no TIFF, of which alone bands can be chosen.", file=quoted(name))
        )
    if find_spec("tifffile") is None:
        raise not_installed(name, say("a TIFF whose bands are to be chosen"), "tiff")


def bands_of_tiff(
    data: bytes, name: str, most: int, choices: Choices, page: int
) -> tuple[Image.Image, Selection]:
    """Return three bands of a TIFF as colours of 8 bits; deeper ones in one window for all three.

    Raises:
        ImageError: tifffile is not installed, or the band does not exist.
    """
    tifffile = import_module("tifffile")
    with tifffile.TiffFile(BytesIO(data)) as file:
        found = file.pages[page - 1]
        check_size(name, most, found.imagewidth, found.imagelength)
        size = found.imagewidth * found.imagelength * found.imagedepth * found.samplesperpixel
        check_size(name, most * _MOST_BYTES, size, found.dtype.itemsize)
        values: NDArray[Any] = found.asarray(maxworkers=1)
        if "S" not in found.axes:
            values = values[..., None]
        elif found.axes[0] == "S":
            values = np.moveaxis(values, 0, -1)
        empty = found.nodata if _NO_DATA in found.tags else None
    if values.ndim != 3 or values.dtype.kind not in "uif":
        raise ImageError(
            say(
                "{file} is a TIFF of {shape} and {dtype}, which is no picture; give a float "
                "tensor of (C, H, W) instead.",
                file=quoted(name),
                shape=values.shape,
                dtype=values.dtype,
            )
        )
    count = values.shape[2]
    chosen = choices.bands or ((1, 2, 3) if count > 2 else (1, 1, 1))
    if max(chosen) > count:
        raise ImageError(
            say(
                "{file} has no band {band}: it has {count}, counted from 1.",
                file=quoted(name),
                band=max(chosen),
                count=count,
            )
        )
    shown = values[..., [number - 1 for number in chosen]]
    bands = chosen if count > 1 else ()
    if shown.dtype == np.uint8:
        check_has_no_window(choices, name)
        return Image.fromarray(np.ascontiguousarray(shown)), Selection(bands=bands, of_bands=count)
    window = choices.window or window_of(shown if empty is None else shown[shown != empty])
    selection = Selection(bands=bands, of_bands=count, window=None if choices.window else window)
    return Image.fromarray(in_window(shown, window)), selection


def picture_of_dicom(
    data: bytes, name: str, most: int, choices: Choices
) -> tuple[Image.Image, Selection]:
    """Return a DICOM image in its window: the chosen one, else the file's, else by percentiles.

    Stored values become those of the modality, such as Hounsfield units, by the rescale slope and
    intercept. MONOCHROME1 is inverted. A frame counts as a page.

    Raises:
        ImageError: it is larger than allowed, or of a kind that is not read.
    """
    file = import_module("pydicom").dcmread(BytesIO(data))
    pages = int(file.get("NumberOfFrames", 1) or 1)
    page = checked_page(choices.page, pages, name)
    check_size(name, most, int(file.Columns), int(file.Rows) * pages)
    values: NDArray[Any] = file.pixel_array
    if pages > 1:
        values = values[page - 1]
    kind = str(file.PhotometricInterpretation)
    if kind == "RGB" and values.dtype == np.uint8 and values.ndim == 3:
        check_has_no_window(choices, name)
        return Image.fromarray(np.ascontiguousarray(values)), Selection(page, pages)
    if not kind.startswith("MONOCHROME") or values.ndim != 2:
        raise ImageError(
            say(
                "{file} is a DICOM image of kind {kind}; HookViz reads MONOCHROME1, MONOCHROME2 "
                "and RGB. Save it as one of these, or as a PNG.",
                file=quoted(name),
                kind=kind,
            )
        )
    slope, intercept = file.get("RescaleSlope", 1), file.get("RescaleIntercept", 0)
    values = values.astype(float) * float(slope) + float(intercept)
    stated = None if choices.window else _stated_window(file)
    level, width = choices.window or stated or window_of(values)
    levels = in_window(values, _as_exact(file, stated) if stated else (level, width))
    selection = Selection(
        page, pages, window=None if choices.window else (level, width), is_stated=stated is not None
    )
    return Image.fromarray(255 - levels if kind == "MONOCHROME1" else levels), selection


def _stated_window(file: Any) -> Window | None:
    """Return the first window that a DICOM file states."""
    found = [file.get(name) for name in ("WindowCenter", "WindowWidth")]
    if any(value is None or value == "" for value in found):
        return None
    numbers = [float(value[0] if hasattr(value, "__getitem__") else value) for value in found]
    return (numbers[0], numbers[1]) if numbers[1] > 0 else None


def _as_exact(file: Any, window: Window) -> Window:
    """Return the window whose ends are black and white, as ours (PS3.3, C.11.2.1.2).

    The default function, LINEAR, goes from centre - 0.5 - (width - 1) / 2 over width - 1.
    """
    level, width = window
    if str(file.get("VOILUTFunction", "LINEAR")) != "LINEAR":
        return window
    return level - 0.5, max(width - 1, 1e-6)
