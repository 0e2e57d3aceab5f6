"""The one home of hooks: record what layers put out, and be gone on every way out."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from torch import Tensor, nn

from hookviz.errors import UnknownLayerError
from hookviz.types import Address


@dataclass(frozen=True, eq=False, slots=True)
class Call:
    """One call of one layer, as a forward hook sees it.

    Attributes:
        layer: the module's dotted path.
        index: 0 for its first call in this pass, 1 for its second.
        inputs: the positional and keyword arguments, by reference.
        output: whatever the module returned, by reference.
    """

    layer: str
    index: int
    inputs: tuple[Any, ...]
    output: Any


@contextmanager
def observe(
    network: nn.Module, layers: Iterable[str], see: Callable[[Call], None]
) -> Iterator[None]:
    """Call `see` after every call of the named layers while the block runs.

    All names are resolved before the first hook is registered, and every hook is removed on every
    way out, `KeyboardInterrupt` and Streamlit's control exceptions included. Other people's hooks
    stay. What `see` raises ends the forward pass.

    Raises:
        UnknownLayerError: the network has no layer of that name.
    """
    every: dict[str, nn.Module] = dict(network.named_modules(remove_duplicate=False))
    every.pop("")  # the network itself is not one of its layers
    modules = {name: _find(every, name) for name in layers}
    counts = dict.fromkeys(modules, 0)

    def watcher(name: str) -> Callable[..., None]:
        def hook(
            _module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any
        ) -> None:
            call = Call(name, counts[name], (*args, *kwargs.values()), output)
            counts[name] += 1
            see(call)

        return hook

    with ExitStack() as hooks:
        for name, module in modules.items():
            handle = module.register_forward_hook(watcher(name), with_kwargs=True)
            hooks.callback(handle.remove)
        yield


@dataclass(frozen=True, eq=False, slots=True)
class Recorded:
    """A tensor that a layer put out, held by reference, with proof of whether it was written to.

    Attributes:
        address: layer, call and part of the output.
        tensor: as the layer returned it, or a copy of it where a copy was asked for.
        version: the tensor's version counter at that moment.
    """

    address: Address
    tensor: Tensor
    version: int

    @property
    def overwritten(self) -> bool:
        """Whether something wrote into the tensor after the hook had seen it.

        An in-place operation counts up ``_version``, also through views of the same memory.
        """
        return self.tensor._version != self.version


class Recorder:
    """Keeps every tensor that the observed layers put out."""

    def __init__(self, copy: Iterable[str] = ()) -> None:
        """Start empty; what the layers in `copy` put out is copied, as it gets overwritten."""
        self.records: list[Recorded] = []
        self._copy = frozenset(copy)

    def see(self, call: Call) -> None:
        """Take in one call: every tensor of its output, nested or not."""
        for path, tensor in tensors_in(call.output):
            kept = tensor.detach()
            if call.layer in self._copy:
                kept = kept.clone()
            address = Address(call.layer, call.index, path)
            self.records.append(Recorded(address, kept, kept._version))

    def overwritten_layers(self) -> frozenset[str]:
        """Layers whose recorded output was written to later, and so can't be trusted."""
        return frozenset(record.address.layer for record in self.records if record.overwritten)


class StopForward(BaseException):
    """Raised inside a hook when everything wanted is recorded.

    A `BaseException`, so that no ``except Exception`` of a network's own code catches it.
    """


def _find(modules: Mapping[str, nn.Module], name: str) -> nn.Module:
    try:
        return modules[name]
    except KeyError:
        raise UnknownLayerError("layer", name, modules) from None


def tensors_in(output: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Tensor]]:
    """Every tensor inside a layer's output with its path: tuples, lists, dicts, dataclasses."""
    if isinstance(output, Tensor):
        yield path, output
    elif isinstance(output, Mapping):
        for key, value in output.items():
            yield from tensors_in(value, (*path, str(key)))
    elif isinstance(output, tuple) and hasattr(output, "_fields"):
        for key, value in zip(output._fields, output, strict=True):
            yield from tensors_in(value, (*path, key))
    elif isinstance(output, Sequence) and not isinstance(output, str | bytes):
        for place, value in enumerate(output):
            yield from tensors_in(value, (*path, str(place)))
    elif is_dataclass(output) and not isinstance(output, type):
        for part in fields(output):
            yield from tensors_in(getattr(output, part.name), (*path, part.name))
