"""Follow a pickle as torch's reader would, without making anything, and refuse what could harm.

torch's reader (``weights_only``) calls a short list of functions. What it is given by a file can
still make it show memory that nothing filled, end the process or take all memory:

- A tensor beyond its storage, which torch then makes larger.
- Keys of dictionaries that are nested without end, or made to have one hash: they are text or
  numbers below 2**61, where Python's hash of a number is the number.
- One list that a thousand calls make a dictionary of: each list serves one call.
- Names of storages that differ in capitals alone: torch reads one record again and again. They are
  whole numbers.
- Values that are nested without end, or put into one another after they are inside of another.

Each instruction does here to its stack just what `torch._weights_only_unpickler` does; one that
it doesn't know ends the check, as it ends the reading.
"""

import pickletools
import re
from collections.abc import Sequence
from math import prod
from typing import Any, BinaryIO

ALLOWED_GLOBALS = re.compile(
    r"collections (OrderedDict|Counter)|(__builtin__|builtins) complex"
    r"|torch (Size|device|[a-z][a-z0-9_]*)|torch(\.cuda)? (?!Typed|Untyped)\w+Storage"
    r"|torch\.nn\.parameter Parameter|torch\.serialization _get_layout"
    r"|torch\._utils _rebuild_(tensor|tensor_v2|qtensor|sparse_tensor|meta_tensor_no_storage)"
    r"|torch\._utils _rebuild_parameter(_with_state)?|torch\._tensor _rebuild_from_type_v2"
)
"""Module and name of every allowed global; ``torch [a-z]`` stands for types of numbers.

torch's own list has more: `set`, `bytearray`, `_codecs.encode` and tensors by their length take
memory or time at will.
"""

_MOST_DIMENSIONS = 64  # of a tensor in torch
_MOST_KEY = 1 << 61
_MOST_NESTED = 100
_CONSTANTS = {"NONE": None, "NEWFALSE": False, "NEWTRUE": True}
_PLAIN = {"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINSTRING"}
_TENSORS = {"_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_qtensor"}
_COLLECTIONS = {"collections OrderedDict", "collections Counter"}


class UnsafeGlobalError(Exception):
    """Something that no checkpoint needs, by its module and name."""


class PickleTooLongError(Exception):
    """Pickle that is longer than those of any network."""


class _Name(str):
    """Module and name of a global that a file refers to."""

    __slots__ = ()


class _Storage:
    """Storage, by how many values it holds."""

    def __init__(self, count: int) -> None:
        self.count = count


