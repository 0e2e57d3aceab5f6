"""The one home of hooks: see and change what layers take in and put out, and be gone afterwards.

Every way in takes names, resolves them all before the first hook is registered, and removes every
hook on every way out, `KeyboardInterrupt` and Streamlit's control exceptions included. Other
people's hooks stay. What a callback raises ends the pass.
"""

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
        inputs: all arguments, those given by name after the others, by reference.
        output: whatever the module returned, by reference; None before the call.
        names: of the last so many of `inputs`, which were given by name.
    """

    layer: str
    index: int
    inputs: tuple[Any, ...]
    output: Any
    names: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional arguments, and those given by name."""
        positional = len(self.inputs) - len(self.names)
        return self.inputs[:positional], dict(
            zip(self.names, self.inputs[positional:], strict=True)
        )


@contextmanager
def observe(
    network: nn.Module, layers: Iterable[str], see: Callable[[Call], None]
) -> Iterator[None]:
    """Call `see` after every call of the named layers while the block runs.

    Raises:
        UnknownLayerError: the network has no layer of that name.
    """

    def unchanged(call: Call) -> None:
        see(call)  # whatever it returns, the network goes on with its own output

    with edit(network, layers, unchanged):
        yield


@contextmanager
def edit(
    network: nn.Module, layers: Iterable[str], change: Callable[[Call], Any]
) -> Iterator[None]:
    """Go on with what `change` makes of every call of the named layers, while the block runs.

    Where it returns None, the network goes on with the layer's own output.

    Raises:
        UnknownLayerError: the network has no layer of that name.
    """
    modules = _resolve(network, layers)
    counts = dict.fromkeys(modules, 0)

    def watcher(name: str) -> Callable[..., Any]:
        def hook(
            _module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any
        ) -> Any:
            call = Call(name, counts[name], (*args, *kwargs.values()), output, tuple(kwargs))
            counts[name] += 1
            return change(call)

        return hook

    with ExitStack() as hooks:
        for name, module in modules.items():
            handle = module.register_forward_hook(watcher(name), with_kwargs=True)
            hooks.callback(handle.remove)
        yield


@contextmanager
def before(
    network: nn.Module, layers: Iterable[str], see: Callable[[Call], None]
) -> Iterator[None]:
    """Call `see` before every call of the named layers, when there is no output yet.

    This is the time to copy what a layer takes in: an in-place layer writes over it.

    Raises:
        UnknownLayerError: the network has no layer of that name.
    """
    modules = _resolve(network, layers)
    counts = dict.fromkeys(modules, 0)

    def watcher(name: str) -> Callable[..., None]:
        def hook(_module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
            call = Call(name, counts[name], (*args, *kwargs.values()), None, tuple(kwargs))
            counts[name] += 1
            see(call)

        return hook

    with ExitStack() as hooks:
        for name, module in modules.items():
            handle = module.register_forward_pre_hook(watcher(name), with_kwargs=True)
            hooks.callback(handle.remove)
        yield


@contextmanager
def on_gradients(change: Callable[[str, Tensor], Tensor | None]) -> Iterator["GradientHooks"]:
    """Somewhere to name tensors whose gradients `change` shall see while the block runs.

    It is given the name and the gradient as a backward pass computes it, and what it returns takes
    the gradient's place; None keeps it.
    """
    with ExitStack() as hooks:
        yield GradientHooks(hooks, change)


class GradientHooks:
    """The tensors whose gradients are seen; see `on_gradients`."""

    def __init__(self, hooks: ExitStack, change: Callable[[str, Tensor], Tensor | None]) -> None:
        self._hooks = hooks
        self._change = change

    def add(self, name: str, tensor: Tensor) -> None:
        """See this tensor's gradient too; the tensor must be part of a graph or a leaf of one."""

        def hook(gradient: Tensor) -> Tensor | None:
            return self._change(name, gradient)

        handle: Any = tensor.register_hook(hook)  # type: ignore[no-untyped-call]
        self._hooks.callback(handle.remove)


@dataclass(frozen=True, eq=False, slots=True)
class Recorded:
    """A tensor that a layer put out, held by reference, with proof of whether it was written to.

    Attributes:
        address: layer, call and part of the output.
        tensor: as the layer returned it, or a copy of it where a copy was asked for.
        version: the tensor's version counter at that moment; −1 for a copy of an inference tensor,
            which has none.
    """

    address: Address
    tensor: Tensor
    version: int

    @property
    def overwritten(self) -> bool:
        """Whether something wrote into the tensor after the hook had seen it.

        An in-place operation counts up ``_version``, also through views of the same memory.
        """
        return self.version >= 0 and self.tensor._version != self.version


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
            if call.layer in self._copy or kept.is_inference():
                kept = kept.clone()
            address = Address(call.layer, call.index, path)
            version = -1 if kept.is_inference() else kept._version
            self.records.append(Recorded(address, kept, version))

    def overwritten_layers(self) -> frozenset[str]:
        """Layers whose recorded output was written to later, and so can't be trusted."""
        return frozenset(record.address.layer for record in self.records if record.overwritten)


class StopForward(BaseException):
    """Raised inside a hook when everything wanted is recorded.

    A `BaseException`, so that no ``except Exception`` of a network's own code catches it.
    """


def _resolve(network: nn.Module, layers: Iterable[str]) -> dict[str, nn.Module]:
    every: dict[str, nn.Module] = dict(network.named_modules(remove_duplicate=False))
    every.pop("")  # the network itself is not one of its layers
    found = {}
    for name in layers:
        if name not in every:
            raise UnknownLayerError("layer", name, every)
        found[name] = every[name]
    return found


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
