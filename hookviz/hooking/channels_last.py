"""Run convolutional networks with their channels last in memory, where rounding may differ.

The shapes stay ``(N, C, H, W)``; in memory the channels of a cell lie side by side, for which CPUs
have faster convolutions (docs/benchmarks.md). Weights must have the same layout: with the input
alone ResNet-18 takes half as long again as in a plain pass. The values equal those of a plain pass
within `ROUNDING` and not to the bit, so `capture` never computes this way.
"""

from collections.abc import MutableMapping
from dataclasses import replace
from weakref import ref

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.utils.weak import WeakIdKeyDictionary

from hookviz.errors import ModelError
from hookviz.hooking import hooks, network_state
from hookviz.hooking.forward_pass import forward_pass, private_replica
from hookviz.hooking.network_state import ByNetwork, is_shared, share
from hookviz.hooking.torch_functions import counter
from hookviz.language.saying import say
from hookviz.types import Model

ROUNDING = 2e-5
"""Share of the largest number by which a pass with channels last may differ from a plain one."""

_LEAST = 500_000
"""Numbers in convolutions from which it wins; what is smaller has done its pass before."""

_WITH_WEIGHTS = (nn.Conv2d, nn.ConvTranspose2d, nn.Linear, _NormBase, nn.GroupNorm, nn.PReLU)

_suits: MutableMapping[nn.Module, bool] = ByNetwork()
_agrees: MutableMapping[nn.Module, bool] = ByNetwork()
_copies: MutableMapping[nn.Module, tuple[ref[nn.Module], object]] = ByNetwork()
_origins: MutableMapping[nn.Module, ref[nn.Module]] = WeakIdKeyDictionary()


def lay_out(images: Tensor) -> Tensor:
    """Return images, ``(N, C, H, W)``, with their channels last in memory; others as they are."""
    return images.contiguous(memory_format=torch.channels_last) if images.ndim == 4 else images


def is_convolutional(network: nn.Module) -> bool:
    """Return whether channels last make the network faster: float32 on a CPU, a plain CNN.

    It is of the catalog, and its weights are in 2-D convolutions, half a million or more, in linear
    layers and in norms over channels. Networks with attention or layer norms are left alone, and so
    are a person's own networks, which are run as their owners run them.
    """
    if not is_shared(network):
        return False
    suits = _suits.get(network)
    if suits is None:
        suits = _suits[network] = _has_weights_of_a_cnn(network)
    return suits


def _has_weights_of_a_cnn(network: nn.Module) -> bool:
    owners = [module for module in network.modules() if _weights(module)]
    convs = [module for module in owners if isinstance(module, nn.Conv2d)]
    weights = [weight for module in owners for weight in _weights(module)]
    return (
        sum(weight.numel() for conv in convs for weight in _weights(conv)) >= _LEAST
        and all(isinstance(module, _WITH_WEIGHTS) for module in owners)
        and {(weight.device.type, weight.dtype) for weight in weights} == {("cpu", torch.float32)}
    )


def _weights(module: nn.Module) -> list[Tensor]:
    return [weight for weight in module._parameters.values() if weight is not None]


def with_channels_last(model: Model) -> Model:
    """Return the model around a network whose weights have their channels last in memory.

    The model itself where that gains nothing. The new network has modules of its own and shares the
    tensors that did not move. It is freed with the returned model, and made anew after weights were
    written or replaced. It is for passes only: cached findings, such as a trace, are those of the
    original.
    """
    network = model.network
    if original(network) is not network or not is_convolutional(network):
        return model
    copy, weights = _copies.get(network), _weights_now(network)
    fast = copy[0]() if copy is not None and copy[1] == weights else None
    if fast is None:
        fast = share(network_state.replicate(network, _moved))
        _copies[network], _origins[fast] = (ref(fast), weights), ref(network)
    return replace(model, network=fast)


def _weights_now(network: nn.Module) -> object:
    """Return a fingerprint of the weights, which changes when they are written or replaced.

    Writes that bypass the counters, as through ``.data``, are not seen.
    """
    return [(id(weight), counter(weight)) for weight in network.parameters()]


def original(network: nn.Module) -> nn.Module:
    """Return the network that `with_channels_last` made this one of; else the network itself."""
    origin = _origins.get(network)
    return network if origin is None else origin() or network


def _moved(tensor: Tensor) -> Tensor:
    """Return a convolution's weights with their channels last; any other tensor itself."""
    if tensor.ndim != 4 or not isinstance(tensor, nn.Parameter):
        return tensor
    moved = tensor.detach().contiguous(memory_format=torch.channels_last)
    return nn.Parameter(moved, requires_grad=tensor.requires_grad)


def faster_model(model: Model, images: Tensor) -> Model:
    """Return `with_channels_last` of a model whose outputs were seen to agree, else the model.

    Both layouts are tried on `images`, once for each network: code can depend on the memory layout
    of its input, and then gets the plain one.

    Args:
        model: from `load_model` or `wrap`.
        images: ``(N, C, H, W)``; for any other shape the model itself is returned.

    Raises:
        ModelError: the network can't take them plainly.
    """
    agrees = _agrees.get(model.network)
    if images.ndim != 4 or agrees is False:
        return model
    fast = with_channels_last(model)
    if fast is model:
        return model
    if agrees is None:
        agrees = _agrees[model.network] = _agree(model, fast, images)
    return fast if agrees else model


def _agree(model: Model, fast: Model, images: Tensor) -> bool:
    plain = _outputs(model, images)
    try:
        faster = _outputs(fast, lay_out(images))
    except ModelError:  # such as of a `view` of a tensor with channels last
        return False
    return len(plain) == len(faster) and all(map(_is_close, plain, faster))


def _outputs(model: Model, images: Tensor) -> list[Tensor]:
    with private_replica(model) as replica:
        output = forward_pass(model, replica, images)
    return [tensor for _path, tensor in hooks.tensors_in(output)]


def _is_close(plain: Tensor, faster: Tensor) -> bool:
    if plain.shape != faster.shape or not plain.is_floating_point():
        return torch.equal(plain, faster)
    finite = plain[plain.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    return torch.allclose(faster, plain, rtol=0, atol=ROUNDING * largest, equal_nan=True)


def rounding_note(model: Model) -> str:
    """Return the note on rounding of passes through `model`; empty for plain passes."""
    if original(model.network) is model.network:
        return ""
    return say(
        "Computed with channels last in memory, which is faster: numbers are those of a plain pass "
        "to 2 in 100,000 of the largest."
    )
