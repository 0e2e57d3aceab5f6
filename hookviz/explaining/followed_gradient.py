"""Follow a pass with gradients: what each call put out and each join took in, in autograd's graph.

What is held is the values as they were and the edge of the graph that they went through, so that
whatever is written into the tensor later changes neither. What a place takes in from several calls
goes through an edge of its own, apart from what else becomes of the same tensor.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from hookviz.explaining.provenance import BlockCall, ProvenanceTracer, read_by
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.hooking.plain_tensors import kind_of
from hookviz.hooking.torch_functions import TensorMarks, not_followed
from hookviz.types import ActivationKey


class Held(NamedTuple):
    """A tensor of a pass: its values as they were, and the edge of the graph that made them."""

    values: Tensor
    edge: GradientEdge


class Use(NamedTuple):
    """What a call or a join took in: the numbers of the calls that it came from, and the tensor."""

    sources: frozenset[int]
    held: Held


class GradientTracer(ProvenanceTracer):
    """Follows a pass with its joins, and holds what gradients are asked of.

    Attributes:
        outputs: of each step by its number what it put out, if that has a gradient.
        block_outputs: so of each block by its call.
        uses: of a step with several sources what it took in, so far as that has a gradient.
    """

    def __init__(
        self, network: nn.Module, reporter: ProgressReporter, gradients: hooks.GradientHooks
    ) -> None:
        super().__init__(network, reporter, joins=True)
        self.outputs: dict[int, Held] = {}
        self.block_outputs: dict[ActivationKey, Held] = {}
        self.uses: dict[int, list[Use]] = {}
        self._held = TensorMarks[Held](while_unwritten=True)
        self._entered: list[list[Use]] = []
        self._taken: list[Use] = []
        self._gradients = gradients

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call `func`; a join on tensors of its own, so that each branch has its own gradient."""
        operands = [tensor for _, tensor in hooks.tensors_in((args, kwargs))]
        read = read_by(func, operands)
        if not self._is_join(read, self.sources_of(read)):
            return super().called(func, args, kwargs)
        apart = _Apart(self, operands[0] if _writes(func) else None)
        args, kwargs = apart.of(args), apart.of(dict(kwargs))
        self._taken = apart.uses
        return super().called(func, args, kwargs)

    def _join(self, *of: Any) -> frozenset[int]:
        made = of[2]
        joined = super()._join(*of)
        (number,) = joined
        self.uses[number] = self._taken
        with not_followed():
            self._hold(made, self.outputs, number)
        return joined

    def before(self, call: hooks.Call) -> Any:
        """Open a step for a layer call; one with several sources gets tensors of its own."""
        super().before(call)
        with not_followed():
            changed, self.uses[len(self.steps)] = self._apart(call)
        return changed

    def after(self, call: hooks.Call) -> Any:
        """Complete the step of a layer call that has run, and hold what it put out."""
        number = self._open[-1][0]
        output = super().after(call)
        with not_followed():
            self._hold([tensor for _, tensor in hooks.tensors_in(output)], self.outputs, number)
        return output

    def enter(self, call: hooks.Call) -> Any:
        """Open a block call; one with several sources gets tensors of its own."""
        super().enter(call)
        with not_followed():
            changed, uses = self._apart(call)
        self._entered.append(uses)
        return changed

    def leave(self, call: hooks.Call) -> None:
        """Complete a block call that has run, and hold what it put out."""
        super().leave(call)
        self._entered.pop()
        with not_followed():
            outputs = [tensor for _, tensor in hooks.tensors_in(call.output)]
            self._hold(outputs, self.block_outputs, ActivationKey(call.layer, call.index))

    def _as_one_step(self, block: BlockCall, call: hooks.Call, outputs: Sequence[Tensor]) -> None:
        for number in range(block.first, len(self.steps) + 1):  # joins that it takes the place of
            self.uses.pop(number, None)
            self.outputs.pop(number, None)
        super()._as_one_step(block, call, outputs)
        self.uses[block.first] = self._entered[-1]
        self._hold(outputs, self.outputs, block.first)

    def held(self, tensor: Tensor) -> Held:
        """Return a tensor's values as they are now, with its edge."""
        known = self._held.get(tensor)
        if known is None:
            known = Held(tensor.detach().clone(), get_gradient_edge(tensor))
            self._held[tensor] = known
            if tensor.device.type == "cpu":  # elsewhere the backward pass is a thread of its own
                self._gradients.add("", tensor)
        return known

    def _hold(self, tensors: Any, into: dict[Any, Held], key: Any) -> None:
        for tensor in tensors:
            if _has_gradient(tensor):
                into[key] = self.held(tensor)
                return

    def _apart(self, call: hooks.Call) -> tuple[Any, list[Use]]:
        """Return a call's inputs as tensors of their own, if they come from several calls."""
        inputs = [tensor for _, tensor in hooks.tensors_in(call.inputs)]
        if len(self.sources_of(inputs)) < 2:
            return None, []
        apart = _Apart(self)
        return apart.of(call.inputs), apart.uses


class _Apart:
    """Puts views in place of tensors, and notes each as a use.

    What is written into stays itself: autograd follows no part of a graph through a view whose base
    was written into. It is all that becomes of the values that it had, as a rule.
    """

    def __init__(self, tracer: GradientTracer, written: Tensor | None = None) -> None:
        self.uses: list[Use] = []
        self._tracer, self._written = tracer, written

    def of(self, each: Any) -> Any:
        if isinstance(each, Tensor):
            return self._view(each) if _has_gradient(each) else each
        if isinstance(each, dict):
            return {key: self.of(value) for key, value in each.items()}
        if type(each) in (list, tuple):
            return type(each)(self.of(value) for value in each)
        return each

    def _view(self, tensor: Tensor) -> Tensor:
        sources, held = self._tracer.sources_of([tensor]), self._tracer.held(tensor)
        if tensor is self._written:
            self.uses.append(Use(sources, held))
            return tensor
        seen = tensor.view_as(tensor)
        self._tracer.set_sources(seen, sources)
        self.uses.append(Use(sources, Held(held.values, get_gradient_edge(seen))))
        return seen


def _writes(func: Callable[..., Any]) -> bool:
    """Return whether a function writes into its first argument: ``add_`` or ``+=``."""
    name = str(getattr(func, "__name__", ""))
    is_operator = name.startswith("__i") or name == "__setitem__"
    return is_operator or (name.endswith("_") and not name.endswith("__"))


def _has_gradient(tensor: Tensor) -> bool:
    return tensor.requires_grad and not kind_of(tensor) and torch.is_floating_point(tensor)
