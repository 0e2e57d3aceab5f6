"""A capture as a file of numbers."""

import io
import zipfile

import numpy as np
from numpy.typing import NDArray
from safetensors import numpy as tensors

from hookviz.types import Capture


def npz(capture: Capture) -> bytes:
    """An NPZ file with every activation under its written address, and the input.

    ``numpy.load`` reads it. The arrays are float32: ``(C, H, W)`` for a conv layer and
    ``(1, C, H, W)`` for the one called ``input``, unless a layer has that name.
    """
    buffer = io.BytesIO()
    # numpy.savez takes names as keywords, and so no layer called "file".
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, values in _arrays(capture).items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, values, allow_pickle=False)
    return buffer.getvalue()


def safetensors(capture: Capture) -> bytes:
    """A safetensors file with the arrays that `npz` has, uncompressed.

    ``safetensors.torch.load`` reads it. Its metadata say the model, the weights and their digest.
    """
    about = {"model": capture.model, "weights": capture.weights, "digest": capture.digest}
    written: bytes = tensors.save(_arrays(capture), metadata=about)
    return written


def _arrays(capture: Capture) -> dict[str, NDArray[np.float32]]:
    arrays: dict[str, NDArray[np.float32]] = {"input": capture.input.numpy()}
    return arrays | {address: part.values.numpy() for address, part in capture.items()}
