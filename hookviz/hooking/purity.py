"""Tell whether a pass is pure: a function of input and weights that writes to nothing else.

Of a network that only computes, replicas may share every tensor, version counters tell what was
overwritten, and a pass over shapes tells what any image will run. Of any other, none of that is
sure, so each pass gets copies of everything (see `hookviz.hooking.replicas`).

The question is answered by watching one pass, without data where the code is known: a way past the
version counters (``.data``, NumPy), a look at a value (``if x.mean() > 0``) and anything written to
a buffer or an attribute are all seen there, and what is drawn from a generator. A network that is
never watched counts as one that does more.
"""

import hashlib
import pickle
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from enum import Enum
from functools import partial
from inspect import signature
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import ref

import numpy as np
import torch
from torch import Tensor, nn
from torch.jit import ScriptModule

from hookviz.hooking.copies import insides, unwrapped
from hookviz.hooking.generators import generators
from hookviz.hooking.module_copies import slots_of
from hookviz.hooking.network_state import ByNetwork
from hookviz.hooking.torch_functions import EveryFunction, counter, function_name, not_followed

_pure: MutableMapping[nn.Module, bool] = ByNetwork()
_known_code: MutableMapping[nn.Module, bool] = ByNetwork()
_lock = threading.Lock()

_LIBRARIES = ("torch", "torchvision", "timm", "hookviz", "builtins")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")


def is_pure(network: nn.Module) -> bool:
    """Return whether every pass of this network that was watched was pure."""
    with _lock:
        return _pure.get(network, False)


def is_known_code(network: nn.Module) -> bool:
    """Return whether torch, torchvision, timm or HookViz wrote all the network's modules.

    A person's own code has ways to write into memory that no watched pass shows: another thread, a
    script, a compiled extension. And it may keep what a pass over shapes leaves behind, a mask by
    its shape in a dictionary of its module or under ``lru_cache``, or hand memory that is not there
    to C: such code is never run without data.
    """
    with _lock:
        known = _known_code.get(network)
    if known is None:
        known = all(map(_is_as_written, network.modules()))
        with _lock:
            _known_code[network] = known
    return known


def _is_as_written(module: nn.Module) -> bool:
    if isinstance(module, ScriptModule):  # torch's own class, around a person's code
        return False
    parts: list[Any] = [type(module), *vars(module).values()]
    parts += (hook for table in _HOOKS for hook in getattr(module, table).values())
    if isinstance(module, torch.fx.GraphModule):
        parts += (node.target for node in module.graph.nodes if node.op == "call_function")
    code = (type(part) if isinstance(part, nn.Module) else part for part in map(unwrapped, parts))
    return all(
        is_library(str(part.__module__)) for part in code if isinstance(part, type | FunctionType)
    )


def is_library(module: str) -> bool:
    """Return whether a Python module is part of torch, torchvision, timm or HookViz."""
    return module.partition(".")[0] in _LIBRARIES


def record_purity(network: nn.Module, *, is_pure: bool) -> None:
    """Remember whether a watched pass was pure; a network that was not stays impure."""
    with _lock:
        _pure[network] = is_pure and _pure.get(network, True)


class Purity(EveryFunction):
    """Watcher of one pass, from its creation on, that tells whether the pass was pure."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self._network = network
        self._before = _State(network), generators()
        self._looked_past = False

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call the function, noting where it reads values or memory that no counter tells of."""
        if (
            getattr(func, "__name__", "") in _VALUES
            or func in _MEMORY
            or _moves_averages(func, args, kwargs)
        ):
            self._looked_past = True
        try:
            return func(*args, **kwargs)
        except Exception:
            self._looked_past = True  # with data it may work, and the network may go on without
            raise

    @property
    def was_pure(self) -> bool:
        """Whether the pass, which has ended, was pure."""
        return not self._looked_past and self.as_before

    @property
    def as_before(self) -> bool:
        """Whether the network and the generators are what they were at the beginning."""
        state, numbers = self._before
        return state.same(_State(self._network)) and numbers == generators()


_VALUES = frozenset(
    (
        *("item", "tolist", "__bool__", "__float__", "__int__", "__index__", "__complex__"),
        *("__contains__", "is_nonzero", "equal", "allclose", "nonzero", "argwhere", "unique"),
        *("masked_select", "numpy", "__array__", "__dlpack__", "to_dlpack", "share_memory_"),
        *("data_ptr", "untyped_storage", "storage", "_typed_storage", "set_", "swap_tensors"),
    )
)
"""Torch functions, by their own names, that read values into Python or give memory away."""

