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
    """Block of which the first thread to enter makes the change, and the last to leave undoes it.

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
    """Return the module to put hooks on: of a `Model` its network, of a wrapper what it runs.

    Raises:
        ModelError: `network` is neither a module nor a `Model`.
    """
    *_, inner = _unwrapped(network)
    return inner


def named_modules(
    network: nn.Module, *, remove_duplicate: bool = True
) -> Iterator[tuple[str, nn.Module]]:
    """Yield what ``network.named_modules()`` does; in place of compiled parts those behind them."""
    for name, module in network.named_modules(remove_duplicate=remove_duplicate):
        if not _is_optimized(module):
            yield plain_name(name), module


def module_named(network: nn.Module, name: str) -> nn.Module:
    """Return the part of that name; all are listed only where the way there does not find it.

    Raises:
        UnknownLayerError: the network has no such part.
    """
    found = _behind(network)
    for part in plain_name(name).split(".") if name else ():
        # Of a TorchScript module these are no dictionary, and have no `get`.
        inner = found._modules[part] if part in found._modules else None  # noqa: SIM401
        if inner is None:  # another name, or a network that lists its modules in a way of its own
            every = dict(named_modules(network, remove_duplicate=False))
            if plain_name(name) not in every:
                raise UnknownLayerError(say("layer"), name, every)
            return every[plain_name(name)]
        found = _behind(inner)
    return found


def plain_name(name: str, given: object = None) -> str:
    """Return a part's name without what wrappers add to it.

    Args:
        name: of a part or a parameter.
        given: the network as it was given: of a `torch.nn.DataParallel` a leading ``module.`` is
            such an addition too.

    >>> plain_name("block._orig_mod.conv")
    'block.conv'
    """
    parts = [part for part in name.split(".") if part != _COMPILED]
    if given is not None:
        for module in _unwrapped(given):
            if isinstance(module, _PARALLEL) and parts[:1] == ["module"]:
                del parts[0]
    return ".".join(parts)


def without_wrappers(name: str, known: Container[str]) -> str:
    """Return the known name of a layer that `torch.compile` or `nn.DataParallel` call otherwise.

    >>> without_wrappers("module.block._orig_mod.conv", ["block.conv"])
    'block.conv'
    """
    plain = plain_name(name)
    names = (name, plain, plain.removeprefix("module."))
    return next((each for each in names if each in known), name)


def compiled_parts(network: object) -> tuple[str, ...]:
    """Return the names of the parts that run as a compiled program; ``""`` is the network itself.

    A program calls no layers, so that no hook sees any; see `as_written`.
    """
    *wrappers, inner = _unwrapped(network)
    names = ["" for module in wrappers if _is_compiled(module)]
    names += [plain_name(name) for name, module in inner.named_modules() if _is_compiled(module)]
    return tuple(dict.fromkeys(names))


def _run_as_written() -> Callable[[], object]:
    if not hasattr(torch.compiler, "set_stance"):  # before torch 2.6
        return lambda: None
    stance = torch.compiler.set_stance("force_eager")  # which has begun as it is made
    return lambda: stance.__exit__(None, None, None)


as_written = SharedBlock(_run_as_written)
"""Block in which nothing runs as ``torch.compile`` made it, so that hooks are called."""


def is_within(name: str, parts: Iterable[str]) -> bool:
    """Return whether a part is one of these, or inside of one."""
    return any(part in ("", name) or name.startswith(f"{part}.") for part in parts)


def _unwrapped(network: object) -> Iterator[nn.Module]:
    """Yield a module and what it wraps, from the outside to the inside."""
    found = network.network if isinstance(network, Model) else network
    if not isinstance(found, nn.Module):
        raise ModelError(
            say(
                "A torch.nn.Module is taken, or a Model of HookViz, and not {kind}.",
                kind=type(network).__name__,
            )
        )
    yield found
    while _is_optimized(found) or isinstance(found, _PARALLEL):
        found = found.get_submodule(_COMPILED if _is_optimized(found) else "module")
        yield found


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
