"""Which hooks on a network are its own, and which somebody has put there to look at it.

A weight norm computes the weight in a hook: without it the network would compute something else.
A person's own hook, or one of `hookviz.watch`, sees the passes of the module that it was put on; a
copy that took it along would call it with images that are none of theirs.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from types import MethodType
from typing import Any

from torch import nn

_TABLES = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_FLAGS = (
    *("_forward_hooks_with_kwargs", "_forward_hooks_always_called"),
    "_forward_pre_hooks_with_kwargs",
)
_PARTS_OF_TORCH = ("torch.nn.utils.", "torch.ao.")

Place = tuple[int, str, int]
"""Which module, in order of ``network.modules()``; which table of it; which key."""


def foreign_hooks(network: nn.Module) -> dict[Place, Any]:
    """Every forward and backward hook that is not the network's own, by where it is.

    Its own are torch's (weight norm, spectral norm, pruning), and methods of the network's modules.
    """
    modules = tuple(network.modules())
    own = {id(module) for module in modules}
    return {
        (number, table, key): hook
        for number, module in enumerate(modules)
        for table in _TABLES
        for key, hook in getattr(module, table).items()
        if not any(_belongs(part, own) for part in _callables(hook))
    }


def remove(network: nn.Module, places: Iterable[Place]) -> None:
    """Take the hooks at these places off a copy of the network that they were found on."""
    modules = tuple(network.modules())
    for number, table, key in places:
        module = modules[number]
        for name in (table, *_FLAGS):
            getattr(module, name).pop(key, None)
        if not module._backward_hooks:
            module._is_full_backward_hook = None


def _callables(hook: Any) -> Iterator[Any]:
    """What a hook calls, partial applications and their arguments unpacked."""
    if isinstance(hook, partial):
        for part in (hook.func, *hook.args, *hook.keywords.values()):
            yield from _callables(part)
    else:
        yield hook


def _belongs(part: Any, own: set[int]) -> bool:
    if id(part) in own:
        return True
    if isinstance(part, MethodType):
        return id(part.__self__) in own or _belongs(part.__self__, own)
    return any(
        f"{kind.__module__}.".startswith(_PARTS_OF_TORCH)
        for kind in (*type(part).__mro__, part)
        if isinstance(getattr(kind, "__module__", None), str)
    )
