"""Hash all that a network computes by, so that a cache never takes two networks for one.

Two networks with equal weights and another stride, slope, order of layers or line of code compute
other activations, and a cache that took them for one would show one person the other's. What can't
be hashed makes a digest that no other network ever has.
"""

import hashlib
import secrets
import sys
from collections import deque
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cache, partial
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import ref

import numpy as np
import torch
from torch import Tensor, nn

from hookviz.hooking.copies import names_in

_OWN_HOOKS = ("_forward_pre_hooks", "_forward_hooks")
_OF_EVERY_MODULE = frozenset(vars(nn.Module())).difference(
    ("training", "_parameters", "_buffers", *_OWN_HOOKS)
)
_DEEPEST = 24


def network_digest(network: nn.Module) -> str:
    """Hash weights, buffers, structure, options and a person's own code, as 32 hex digits.

    Equal for networks that compute the same by construction, in any process. Code of Python
    and of installed packages counts by name; code of anybody else by its instructions, with the
    functions and constants that it refers to.
    """
    return _Digest().of_network(network)


class _Digest:
    """Hash that is fed values of any kind."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._numbers: dict[int, int] = {}  # of what has been fed already, so that circles end
        self._kept: list[Any] = []  # alive, or an identity could come twice
        self._names: dict[int, str] = {}  # of the network's modules, each fed in its turn

    def hexdigest(self) -> str:
        """Return the hash of all that was fed."""
        return self._hash.hexdigest()

    def add(self, text: str) -> None:
        """Feed a text, with its length."""
        data = text.encode("utf-8", "backslashreplace")
        self._hash.update(f"{len(data)}:".encode() + data)

    def of_network(self, network: nn.Module, prefix: str = "") -> str:
        """Feed a network, its modules named after `prefix`, and return the hash."""
        named = list(network.named_modules(prefix=prefix, remove_duplicate=False))
        for name, module in named:
            self._names.setdefault(id(module), name)
        for name, module in named:
            self.add(f"module {name}")
            if self._names[id(module)] != name:
                self.add(f"is {self._names[id(module)]}")
                continue
            self._of_type(type(module))
            for key, value in sorted(vars(module).items()):
                if key not in _OF_EVERY_MODULE:
                    self.add(key)
                    # the keys of hooks count up over all that were ever registered
                    self.of(list(value.values()) if key in _OWN_HOOKS else value)
        return self.hexdigest()

    def of_tensor(self, tensor: Tensor) -> None:
        """Feed a tensor: type, shape and values."""
        values = tensor.detach()
        self.add(f"{values.dtype} {tuple(values.shape)} {values.layout}")
        if values.is_meta or values.layout != torch.strided or values.is_quantized:
            self._unlike_any()
            return
        plain = values.to("cpu").resolve_conj().resolve_neg().contiguous()
        self._hash.update(plain.reshape(-1).view(torch.uint8).numpy().data)

    def of(self, value: Any, depth: int = 0) -> None:
        """Feed any value."""
        if value is None or isinstance(value, bool | int | float | complex | str | bytes | range):
            self.add(f"{type(value).__name__} {value!r}")
        elif isinstance(value, torch.dtype | torch.device | torch.layout | torch.Size | Enum):
            self.add(repr(value))
        elif id(value) in self._names:
            self.add(f"module at {self._names[id(value)]}")
        elif not self._is_new(value):
            return
        elif isinstance(value, Tensor):
            self.of_tensor(value)
        elif depth > _DEEPEST:
            self._unlike_any()
        elif isinstance(value, nn.Module):
            # one that the network holds past torch, in a list or a closure
            self.of_network(value, f"hidden {len(self._kept)}")
        elif isinstance(value, type):
            self._of_type(value)
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            self.add(f"array {value.dtype} {value.shape}")
            self._hash.update(np.ascontiguousarray(value).tobytes())
        else:
            self._of_parts(value, depth)

    def _of_parts(self, value: Any, depth: int) -> None:
        if isinstance(value, FunctionType):
            self._of_function(value, depth)
            return
        parts = _parts(value)
        if parts is None:
            self._unlike_any()
            return
        name = getattr(value, "__qualname__", getattr(value, "__name__", ""))
        self.add(f"{type(value).__qualname__} {name} of")
        for part in parts:
            self.of(part, depth + 1)
        self.add("end")

    def _of_type(self, kind: type) -> None:
        """Feed a library's class by its name; a person's own with the code of its methods."""
        self.add(f"{kind.__module__}.{kind.__qualname__}")
        for base in kind.__mro__:
            if _is_library(base.__module__) or not self._is_new(base):
                continue
            self.add(base.__qualname__)
            for key, value in sorted(vars(base).items()):
                if isinstance(value, staticmethod | classmethod):
                    value = value.__func__  # noqa: PLW2901
                if isinstance(value, property):
                    value = (value.fget, value.fset)  # noqa: PLW2901
                if not (key.startswith("__") and not callable(value)):
                    self.add(key)
                    self.of(value)

    def _of_function(self, function: FunctionType, depth: int) -> None:
        module = str(function.__module__)
        self.add(function.__qualname__ if "<lambda>" not in function.__qualname__ else "lambda")
        if _is_library(module):
            self.add(module)
            return
        self._of_code(function.__code__)
        for part in (function.__defaults__, function.__kwdefaults__):
            self.of(part, depth + 1)
        for cell in function.__closure__ or ():
            try:
                self.of(cell.cell_contents, depth + 1)
            except ValueError:  # an empty cell: the function refers to a name not yet bound
                self.add("empty")
        for name in sorted(names_in(function.__code__)):
            if name in function.__globals__:
                self.add(name)
                self._of_global(function.__globals__[name], function.__code__, depth)

    def _of_global(self, value: Any, code: CodeType, depth: int) -> None:
        """Feed a name that a function refers to; of a person's module what the code may use."""
        self.of(value, depth + 1)
        if isinstance(value, ModuleType) and not _is_library(value.__name__):
            for name in sorted(names_in(code).intersection(vars(value))):
                self.add(name)
                self.of(vars(value)[name], depth + 1)

    def _of_code(self, code: CodeType) -> None:
        self._hash.update(code.co_code)
        self.add(repr(code.co_names))
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._of_code(constant)
            elif isinstance(constant, frozenset):  # another order in every process
                self.add(repr(sorted(map(repr, constant))))
            else:
                self.add(repr(constant))

    def _is_new(self, value: Any) -> bool:
        """Return whether a value has not been fed yet; feed the number of one that has."""
        number = self._numbers.setdefault(id(value), len(self._numbers))
        if number < len(self._kept):
            self.add(f"again {number}")
            return False
        self._kept.append(value)
        return True

    def _unlike_any(self) -> None:
        """Feed something that is never fed again, so that no other digest equals this one."""
        self.add(secrets.token_hex(16))


def _parts(value: Any) -> Iterable[Any] | None:  # noqa: PLR0911 - one for each kind
    """Return what a value is made of; None where that can't be told."""
    if isinstance(value, Mapping):
        return [part for pair in value.items() for part in pair]
    if isinstance(value, list | tuple | deque):
        return value
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    if isinstance(value, ref):  # recurrent layers keep some to their weights
        return (value(),)
    if isinstance(value, partial):
        return value.func, value.args, value.keywords
    if isinstance(value, MethodType):
        return value.__func__, value.__self__
    if isinstance(value, BuiltinFunctionType | ModuleType):
        return ()
    if not hasattr(value, "__dict__"):
        return None
    return (type(value), *(part for pair in sorted(vars(value).items()) for part in pair))


@cache
def _is_library(module: str) -> bool:
    """Return whether a module is Python's, HookViz's or of an installed package."""
    top = module.partition(".")[0]
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    installed = not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)
    return top == "hookviz" or top in sys.stdlib_module_names or installed
