"""Number the calls of a layer, and know those that activation checkpointing makes again.

A checkpoint keeps no activations, and runs its layers again in the backward pass.

1. Find the checkpoints that a call runs in on its stack: each has an object of its own there, the
   same one in the forward pass and in the recomputation.
2. In the forward pass count the calls, and note the number under each of these objects.
3. In the recomputation give the numbers that were noted, in their order.
"""

import sys
from collections.abc import Iterator
from itertools import count
from types import FrameType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch.utils.checkpoint import CheckpointFunction

_FILE = CheckpointFunction.forward.__code__.co_filename


class Checkpoint(NamedTuple):
    """Checkpoint that a call runs in.

    Attributes:
        key: the object that stands for it in both passes.
        is_recomputed: whether this is the recomputation.
        is_reentrant: whether the recomputation makes the graph that gradients go through. Else the
            forward pass makes it, and the recomputation only fills in numbers.
    """

    key: Any
    is_recomputed: bool
    is_reentrant: bool


def is_backward_pass() -> bool:
    """Return whether the caller runs in a backward pass, in which layers are computed again."""
    return bool(torch._C._current_graph_task_id() != -1)


def checkpoints() -> list[Checkpoint]:
    """Return the checkpoints that the caller runs in: innermost first, up to a recomputed one."""
    if not is_backward_pass() and torch.is_grad_enabled() and not _may_be_checkpoint():
        return []  # without a look at the stack, which takes microseconds
    found = []
    for each in _on_stack():
        found.append(each)
        if each.is_recomputed:
            break
    return found


def _may_be_checkpoint() -> bool:
    """Return whether something saves tensors in its own way; before torch 2.6 nobody can tell."""
    top: Any = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)
    return top is None or top(True) is not None


def is_in_checkpoint() -> tuple[bool, bool]:
    """Return whether the caller is recomputed, and whether its checkpoint is a reentrant one."""
    inside = checkpoints()
    if is_backward_pass():
        return True, bool(inside) and inside[-1].is_recomputed and inside[-1].is_reentrant
    return False, any(each.is_reentrant for each in inside)


def _on_stack() -> Iterator[Checkpoint]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename == _FILE:
            function, values = frame.f_code.co_name, frame.f_locals
            if function == "unpack_hook" and "frame" in values:
                yield Checkpoint(values["frame"], is_recomputed=True, is_reentrant=False)
            elif "ctx" in values:
                yield Checkpoint(values["ctx"], function == "backward", is_reentrant=True)
            elif "gen" in values:
                key = values["gen"].gi_frame.f_locals.get("new_frame")
                if key is not None:
                    yield Checkpoint(key, is_recomputed=False, is_reentrant=False)
        frame = frame.f_back


class CallNumbers:
    """Numbers of one layer's calls, from 0; a recomputed call has the number of the first one."""

    def __init__(self) -> None:
        self._count = count()  # `next` of it is one step, whatever other threads run the layer
        self._latest = 0
        self._numbers: WeakKeyDictionary[Any, list[int]] = WeakKeyDictionary()
        self._repeated: WeakKeyDictionary[Any, tuple[int, int]] = WeakKeyDictionary()

    def next(self) -> int:
        """Return the number of the call that is running."""
        inside = checkpoints()
        recomputed = inside.pop() if inside and inside[-1].is_recomputed else None
        if recomputed:
            number = self._repeat(recomputed.key)
        elif is_backward_pass():  # of a checkpoint that is not torch's own
            number = self._latest
        else:
            number = self._latest = next(self._count)
        for each in inside:
            self._numbers.setdefault(each.key, []).append(number)
        return number

    def _repeat(self, key: Any) -> int:
        numbers = self._numbers.get(key)
        if not numbers:  # its forward pass was before the block
            return self._latest
        task = torch._C._current_graph_task_id()
        last, position = self._repeated.get(key, (task, 0))
        if task != last:  # a second backward pass, through a graph that was retained
            position = 0
        self._repeated[key] = task, position + 1
        return numbers[position % len(numbers)]
