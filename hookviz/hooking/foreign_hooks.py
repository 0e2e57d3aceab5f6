"""Tell a network's own hooks, such as weight norm's, from those put on it to look at it.

A weight norm computes the weight in a hook: without it the network would compute something else.
A person's own hook, or one of `hookviz.watch`, sees the passes of the module that it was put on; a
copy that took it along would call it with images that are none of theirs.
"""

from collections.abc import Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from hookviz.hooking.copies import held_by, insides

_TABLES = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_FLAGS = (
    *("_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
    "_forward_pre_hooks_with_kwargs",
)
_PARTS_OF_TORCH = ("torch.nn.utils.", "torch.ao.")

Place = tuple[str, str, int]
"""Which module, by its name; which table of it; which key."""

_ANYBODYS = (Tensor, tuple, frozenset, type, ModuleType, BuiltinFunctionType)
"""What a network holds and a hook refers to without having to do with each other."""

_adopted: MutableMapping[nn.Module, frozenset[Place]] = WeakIdKeyDictionary()


def foreign_hooks(network: nn.Module) -> dict[Place, Any]:
    """Return every forward and backward hook that is not the network's own, by its place.

    Its own are torch's (weight norm, spectral norm, pruning), methods of the network's modules and
    of what they hold, functions that were made inside of such a method or that reach what the
    network holds, and those that were adopted.
    """
    every = {
        (name, table, key): hook
        for name, module in network.named_modules()
        for table in _TABLES
        for key, hook in getattr(module, table).items()
    }
    if not every:
        return {}
    own = _Own(network)
    adopted = _adopted.get(network, frozenset())
    return {
        place: hook
        for place, hook in every.items()
        if place not in adopted and not any(map(own.has, _callables(hook)))
    }


def adopt(network: nn.Module, places: Iterable[Place]) -> None:
    """Count the hooks at these places among the network's own from now on."""
    if every := _adopted.get(network, frozenset()).union(places):
        _adopted[network] = every


@contextmanager
def adopted_for(network: nn.Module, places: Iterable[Place]) -> Iterator[None]:
    """Count the hooks at these places among the network's own in the block, by copies too."""
    adopt(network, places)
    try:
        yield
    finally:
        del _adopted[network]


def adopted(network: nn.Module) -> frozenset[Place]:
    """Return the places of the hooks that were adopted."""
    return _adopted.get(network, frozenset())


def remove(network: nn.Module, places: Iterable[Place]) -> None:
    """Take the hooks at these places off a copy of the network that they were found on."""
    modules = dict(network.named_modules())
    for name, table, key in places:
        module = modules.get(name)
        if module is None:  # a graph module is copied without what its graph does not call
            continue
        for part in (table, *_FLAGS):
            getattr(module, part).pop(key, None)
        if not module._backward_hooks:
            module._is_full_backward_hook = None


def _callables(hook: Any) -> Iterator[Any]:
    """Yield what a hook calls, with partial applications and their arguments unpacked."""
    if isinstance(hook, partial):
        for part in (hook.func, *hook.args, *hook.keywords.values()):
            yield from _callables(part)
    else:
        yield hook


class _Own:
    """Objects and classes that belong to a network, by which its own hooks are recognised."""

    def __init__(self, network: nn.Module) -> None:
        modules = tuple(network.modules())
        tables = {id(getattr(module, table)): None for module in modules for table in _TABLES}
        held = [value for value in held_by(network, tables) if not isinstance(value, _ANYBODYS)]
        self._objects = {id(part) for part in (*modules, *held)}
        self._held = held  # alive, or an identity could go to another
        self._makers = tuple(
            {
                (base.__module__, f"{base.__qualname__}.")
                for module in modules
                for base in type(module).__mro__
            }
        )

    def has(self, part: Any) -> bool:
        """Return whether a part of a hook is the network's, or torch's."""
        if id(part) in self._objects:
            return True
        if isinstance(part, MethodType):
            return self.has(part.__self__)
        if isinstance(part, FunctionType):
            if part.__module__.startswith("hookviz."):
                return False
            made_inside = any(
                part.__module__ == module and part.__qualname__.startswith(name)
                for module, name in self._makers
            )
            return made_inside or any(id(value) in self._objects for value in insides(part))
        return any(
            f"{kind.__module__}.".startswith(_PARTS_OF_TORCH)
            for kind in (*type(part).__mro__, part)
            if isinstance(getattr(kind, "__module__", None), str)
        )
