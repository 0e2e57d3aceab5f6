"""Watch one pass of a network: what each call returned, and whether every image runs the same."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from hookviz.capturing import layers
from hookviz.capturing.function_trace import FunctionCall, seen_function
from hookviz.capturing.layouts import Layouts
from hookviz.capturing.returned_call import Outputs, ReturnedCall, check_same_way, returned_call
from hookviz.hooking import hooks, purity
from hookviz.hooking.function_calls import observe_functions
from hookviz.hooking.recorder import Recorder
from hookviz.hooking.torch_functions import not_followed


@dataclass(frozen=True)
class WatchedPass:
    """One pass as it was watched.

    Attributes:
        calls: of all modules, in order of return.
        passed_on, overwritten, scores, is_pure: as `LayerTrace` has them.
        dimensions: how many axes the input has, its batch included.
        functions: calls of activations and poolings between the modules, in order.
    """

    calls: tuple[ReturnedCall, ...]
    passed_on: frozenset[int]
    overwritten: frozenset[str]
    scores: int
    dimensions: int
    is_pure: bool = False
    functions: tuple[FunctionCall, ...] = ()

    @property
    def way(self) -> tuple[tuple[str, int], ...]:
        """What ran, and how much each call put out."""
        return tuple((call.layer, call.nbytes) for call in self.calls)


def watch_in_general(network: nn.Module, images: Tensor) -> WatchedPass:
    """Watch a pass without an image, and tell whether every image runs the same layers."""
    purely = purity.Purity(network)
    if images.is_meta:
        with purely:
            watched = watch(network, images)
    else:
        # A transformer encoder takes another way where it is watched, so there are two passes;
        # and where its ways differ, nobody knows which one an image takes.
        watched = watch(network, images.clone())
        if not purely.as_before:  # it may be again after the second
            return watched
        try:
            with purely:
                again = watch(network, images)
        except Exception:  # noqa: BLE001 - it went through without being watched
            return watched
        if again.way != watched.way:
            return watched
    return replace(watched, is_pure=purely.was_pure)


def watch(
    network: nn.Module, images: Tensor, run: Callable[[Tensor], Any] | None = None
) -> WatchedPass:
    """Watch a pass over `images`, or what `run` makes of them with hooks on the network."""
    modules = dict(network.named_modules())
    modules.pop("")
    seen: list[ReturnedCall] = []
    recorder, outputs, passed_on = Recorder(), Outputs(), set[int]()
    layouts = Layouts()
    functions: list[FunctionCall] = []

    def see_function(call: hooks.Call) -> None:
        recorder.see(call)
        functions.append(seen_function(call, len(seen), layouts))

    def see(call: hooks.Call) -> None:
        with not_followed():
            recorder.see(call)
            module = modules[call.layer]
            check_same_way(call, module, images)
            seen.append(returned_call(call, module, layouts))
            if outputs.passes_on(call.output):
                passed_on.add(len(seen) - 1)

    with (
        hooks.observe(network, modules, see),
        observe_functions(network, layers.quiet_names(network), see_function),
    ):
        output = (run or network)(images)
    scores = output.shape[1] if isinstance(output, Tensor) and output.ndim == 2 else 0
    return WatchedPass(
        tuple(seen),
        frozenset(passed_on),
        recorder.overwritten_layers(),
        scores,
        images.ndim,
        functions=tuple(functions),
    )