_MEMORY = (Tensor.data.__get__, Tensor.data.__set__)  # type: ignore[attr-defined]


def _moves_averages(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> bool:
    """Whether a norm writes to its running averages, which their version counters do not tell."""
    # torch has several besides `F.batch_norm`: native_batch_norm, cudnn_batch_norm, …
    if not any(norm in function_name(func) for norm in ("batch_norm", "instance_norm")):
        return False
    try:
        arguments = signature(func).bind(*args, **kwargs)
    except (TypeError, ValueError):  # the C function itself, called by its positions
        return True
    arguments.apply_defaults()
    values = arguments.arguments
    moving = values.get("training") or values.get("use_input_stats")
    return bool(moving) and values.get("running_mean") is not None


class _State:
    """Snapshot of what the modules of a network hold, to be compared with a later one."""

    def __init__(self, network: nn.Module) -> None:
        self._kept: list[Any] = []  # alive, or its identity could go to another
        self._seen: set[int] = set()
        self._unknown = False
        self._modules = {id(module) for module in network.modules()}
        self._parts = [self._of(vars(module)) for module in network.modules()]

    def same(self, later: "_State") -> bool:
        """Return whether nothing has changed; False where that can't be told."""
        return not self._unknown and not later._unknown and self._parts == later._parts

    def _of(self, value: Any, depth: int = 0) -> Any:
        if value is None or isinstance(value, _PLAIN):
            return type(value), repr(value)
        self._kept.append(value)
        if id(value) in self._seen:
            return id(value)
        self._seen.add(id(value))
        if isinstance(value, Tensor):
            return id(value), counter(value), value.shape, self._values(value)
        hidden = isinstance(value, nn.Module) and id(value) not in self._modules
        parts = vars(value).items() if hidden else _parts(value)
        if parts is None or depth > _DEEPEST:
            self._unknown = True
            return id(value)
        return id(value), [self._of(part, depth + 1) for part in parts]

    def _values(self, tensor: Tensor) -> bytes:
        """Return a digest of a buffer, which can be written to in ways that no counter tells.

        A parameter may be large, and is not written to in secret.
        """
        if isinstance(tensor, nn.Parameter) or tensor.is_meta or tensor.layout != torch.strided:
            return b""
        with not_followed():
            return hashlib.blake2b(_bytes(tensor), digest_size=16).digest()


def _bytes(tensor: Tensor) -> Any:
    plain = tensor.detach().to("cpu").resolve_conj().resolve_neg().contiguous()
    return plain.reshape(-1).view(torch.uint8).numpy().data


def _parts(value: Any) -> Iterable[Any] | None:  # noqa: PLR0911 - one for each kind
    """Return what a value holds that can change in it; None where that can't be told."""
    if isinstance(value, _BY_IDENTITY):
        return ()
    if isinstance(value, list | tuple | deque):
        return value
    if isinstance(value, Mapping):
        return (*value.keys(), *value.values())
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))
    if isinstance(value, np.ndarray):
        return (value.tobytes(),)
    if isinstance(value, partial):
        return value.func, value.args, value.keywords
    if isinstance(value, FunctionType):
        return insides(value)
    if isinstance(value, MethodType):
        return (value.__self__,)
    if isinstance(value, ref):
        return (value(),)
    return _parts_of_object(value)


def _parts_of_object(value: Any) -> Iterable[Any] | None:
    """Return attributes and slots, and the pickle of an object with ways of its own."""
    if isinstance(value, torch.Generator):
        return (value.get_state().numpy().tobytes(),)
    kind = type(value)
    slots = slots_of(kind)
    parts = [getattr(value, slot) for slot in slots if hasattr(value, slot)]
    parts += (
        (part for pair in vars(value).items() for part in pair)
        if hasattr(value, "__dict__")
        else ()
    )
    plain = all(getattr(kind, name, None) is getattr(object, name, None) for name in _PICKLED)
    if plain or is_library(kind.__module__):
        return parts if slots or hasattr(value, "__dict__") else None
    try:
        return *parts, pickle.dumps(value)
    except Exception:  # noqa: BLE001 - any class can refuse in its own way
        return None


_PICKLED = ("__reduce__", "__reduce_ex__", "__getstate__")


_DEEPEST = 8
_PLAIN = (bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.layout, Enum)
_BY_IDENTITY = (
    *(nn.Module, type, ModuleType, BuiltinFunctionType),
    *(torch.memory_format, property, torch.fx.Graph, torch.fx.Node),
)
