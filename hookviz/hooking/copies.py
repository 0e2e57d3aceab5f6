"""Deep copies of networks that refer to nothing of the original.

`copy.deepcopy` takes functions over as they are, so a lambda that a module keeps as an attribute
goes on calling the original's layers and counting in the original's lists. Here functions are
copied as well, with what they close over. And it refuses tensors that came of a computation, as the
product of an old weight norm did; here their values are copied.
"""

import copy
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any, TypeVar

from torch import Tensor, nn

Network = TypeVar("Network", bound=nn.Module)


def deep_copy(network: Network, memo: dict[int, Any] | None = None) -> Network:
    """A copy of the network and of all that its attributes reach, the insides of functions too.

    Args:
        network: what to copy.
        memo: what stands for an object, by its id; as of `copy.deepcopy`. Such an object is not
            looked into.
    """
    memo = {} if memo is None else memo
    functions: list[FunctionType] = []
    for value in _held(network, memo):
        if isinstance(value, FunctionType) and _keeps_something(value):
            functions.append(value)
        elif isinstance(value, Tensor) and not value.is_leaf:
            memo[id(value)] = value.detach().clone()
    for function in functions:
        memo[id(function)] = _without_insides(function)
    copied = copy.deepcopy(network, memo)
    for function in functions:
        _fill(memo[id(function)], function, memo)
    return copied


def insides(function: FunctionType) -> tuple[Any, ...]:
    """What a function carries with it: values that it closes over, defaults and attributes."""
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


def _held(network: nn.Module, memo: Mapping[int, Any]) -> Iterator[Any]:
    """What the modules hold, in containers and inside of functions too; not what `memo` has."""
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
    return (value.__self__,) if isinstance(value, MethodType) else ()


def _without_insides(function: FunctionType) -> FunctionType:
    """The same code with empty cells, to be filled when all that goes into them is copied."""
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
        cell.cell_contents = _copied(content, memo)
    copied.__defaults__ = _copied(function.__defaults__, memo)
    copied.__kwdefaults__ = _copied(function.__kwdefaults__, memo)
    vars(copied).update(_copied(vars(function), memo))


def _copied(value: Any, memo: dict[int, Any]) -> Any:
    try:
        return copy.deepcopy(value, memo)
    except Exception:  # noqa: BLE001 - locks and files: what can't be copied is shared, as ever
        return value
