"""Isolate HookViz's passes: global hooks, random generators and caches of others stay as they are.

A person's global module hooks are for their passes and see none of ours. What ``torch.compile``
made of a method is not used: it was compiled with other hooks than ours. Global generators of
random numbers and caches of a person's own code are put back (`hookviz.hooking.global_state`).
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as torch_module

from hookviz.hooking.foreign_hooks import foreign_hooks
from hookviz.hooking.generators import generators, put_generators_back
from hookviz.hooking.global_state import global_state_restored
from hookviz.hooking.network_state import unchanged
from hookviz.hooking.purity import is_known_code, is_pure

_TABLES = tuple(
    getattr(torch_module, name)
    for name in (
        *("_global_forward_hooks", "_global_forward_pre_hooks"),
        *("_global_backward_hooks", "_global_backward_pre_hooks"),
    )
)

_inside = threading.local()
_lock = threading.RLock()


@contextmanager
def isolated(network: nn.Module) -> Iterator[None]:
    """Run passes of `network`, or of its replicas, apart from the rest of the process.

    A block within such a block of the same thread adds nothing but what was hooked since.
    """
    with ExitStack() as stack:
        stack.enter_context(_no_global_hooks())
        isolated_here, key = _isolated_here(), id(network)  # nobody else's while the block holds it
        if key in isolated_here:
            yield
            return
        isolated_here.add(key)
        stack.callback(isolated_here.discard, key)
        state = stack.enter_context(unchanged(network))
        known = is_known_code(network)  # which compiles nothing, and draws nothing in eval mode
        if not known:
            stack.enter_context(not_compiled())
        if not (known or is_pure(network)) or state.is_training:
            stack.enter_context(_same_generators)
        if not known:
            stack.enter_context(global_state_restored(network))
        yield


def _isolated_here() -> set[int]:
    """Return the networks whose passes this thread runs apart, by their identity."""
    if not hasattr(_inside, "networks"):
        _inside.networks = set()
    networks: set[int] = _inside.networks
    return networks


def not_compiled() -> AbstractContextManager[None]:
    """Return a block in which nothing runs as ``torch.compile`` made it: no mode sees into that."""
    return _eager if "torch._dynamo" in sys.modules else nullcontext()


class _Shared(AbstractContextManager[None]):
    """Block that several threads may be in at once: the first begins it, the last ends it."""

    def __init__(self, begin: Callable[[], Callable[[], object]]) -> None:
        self._begin = begin
        self._blocks = 0
        self._end: Callable[[], object] = bool

    def __enter__(self) -> None:
        with _lock:
            if not self._blocks:
                self._end = self._begin()
            self._blocks += 1

    def __exit__(self, *_error: object) -> None:
        with _lock:
            self._blocks -= 1
            if not self._blocks:
                self._end()


def _keep_generators() -> Callable[[], object]:
    before = generators()

    def put_back() -> None:
        if generators() != before:
            put_generators_back(before)

    return put_back


def _stop_compiling() -> Callable[[], object]:
    try:
        stance = torch.compiler.set_stance("force_eager")
    except RuntimeError:  # in the middle of what is compiled
        return bool
    return lambda: stance.__exit__(None, None, None)


def _mute() -> Callable[[], object]:
    for table in _TABLES:
        table.update({key: _ForOthers(hook) for key, hook in table.items()})
    return _unmute


def _unmute() -> None:
    for table in _TABLES:
        for key, hook in table.items():
            if isinstance(hook, _ForOthers):
                table[key] = hook.hook


class _ForOthers:
    """Global hook that is skipped in a thread that runs one of HookViz's passes."""

    def __init__(self, hook: Any) -> None:
        self.hook = hook

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return None if getattr(_inside, "depth", 0) else self.hook(*args, **kwargs)


@contextmanager
def _our_thread() -> Iterator[None]:
    """Skip all hooks that are for others' passes in this thread."""
    _inside.depth = getattr(_inside, "depth", 0) + 1
    try:
        yield
    finally:
        _inside.depth -= 1


@contextmanager
def silent_hooks(network: nn.Module) -> Iterator[None]:
    """Skip a person's hooks that are not their network's own; other threads call them."""
    modules = dict(network.named_modules())
    taken = [
        (getattr(modules[name], table), key, hook)
        for (name, table, key), hook in foreign_hooks(network).items()
    ]
    for table, key, hook in taken:
        table[key] = _ForOthers(hook)
    try:
        with _our_thread():
            yield
    finally:
        for table, key, hook in taken:
            if key in table:
                table[key] = hook


_same_generators = _Shared(_keep_generators)
_eager = _Shared(_stop_compiling)
_muted = _Shared(_mute)


@contextmanager
def _no_global_hooks() -> Iterator[None]:
    if not any(_TABLES):
        yield
        return
    with _muted, _our_thread():
        yield
