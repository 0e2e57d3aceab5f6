"""Write captures as files of numbers, of one image or of several together."""

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import numpy as tensors

from hookviz.types import Capture

Arrays = dict[str, NDArray[Any]]


def npz(capture: Capture) -> bytes:
    """Return an NPZ file with every activation under its written address, and the input.

    ``numpy.load`` reads it. The arrays are float32: ``(C, H, W)`` for a conv layer and
    ``(1, C, H, W)`` for the one called ``input``, unless a layer has that name.
    """
    return _npz(_arrays(capture))


def safetensors(capture: Capture) -> bytes:
    """Return a safetensors file with the arrays that `npz` has, uncompressed.

    ``safetensors.torch.load`` reads it. Its metadata say the model, the weights and their digest.
    """
    return _safetensors(_arrays(capture), capture)


def npz_together(captures: Mapping[str, Capture]) -> bytes:
    """Return an NPZ file with the arrays of several images of one size, by their names.

    As `npz` has them, with the images along a first dimension of their own, ``(N, C, H, W)``, and
    ``input`` too; ``images`` is which is which, N texts, unless a layer has that name.
    """
    return _npz({"images": np.array(list(captures)), **_stacked(captures)})


def safetensors_together(captures: Mapping[str, Capture]) -> bytes:
    """Return a safetensors file with the arrays that `npz_together` has, but for the names.

    Those are in the metadata under ``images``, as a list in JSON.
    """
    first = next(iter(captures.values()))
    return _safetensors(_stacked(captures), first, images=json.dumps(list(captures)))


def _npz(arrays: Arrays) -> bytes:
    buffer = io.BytesIO()
    # numpy.savez takes names as keywords, and so no layer called "file".
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, values in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, values, allow_pickle=False)
    return buffer.getvalue()


def _safetensors(arrays: Arrays, capture: Capture, **more: str) -> bytes:
    about = {"model": capture.model, "weights": capture.weights, "digest": capture.digest}
    written: bytes = tensors.save(arrays, metadata=about | more)
    return written


def _arrays(capture: Capture) -> Arrays:
    arrays: Arrays = {"input": capture.input.numpy()}
    return arrays | {address: part.values.numpy() for address, part in capture.items()}


def _stacked(captures: Mapping[str, Capture]) -> Arrays:
    every = list(captures.values())
    arrays: Arrays = {"input": np.concatenate([capture.input.numpy() for capture in every])}
    return arrays | {
        address: np.stack([capture[address].values.numpy() for capture in every])
        for address in every[0]
    }
