"""Hook the tensors of many graphs, as a training loop makes them without end, and backward ends."""

import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Generic, TypeVar
from weakref import ReferenceType, ref

from torch import Tensor
from torch.autograd.variable import Variable

from hookviz.hooking import hooks

Key = TypeVar("Key")

_TENSORS_PER_BLOCK = 256


class GraphHooks(Generic[Key]):
    """Tensor hooks while it is entered, which are forgotten as their graphs are freed.

    Each tensor goes by a key of the caller's; what `see` returns takes the gradient's place.

    A training loop makes graphs without end, so the handles of their hooks can't all be kept until
    it ends. They are kept in blocks. Each hook refers to its block's `GradientHooks`, and nothing
    else does once the block is full: when that object is gone, so are the block's hooks.
    """

    def __init__(self, see: Callable[[Key, Tensor], Tensor | None]) -> None:
        self._see = see
        self._blocks: list[tuple[ExitStack, ReferenceType[hooks.GradientHooks]]] = []
        self._open: hooks.GradientHooks | None = None
        self._keys: dict[str, Key] = {}
        self._lock = threading.Lock()

    def add(self, key: Key, tensor: Tensor) -> None:
        """Call the hook with this tensor's gradient when that is computed."""
        with self._lock:
            if self._open is None or len(self._keys) == _TENSORS_PER_BLOCK:
                self._open = self._new_block()
            number = str(len(self._keys))
            self._keys[number] = key
            self._open.add(number, tensor)

    def __enter__(self) -> "GraphHooks[Key]":
        return self

    def __exit__(self, *_error: object) -> None:
        with ExitStack() as every:
            for block, _ in self._blocks:
                every.callback(block.close)

    def _new_block(self) -> hooks.GradientHooks:
        self._open = None
        freed = [block for block, gradients in self._blocks if gradients() is None]
        for block in freed:
            block.close()
        keys: dict[str, Key] = {}

        def see(number: str, gradient: Tensor) -> Tensor | None:
            return self._see(keys[number], gradient)

        block = ExitStack()
        gradient_hooks = block.enter_context(hooks.on_gradients(see))
        self._keys = keys
        self._blocks = [each for each in self._blocks if each[0] not in freed]
        self._blocks.append((block, ref(gradient_hooks)))
        return gradient_hooks


def at_end_of_backward(call: Callable[[], None]) -> None:
    """Have a function called as the running backward pass ends, after those put before it."""
    engine: Any = Variable._execution_engine
    engine.queue_callback(call)
