"""Copy networks deeply, so that nothing in the copy refers to the original.

`copy.deepcopy` takes functions over as they are, so a lambda that a module keeps as an attribute
goes on calling the original's layers and counting in the original's lists. Here functions are
copied as well, with what they close over; so are weak references, and what ``lru_cache`` makes,
whose copy remembers nothing yet. And it refuses tensors that came of a computation, as the product
of an old weight norm did; here their values are copied.
"""

import copy
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import _lru_cache_wrapper, lru_cache, partial, update_wrapper
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, WeakMethod, WeakSet, WeakValueDictionary, ref

from torch import Tensor, nn

from hookviz.hooking.module_copies import (
    EmptyCopy,
    copied_or_shared,
    is_copied_in_its_own_way,
    repair_graphs,
)

Network = TypeVar("Network", bound=nn.Module)


def deep_copy(network: Network, memo: dict[int, Any] | None = None) -> Network:
    """Copy the network and all that its attributes reach, the insides of functions too.

    Args:
        network: what to copy.
        memo: what stands for an object, by its id; as of `copy.deepcopy`. Such an object is not
            looked into.
    """
    memo = {} if memo is None else memo
    late = _begin(network, memo)
    copied = copy.deepcopy(network, memo)
    for fill in late:
        fill()
    repair_graphs(network, copied, memo)
    return copied


def _begin(network: nn.Module, memo: dict[int, Any]) -> list[Callable[[], None]]:
    """Put into `memo` what `copy.deepcopy` would copy wrongly; return what fills it afterwards."""
    held = list(held_by(network, memo))
    referents = {id(each()) for value in held for each in _references(value)}
    late: list[Callable[[], None]] = [
        EmptyCopy(module, memo).fill
        for module in network.modules()
        if id(module) not in memo and (is_copied_in_its_own_way(module) or id(module) in referents)
    ]
    for value in held:
        if isinstance(value, Tensor) and not value.is_leaf:
            memo[id(value)] = value.detach().clone()
    for value in held:
        if isinstance(value, FunctionType) and _keeps_something(value):
            memo[id(value)] = _without_insides(value)
            late.append(partial(_fill, memo[id(value)], value, memo))
        elif isinstance(value, _lru_cache_wrapper):
            late.append(_forgetful(value, memo))
        elif isinstance(value, ref):
            _point(value, memo)
        elif isinstance(value, _WEAK):
            memo[id(value)] = type(value)()
            late.append(partial(_gather, memo[id(value)], value, memo))
    return late


_WEAK = (WeakKeyDictionary, WeakValueDictionary, WeakSet)


def _references(value: Any) -> Iterator[ref[Any]]:
    """Yield the weak references that are a value, or in it."""
    if isinstance(value, ref):
        yield value
    elif isinstance(value, WeakKeyDictionary | WeakSet):
        yield from map(ref, value)
    elif isinstance(value, WeakValueDictionary):
        yield from map(ref, value.values())


def _point(reference: ref[Any], memo: dict[int, Any]) -> None:
    """Make the copy of a weak reference refer to the copied object, which `memo` has already."""
    if isinstance(reference, WeakMethod):
        method = reference()
        if method is not None and id(method.__self__) in memo:
            bound = MethodType(method.__func__, memo[id(method.__self__)])
            memo[id(reference)] = WeakMethod(bound)
    elif id(reference()) in memo:
        memo[id(reference)] = ref(memo[id(reference())])


def _gather(copied: Any, weak: Any, memo: dict[int, Any]) -> None:
    """Put the copies of what is in a weak container into its copy."""
    if isinstance(weak, WeakSet):
        copied.update(copied_or_shared(part, memo) for part in weak)
    else:
        copied.update(
            (copied_or_shared(key, memo), copied_or_shared(value, memo))
            for key, value in weak.items()
        )


def _forgetful(cached: Any, memo: dict[int, Any]) -> Callable[[], None]:
    """Let an ``lru_cache`` be copied as an empty one; return the function that undoes this."""
    inside: list[Any] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        return inside[0](*args, **kwargs)

    copied = lru_cache(**cached.cache_parameters())(call)
    update_wrapper(copied, cached)
    copied.__wrapped__ = call
    memo[id(cached)] = copied
    return lambda: inside.append(copied_or_shared(cached.__wrapped__, memo))


def unwrapped(value: Any) -> Any:
    """Return the function inside partial applications, methods and caches; else the value."""
    while True:
        if isinstance(value, partial):
            value = value.func
        elif isinstance(value, MethodType | staticmethod | classmethod):
            value = value.__func__
        elif isinstance(value, _lru_cache_wrapper):
            value = value.__wrapped__
        else:
            return value


def names_in(code: CodeType) -> set[str]:
    """Return every name that some code refers to, inner functions included."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*map(names_in, inner))


def tensors_held(network: nn.Module) -> Iterator[Tensor]:
    """Return the tensors in modules besides parameters, buffers and plain attributes."""
    return (value for value in held_by(network, {}) if isinstance(value, Tensor))


def insides(function: FunctionType) -> tuple[Any, ...]:
    """Return what a function carries: values that it closes over, defaults and attributes."""
    cells = [_content(cell) for cell in function.__closure__ or ()]
    named = (function.__kwdefaults__ or {}).values()
    return (*cells, *(function.__defaults__ or ()), *named, *vars(function).values())


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # of a name that is not bound yet
        return None


def _keeps_something(function: FunctionType) -> bool:
    # A cell can be bound anew, so even a number in it is a thing that changes.
    return bool(function.__closure__) or any(
        not isinstance(part, _CONSTANT) for part in insides(function)
    )


_CONSTANT = (type(None), bool, int, float, complex, str, bytes, type)


def held_by(network: nn.Module, memo: Mapping[int, Any]) -> Iterator[Any]:
    """Return what the modules hold, in containers and functions too; not what `memo` has."""
    seen = set(memo)
    waiting = [value for module in network.modules() for value in vars(module).values()]
    while waiting:
        value = waiting.pop()
        if isinstance(value, (nn.Module, *_CONSTANT)) or id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        waiting.extend(_parts(value))


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, FunctionType):
        return insides(value) if _keeps_something(value) else ()
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, list | tuple | deque | set | frozenset):
        return value
    if isinstance(value, partial):
        return value.func, *value.args, *value.keywords.values()
    if isinstance(value, _lru_cache_wrapper):
        return (value.__wrapped__,)
    return (value.__self__,) if isinstance(value, MethodType) else ()


def _without_insides(function: FunctionType) -> FunctionType:
    """Return the same code with empty cells, to be filled when their contents are copied."""
    cells = tuple(CellType() for _ in function.__closure__ or ())
    copied = FunctionType(
        function.__code__, function.__globals__, function.__name__, None, cells or None
    )
    copied.__qualname__, copied.__module__ = function.__qualname__, function.__module__
    copied.__doc__, copied.__annotations__ = function.__doc__, function.__annotations__
    return copied


def _fill(copied: FunctionType, function: FunctionType, memo: dict[int, Any]) -> None:
    for cell, original in zip(copied.__closure__ or (), function.__closure__ or (), strict=True):
        try:
            content = original.cell_contents
        except ValueError:  # of a name that is not bound yet
            continue
        cell.cell_contents = copied_or_shared(content, memo)
    copied.__defaults__ = copied_or_shared(function.__defaults__, memo)
    copied.__kwdefaults__ = copied_or_shared(function.__kwdefaults__, memo)
    vars(copied).update(copied_or_shared(vars(function), memo))
