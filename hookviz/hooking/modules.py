"""Find the module behind `torch.compile` and the wrappers for several devices, and its parts.

Hooks sit on the module that a wrapper runs, and parts go by the names that they have in it:
``block.conv``, never ``block._orig_mod.conv`` or ``module.block.conv``. A `SharedBlock` changes the
whole process for a block that several threads may be in at once, such as `as_written`.
"""

import threading
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import AbstractContextManager

import torch
from torch import nn

from hookviz.errors import ModelError, UnknownLayerError
from hookviz.language.saying import say
from hookviz.types import Model


class SharedBlock(AbstractContextManager[None]):
    """Block whose change is made by the first thread to enter, and undone by the last to leave.

    Args:
        begin: makes the change, and returns the function that undoes it.
    """

    def __init__(self, begin: Callable[[], Callable[[], object]]) -> None:
        self._begin = begin
        self._lock = threading.Lock()
        self._blocks = 0
        self._end: Callable[[], object] = bool

    def __enter__(self) -> None:
        with self._lock:
            if not self._blocks:
                self._end = self._begin()
            self._blocks += 1

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks:
                self._end()


_COMPILED = "_orig_mod"  # where an `OptimizedModule` has the module that it was made of
_PARALLEL = (nn.DataParallel, nn.parallel.DistributedDataParallel)


def network_of(network: object) -> nn.Module:
    """Return the module for hooks: a `Model`'s network, or the module inside a wrapper.

    Raises:
        ModelError: `network` is neither a module nor a `Model`.
    """
    *_, inner = _unwrapped(network)
    return inner


def named_modules(
    network: nn.Module, *, remove_duplicate: bool = True
) -> Iterator[tuple[str, nn.Module]]:
    """Yield ``network.named_modules()``, with the original modules in place of compiled ones."""
    for name, module in network.named_modules(remove_duplicate=remove_duplicate):
        if not _is_optimized(module):
            yield plain_name(name), module


def module_named(network: nn.Module, name: str) -> nn.Module:
    """Return the part of that name; the search through all parts is the last resort.

    Raises:
        UnknownLayerError: the part does not exist.
    """
    module = _behind(network)
    for part in plain_name(name).split(".") if name else ():
        # Of a TorchScript module these are no dictionary, and have no `get`.
        inner = module._modules[part] if part in module._modules else None  # noqa: SIM401
        if inner is None:  # another name, or a network that lists its modules in a way of its own
            every = dict(named_modules(network, remove_duplicate=False))
            if plain_name(name) not in every:
                raise UnknownLayerError(say("layer"), name, every)
            return every[plain_name(name)]
        module = _behind(inner)
    return module


def plain_name(name: str, network: object = None) -> str:
    """Return a part's name without the additions of wrappers.

    Args:
        name: of a part or a parameter.
        network: the outermost module: a `torch.nn.DataParallel` adds a leading ``module.``.

    >>> plain_name("block._orig_mod.conv")
    'block.conv'
    """
    parts = [part for part in name.split(".") if part != _COMPILED]
    if network is not None:
        for module in _unwrapped(network):
            if isinstance(module, _PARALLEL) and parts[:1] == ["module"]:
                del parts[0]
    return ".".join(parts)


def without_wrappers(name: str, known: Container[str]) -> str:
    """Return the known name of a layer, without prefixes of `torch.compile` or `DataParallel`.

    >>> without_wrappers("module.block._orig_mod.conv", ["block.conv"])
    'block.conv'
    """
    plain = plain_name(name)
    names = (name, plain, plain.removeprefix("module."))
    return next((each for each in names if each in known), name)


def compiled_parts(network: object) -> tuple[str, ...]:
    """Return the names of the parts that run as a compiled program; ``""`` is the network itself.

    A program calls no layers and no hooks; see `as_written`.
    """
    *wrappers, inner = _unwrapped(network)
    names = ["" for module in wrappers if _is_compiled(module)]
    names += [plain_name(name) for name, module in inner.named_modules() if _is_compiled(module)]
    return tuple(dict.fromkeys(names))


def _run_as_written() -> Callable[[], object]:
    if not hasattr(torch.compiler, "set_stance"):  # before torch 2.6
        return lambda: None
    stance = torch.compiler.set_stance("force_eager")  # it begins at once
    return lambda: stance.__exit__(None, None, None)


as_written = SharedBlock(_run_as_written)
"""Block in which no program of ``torch.compile`` runs, so that hooks are called."""


def is_within(name: str, parts: Iterable[str]) -> bool:
    """Return whether a part is one of `parts`, or inside of one."""
    return any(part in ("", name) or name.startswith(f"{part}.") for part in parts)


def _unwrapped(network: object) -> Iterator[nn.Module]:
    """Yield a module and what it wraps, from the outside to the inside."""
    module = network.network if isinstance(network, Model) else network
    if not isinstance(module, nn.Module):
        raise ModelError(
            say(
                "A torch.nn.Module is taken, or a Model of HookViz, and not {kind}.",
                kind=type(network).__name__,
            )
        )
    yield module
    while _is_optimized(module) or isinstance(module, _PARALLEL):
        module = module.get_submodule(_COMPILED if _is_optimized(module) else "module")
        yield module


def _behind(module: nn.Module) -> nn.Module:
    while _is_optimized(module):
        module = module.get_submodule(_COMPILED)
    return module


def _is_optimized(module: object) -> bool:
    """Return whether `torch.compile` made the module; its class is not imported for that."""
    return (
        type(module).__name__ == "OptimizedModule"
        and type(module).__module__ == "torch._dynamo.eval_frame"
    )


def _is_compiled(module: nn.Module) -> bool:
    if module._compiled_call_impl is not None:
        return True
    forward = getattr(module, "forward", None)
    # `torch.compiler.disable` leaves the first mark too.
    return hasattr(forward, "_torchdynamo_orig_callable") and not hasattr(
        forward, "_torchdynamo_disable"
    )
