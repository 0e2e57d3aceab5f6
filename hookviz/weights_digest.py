"""Hash a network's weights, and tell without reading them whether they are still the same."""

import hashlib
from collections.abc import Mapping, MutableMapping
from itertools import count

import torch
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

_numbers = count(1)
_number_of: MutableMapping[nn.Module, int] = WeakIdKeyDictionary()
_digests: MutableMapping[nn.Module, tuple[str, str]] = WeakIdKeyDictionary()


def fingerprint(network: nn.Module, *, with_buffers: bool = True) -> str:
    """Return a text that is another one after a write to a parameter or buffer, or a new module.

    Modules and tensors count by identity, writes by PyTorch's version counters, which miss those
    through ``.data`` and NumPy. It holds for this process. Without buffers it stays as it is while
    a pass moves those.
    """
    state: list[object] = []
    for module in network.modules():
        state.append(id(module))
        for table in (module._parameters, module._buffers)[: 1 + with_buffers]:
            state += [(id(each), _writes(each)) for each in table.values() if each is not None]
    number = _number_of.get(network)
    if number is None:
        number = _number_of[network] = next(_numbers)
    return f"own-{number}-{hash(tuple(state)) & (2**64 - 1):x}"


_PLAIN = frozenset((bool, int, float, str, type(None)))


def settings_of(network: nn.Module) -> int:
    """Return a hash of the modules' plain attributes, which a forward may ask what to run.

    Numbers, texts, truth values and tuples of these; training flags aside.
    """
    settings: list[object] = []
    for module in network.modules():
        for name, value in module.__dict__.items():
            kind = type(value)
            is_plain = kind in _PLAIN or (kind is tuple and _PLAIN.issuperset(map(type, value)))
            if is_plain and name != "training":
                settings += (name, value)
    return hash(tuple(settings))


def weights_digest(network: nn.Module, replaced: Mapping[str, Tensor] | None = None) -> str:
    """Return the hash of every parameter and buffer by name, a ``w`` and 32 hex digits.

    Equal for equal weights in any process.

    Args:
        network: is only read.
        replaced: tensors that stand for some of its own, by name.
    """
    if replaced:
        return _hashed(network, replaced)
    now = fingerprint(network)
    before, digest = _digests.get(network, ("", ""))
    if before != now:
        digest = _hashed(network, {})
        _digests[network] = now, digest
    return digest


def _hashed(network: nn.Module, replaced: Mapping[str, Tensor]) -> str:
    found = hashlib.blake2b(type(network).__qualname__.encode(), digest_size=16)
    # Of nn.Module itself: a person's own `parameters` may give groups for an optimiser.
    named = [*nn.Module.named_parameters(network), *nn.Module.named_buffers(network)]
    for name, tensor in named:
        values = replaced.get(name, tensor).detach()
        found.update(f"{name} {values.dtype} {tuple(values.shape)} ".encode())
        if not values.is_meta:
            plain = values.to("cpu").resolve_conj().resolve_neg().contiguous()
            found.update(plain.reshape(-1).view(torch.uint8).numpy().data)
    return f"w{found.hexdigest()}"


def _writes(tensor: Tensor) -> int:
    return -1 if tensor.is_inference() else tensor._version
