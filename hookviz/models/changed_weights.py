"""Make a model in whose passes other tensors stand for some of its own."""

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from hookviz.hooking import replicas
from hookviz.hooking.network_state import is_shared, share
from hookviz.types import Model
from hookviz.weights_digest import weights_digest


@torch.inference_mode(mode=False)  # its tensors are ordinary ones wherever it is called
def with_tensors(model: Model, tensors: Mapping[str, Tensor]) -> Model:
    """Return the model with other parameters and buffers, by name; the given one stays as it is.

    A network of the catalog gets modules of its own, which share what is not replaced. Of a network
    of one's own the tensors are put in for the length of each pass, under its lock.
    """
    network = model.network
    named = dict((*nn.Module.named_parameters(network), *nn.Module.named_buffers(network)))
    changed = {name: _like(named[name], values) for name, values in tensors.items()}
    if not is_shared(network):
        return replace(model, replaced={**model.replaced, **changed})
    by_id = {id(named[name]): values for name, values in changed.items()}
    replica = share(replicas.replicate(network, lambda own: by_id.get(id(own), own)))
    return replace(model, network=replica, fixed_digest=weights_digest(replica))


def _like(own: Tensor, values: Tensor) -> Tensor:
    if isinstance(own, nn.Parameter):
        return nn.Parameter(values.detach(), requires_grad=own.requires_grad)
    return values.detach()


def tensors_of(model: Model) -> dict[str, Tensor]:
    """Return the parameters and buffers that the model computes with, by name."""
    network = model.network
    own = (*nn.Module.named_parameters(network), *nn.Module.named_buffers(network))
    return {name: model.replaced.get(name, tensor) for name, tensor in own}
