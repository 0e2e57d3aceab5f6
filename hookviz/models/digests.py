"""What weights are known by: a hash of all of them, the same on every machine and device."""

import hashlib

import torch
from torch import Tensor, nn


def weights_digest(network: nn.Module) -> str:
    """Hash of every parameter and buffer with its name, shape and type, as 32 hex digits."""
    digest = hashlib.blake2b(digest_size=16)
    for key, tensor in network.state_dict().items():
        if not isinstance(tensor, Tensor):
            continue
        plain = tensor.detach().to("cpu").contiguous()
        digest.update(f"{key} {plain.dtype} {tuple(plain.shape)}\n".encode())
        digest.update(plain.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
