"""Watch one pass of a network: what each call returned, and whether every image runs the same."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.jit import ScriptModule
from torch.utils._python_dispatch import TorchDispatchMode

from hookviz.capturing import layers
from hookviz.capturing.function_trace import FunctionCall, seen_function
from hookviz.capturing.layouts import Layouts
from hookviz.capturing.returned_call import Outputs, ReturnedCall, Shape, returned_call
from hookviz.hooking import hooks
from hookviz.hooking.function_calls import observe_functions
from hookviz.hooking.modules import named_modules
from hookviz.hooking.recorder import Recorder
from hookviz.hooking.torch_functions import EveryFunction, function_name, not_followed
from hookviz.types import FIRST, Layout


@dataclass(frozen=True)
class WatchedPass:
    """One pass as it was watched.

    Attributes:
        calls: of all modules, in order of return.
        passed_on, overwritten, scores, keeps_batch, is_static: as `LayerTrace` has them.
        shape: of the input, ``(C, H, W)``.
        functions: calls of activations and poolings between the modules, in order.
    """

    calls: tuple[ReturnedCall, ...]
    passed_on: frozenset[int]
    overwritten: frozenset[str]
    scores: int
    keeps_batch: bool
    is_static: bool
    shape: Shape
    functions: tuple[FunctionCall, ...] = ()


def watch(
    network: nn.Module, images: Tensor, run: Callable[[Tensor], Any] | None = None
) -> WatchedPass:
    """Watch a pass over `images`, or what `run` makes of them with hooks on the network."""
    modules = dict(named_modules(network))
    modules.pop("")
    seen: list[ReturnedCall] = []
    recorder, outputs, passed_on = Recorder(), Outputs(), set[int]()
    layouts, reads = Layouts(), _ValueReads()
    functions: list[FunctionCall] = []
    # Scripts call operators that no dispatch mode can pass on: of those nobody knows.
    reads.found = any(isinstance(each, ScriptModule) for each in modules.values())
    layouts.take(images, Layout(FIRST), is_sure=True)
    has_torch_attention = any(isinstance(each, _TORCH_ATTENTION) for each in modules.values())

    def see_function(call: hooks.Call) -> None:
        recorder.see(call)
        functions.append(seen_function(call, len(seen), layouts))

    def see(call: hooks.Call) -> None:
        with not_followed():
            recorder.see(call)
            seen.append(returned_call(call, modules[call.layer], layouts))
            if outputs.passes_on(call.output):
                passed_on.add(len(seen) - 1)

    with (
        hooks.observe(network, modules, see),
        observe_functions(network, layers.quiet_names(network), see_function),
        nullcontext() if reads.found else reads,
        nullcontext() if has_torch_attention else _Exports(reads),
        hooks.within_a_pass(),
    ):
        output = (run or network)(images)
    scores = output.shape[1] if isinstance(output, Tensor) and output.ndim == 2 else 0
    return WatchedPass(
        tuple(seen),
        frozenset(passed_on),
        recorder.overwritten_layers(),
        scores,
        all(len(part) == len(images) for _, part in hooks.tensors_in(output) if part.ndim),
        not reads.found,
        tuple(images.shape[1:]),
        tuple(functions),
    )


class _ValueReads(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Finds whether a pass reads a tensor's values into Python, or a shape depends on them."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found = False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        self.found = self.found or _reads_values(func, args)
        return func(*args, **(kwargs or {}))


def _reads_values(operator: Any, args: tuple[Any, ...]) -> bool:
    if operator.overloadpacket is torch.ops.aten.index:  # only a mask's values are read
        return any(each is not None and each.dtype in (torch.bool, torch.uint8) for each in args[1])
    return not _OF_VALUES.isdisjoint(operator.tags) or "nested_tensor_from_mask" in str(operator)


_OF_VALUES = frozenset((torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape))


class _Exports(EveryFunction):
    """Finds the functions that hand out values without an operator of torch."""

    def __init__(self, reads: _ValueReads) -> None:
        super().__init__()
        self._reads = reads

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call the function."""
        if function_name(func) in ("tolist", "numpy", "array", "dlpack"):
            self._reads.found = True
        return func(*args, **kwargs)


_TORCH_ATTENTION = (nn.MultiheadAttention, nn.TransformerEncoder, nn.TransformerEncoderLayer)
"""They compute another way where functions are followed."""