class _Object:
    """Object of a file: a list with its items, a dict, a tensor or another one."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.items: list[Any] = []
        self.is_used = False
        self.depth = 1
        self.is_inside = False  # of another, which has its depth by now

    def fill(self, items: Sequence[Any]) -> None:
        """Put items in."""
        if self.is_inside:
            raise ValueError("a part of another object is filled")
        self.depth = max(self.depth, _depth_over(items))
        if self.kind == "list":
            self.items += items


class _Tuple(tuple[Any, ...]):
    """Tuple that knows how deep it is nested."""

    depth = 1


def _tuple_of(items: Sequence[Any]) -> _Tuple:
    nested = _Tuple(items)
    nested.depth = _depth_over(items)
    return nested


def _depth_over(items: Sequence[Any]) -> int:
    """Return the depth of a container of the items, which are inside of it from then on."""
    depth = 1 + max((getattr(item, "depth", 0) for item in items), default=0)
    if depth > _MOST_NESTED:
        raise ValueError("values are nested without end")
    for item in items:
        if isinstance(item, _Object):
            item.is_inside = True
    return depth


class PickleCheck:
    """Check of one pickle, instruction by instruction."""

    def __init__(self) -> None:
        """Begin with nothing on the stack."""
        self._stack: list[Any] = []
        self._below: list[list[Any]] = []  # stacks that a mark has put aside
        self._memo: dict[int, Any] = {}
        self._storages: dict[int | str, tuple[str, int]] = {}  # their type and count, by key

    def follow(self, instruction: str, argument: Any) -> bool:
        """Follow one instruction; return whether torch's reader knows it.

        Raises:
            ValueError: it would do harm.
            IndexError: there is less on the stack than it takes; KeyError: or in the memo.
        """
        stack = self._stack
        if instruction in _PLAIN:
            stack.append(argument)
        elif instruction in _CONSTANTS:
            stack.append(_CONSTANTS[instruction])
        elif instruction == "GLOBAL":
            if not ALLOWED_GLOBALS.fullmatch(argument):
                named = re.sub(r"^(__builtin__|builtins) ", "", argument)
                raise UnsafeGlobalError(named.replace(" ", "."))
            stack.append(_Name(argument))
        else:
            return self._move(instruction, argument)
        return True

    def _move(self, instruction: str, argument: Any) -> bool:
        stack = self._stack
        if instruction in {"BINGET", "LONG_BINGET"}:
            stack.append(self._memo[argument])
        elif instruction in {"BINPUT", "LONG_BINPUT"}:
            self._memo[argument] = stack[-1]
        elif instruction == "MARK":
            self._below.append(stack)
            self._stack = []
        elif instruction == "EMPTY_TUPLE":
            stack.append(_Tuple())
        elif instruction in {"EMPTY_LIST", "EMPTY_DICT", "EMPTY_SET"}:
            stack.append(_Object(instruction.removeprefix("EMPTY_").lower()))
        elif instruction == "TUPLE":
            items = self._pop_marked()
            self._stack.append(_tuple_of(items))
        elif instruction in {"TUPLE1", "TUPLE2", "TUPLE3"}:
            items = self._pop(int(instruction[-1]))
            stack.append(_tuple_of(items))
        else:
            return self._fill_or_call(instruction)
        return True

    def _fill_or_call(self, instruction: str) -> bool:
        if instruction in {"APPEND", "APPENDS"}:
            items = self._pop(1) if instruction == "APPEND" else self._pop_marked()
            self._fill(items)
        elif instruction in {"SETITEM", "SETITEMS"}:
            items = self._pop(2) if instruction == "SETITEM" else self._pop_marked()
            for key in items[::2]:
                _check_key(key)
            self._fill(items)
        elif instruction in {"REDUCE", "NEWOBJ"}:
            called, arguments = self._pop(2)
            result = self._call(called, arguments)
            if isinstance(result, _Object):
                result.depth = _depth_over([arguments])
            self._stack.append(result)
        elif instruction == "BUILD":
            (state,) = self._pop(1)
            _check_state(self._stack[-1], state)
            self._fill([state])
        elif instruction == "BINPERSID":
            self._stack[-1] = self._storage(self._stack[-1])
        else:
            return instruction in {"PROTO", "STOP"}
        return True

    def _fill(self, items: Sequence[Any]) -> None:
        target = self._stack[-1]
        if isinstance(target, _Object):
            target.fill(items)

    def _pop(self, count: int) -> list[Any]:
        if len(self._stack) < count:
            raise IndexError("it takes more than there is")
        items = self._stack[-count:]
        del self._stack[-count:]
        return items

    def _pop_marked(self) -> list[Any]:
        items, self._stack = self._stack, self._below.pop()
        return items

    def _call(self, called: Any, arguments: Any) -> Any:
        if not isinstance(called, _Name) or not isinstance(arguments, tuple):
            raise ValueError("it calls what is no function")
        module, _, name = called.partition(" ")
        if called == "torch Size":
            return _size(*arguments)
        if called in _COLLECTIONS:
            for each in arguments:
                _check_items(each, is_counter=name == "Counter")
            return _Object("dict")
        if module == "torch._tensor" and name == "_rebuild_from_type_v2":
            self._call(arguments[0], arguments[2])
            return _Object("object")
        if name in _TENSORS:
            _check_tensor(*arguments[:4])
            if name == "_rebuild_qtensor" and prod(arguments[2]) > arguments[0].count:
                raise ValueError("a tensor of more values than its storage")  # torch makes them
            return _Object("tensor")
        return _Object("object")

    def _storage(self, identity: Any) -> Any:
        if not isinstance(identity, tuple) or identity[:1] != ("storage",):
            raise ValueError("it refers to what is no storage")
        _, kind, key, _, count, *view = identity
        self._note(kind, key, count)
        if not view or view[0] is None:
            return _Storage(count)
        view_key, offset, size = view[0]
        self._note(kind, view_key, size)
        if not _is_count(offset) or offset + size > count:
            raise ValueError("a part of a storage is larger than the storage")
        return _Storage(size)

    def _note(self, kind: Any, key: Any, count: Any) -> None:
        is_number = _is_count(key) or (isinstance(key, str) and key.isascii() and key.isdigit())
        if not isinstance(kind, _Name) or not is_number or not _is_count(count):
            raise ValueError("a storage is described by what is no number")
        if self._storages.setdefault(key, (kind, count)) != (kind, count):
            raise ValueError("a storage is described in two ways")


def check_pickle(stream: BinaryIO, most: int) -> None:
    """Refuse one pickle of a stream where reading it would do harm; the stream is behind it then.

    Args:
        stream: at its start.
        most: the position in the stream that may be reached.

    Raises:
        ValueError: it would do harm.
        PickleTooLongError: it is longer than `most`.
        UnsafeGlobalError: it refers to what is not in `ALLOWED_GLOBALS`.
        Exception: it is damaged; `pickletools` raises many kinds.
    """
    check, is_known = PickleCheck(), True
    for instruction, argument, _ in pickletools.genops(stream):
        if stream.tell() > most:
            raise PickleTooLongError
        # Behind one that torch's reader doesn't know it has ended.
        is_known = is_known and check.follow(instruction.name, argument)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < 1 << 62


def _size(lengths: Any = ()) -> tuple[Any, ...]:
    if not isinstance(lengths, tuple) or len(lengths) > _MOST_DIMENSIONS:
        raise ValueError("a size has more lengths than any tensor")
    return lengths


def _check_key(key: Any) -> None:
    if isinstance(key, (str, float)) and not isinstance(key, _Name):
        return
    if key is None or (isinstance(key, int) and abs(key) < _MOST_KEY):
        return
    raise ValueError("keys other than text and numbers")


def _check_items(items: Any, *, is_counter: bool) -> None:
    """Check the items of a dictionary: a list or dict that no other call has used."""
    if not isinstance(items, _Object) or items.kind not in {"list", "dict"} or items.is_used:
        raise ValueError("a dictionary of what is no list")
    items.is_used = True
    for item in items.items:
        pair = item.items if isinstance(item, _Object) and item.kind == "list" else item
        if not is_counter and not isinstance(pair, (list, tuple)):
            raise ValueError("a dictionary of what are no pairs")
        _check_key(item if is_counter else pair[0])


def _check_state(target: Any, state: Any) -> None:
    """Check the state of an object; a tensor gets its storage as its state."""
    if isinstance(state, tuple) and len(state) == 4:
        _check_tensor(*state)
        return
    is_plain = state is None or (isinstance(state, _Object) and state.kind == "dict")
    is_tensor = isinstance(target, _Object) and target.kind == "tensor"
    if is_tensor or not (is_plain or isinstance(state, tuple)):
        raise ValueError("an object is given another state than its own")


def _check_tensor(storage: Any, offset: Any, size: Any, stride: Any) -> None:
    if not isinstance(storage, _Storage) or not _is_count(offset):
        raise ValueError("a tensor without a storage")
    lengths, steps = _counts(size), _counts(stride)
    if len(lengths) != len(steps):
        raise ValueError("a tensor of two numbers of dimensions")
    if 0 in lengths:
        return
    last = offset + sum((n - 1) * step for n, step in zip(lengths, steps, strict=True))
    if last >= storage.count:
        raise ValueError("a tensor lies outside of its storage")


def _counts(values: Any) -> Sequence[int]:
    lengths = _size(values)
    if not all(map(_is_count, lengths)):
        raise ValueError("a length is no number")
    return lengths
