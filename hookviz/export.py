"""A capture as a file of numbers."""

import io
import zipfile

import numpy as np

from hookviz.types import Capture


def npz(capture: Capture) -> bytes:
    """An NPZ file with every activation under its written address, and the input.

    ``numpy.load`` reads it. The arrays are float32: ``(C, H, W)`` for a conv layer and
    ``(1, C, H, W)`` for the one called ``input``, unless a layer has that name.
    """
    arrays = {"input": capture.input.numpy()}
    arrays |= {address: part.values.numpy() for address, part in capture.items()}
    buffer = io.BytesIO()
    # numpy.savez takes names as keywords, and so no layer called "file".
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, values, allow_pickle=False)
    return buffer.getvalue()
