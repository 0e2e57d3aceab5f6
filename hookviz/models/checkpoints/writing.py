"""Write a model's weights as a safetensors file, which `load_model` reads again."""

from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor, nn

from hookviz.errors import WeightsError
from hookviz.hooking.forward_pass import private_replica
from hookviz.models.wrapping import as_model
from hookviz.paths import path_ending_in, write_file
from hookviz.types import Model

SUFFIX = ".safetensors"


def weights_bytes(model: Model) -> bytes:
    """Encode every parameter and buffer under its name as the bytes of a safetensors file.

    What several layers share is written once for each.
    """
    with private_replica(model) as network:
        tensors = {
            name: tensor.detach().to("cpu", memory_format=torch.contiguous_format, copy=True)
            for name, tensor in network.state_dict().items()
            if isinstance(tensor, Tensor)
        }
    data: bytes = save(tensors, {"format": "pt", "model": model.name, "weights": model.weights})
    return data


def save_weights(model: Model | nn.Module, path: str | Path) -> Path:
    """Write a model's weights as safetensors, and return the path.

    A model of the catalog is had again, with the same scores to the bit, by
    ``load_model(model.name, path)``; a network of one's own by ``load_state_dict`` with what
    ``safetensors.torch.load_file`` reads.

    Args:
        model: from `load_model`, `wrap` or `prune`, or a module of one's own.
        path: ends in ``.safetensors``.

    Raises:
        WeightsError: it ends in something else, or can't be written.

    >>> import tempfile
    >>> model = hookviz.prune(hookviz.load_model("shapesnet"), 0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = hookviz.save_weights(model, f"{folder}/half.safetensors")
    ...     again = hookviz.load_model("shapesnet", path)
    >>> again.digest == model.digest
    True
    """
    file = path_ending_in(path, (SUFFIX,), WeightsError)
    write_file(file, weights_bytes(as_model(model)), WeightsError)
    return file
