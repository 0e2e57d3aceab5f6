"""Follow a pass with gradients, and hand them back from step to step.

What is held is the values as they were and the edge of autograd's graph that they went through, so
that whatever is written into the tensor later changes neither. What a place takes in from several
calls goes through an edge of its own, apart from what else becomes of the same tensor.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from hookviz.capturing.layer_trace import input_trace
from hookviz.explaining.network_map.followed_pass import (
    IMAGE,
    BlockCall,
    ExecutionTrace,
    ProvenanceTracer,
    read_by,
)
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import ProgressReporter, backward_pass
from hookviz.hooking.plain_tensors import kind_of
from hookviz.hooking.torch_functions import TensorMarks, not_followed
from hookviz.types import ActivationKey, Layout, Model, ModelInput


class Held(NamedTuple):
    """A tensor of a pass: its values as they were, and the edge of the graph that made them."""

    values: Tensor
    edge: GradientEdge


class _Use(NamedTuple):
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
        self.uses: dict[int, list[_Use]] = {}
        self._held = TensorMarks[Held](while_unwritten=True)
        self._entered: list[list[_Use]] = []
        self._taken: list[_Use] = []
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

    def _apart(self, call: hooks.Call) -> tuple[Any, list[_Use]]:
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
        self.uses: list[_Use] = []
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
            self.uses.append(_Use(sources, held))
            return tensor
        seen = tensor.view_as(tensor)
        self._tracer.set_sources(seen, sources)
        self.uses.append(_Use(sources, Held(held.values, get_gradient_edge(seen))))
        return seen


def _writes(func: Callable[..., Any]) -> bool:
    """Return whether a function writes into its first argument: ``add_`` or ``+=``."""
    name = str(getattr(func, "__name__", ""))
    is_operator = name.startswith("__i") or name == "__setitem__"
    return is_operator or (name.endswith("_") and not name.endswith("__"))


def _has_gradient(tensor: Tensor) -> bool:
    return tensor.requires_grad and not kind_of(tensor) and torch.is_floating_point(tensor)


class BackwardSteps:
    """A pass, from whose steps gradients are handed back.

    Attributes:
        trace: of the pass, with its joins.
        outputs: what each step put out, by its number; `IMAGE` is the input.
        blocks: what each block's call put out.
        uses: what each step with several sources took in.
    """

    def __init__(
        self,
        model: Model,
        model_input: ModelInput,
        tracer: GradientTracer,
        trace: ExecutionTrace,
        reporter: ProgressReporter,
    ) -> None:
        self.trace = trace
        self.outputs, self.blocks, self.uses = tracer.outputs, tracer.block_outputs, tracer.uses
        self._model, self._reporter = model, reporter
        self._layouts = input_trace(model, model_input).layouts
        self._axes = {IMAGE: 1}
        for number, held in sorted(self.outputs.items()):
            if number != IMAGE:
                self._axes[number] = self._axis_of_step(number, held.values)

    def axis_of(self, of: int | ActivationKey | _Use) -> int:
        """Return which axis of a step's output, of a block's or of a use are the channels."""
        if isinstance(of, _Use):
            return self._axis_of_source(of.sources, of.held.values)
        if isinstance(of, ActivationKey):
            return _axis(self.blocks[of].values, self._layouts.get(of))
        return self._axes[of]

    def handed(self, number: int, gradient: Tensor) -> Mapping[int, Tensor]:
        """Return the gradient at what a step was made from, by the step that put that out."""
        sources = self.trace.steps[number - 1].sources
        through = self.outputs[number]
        if len(sources) == 1:
            (source,) = sources
            return self._at({source: [(through, gradient)]})
        uses = self.uses.get(number, ())
        parts = self.pulled(through, gradient, [use.held for use in uses])
        ends: dict[int, list[tuple[Held, Tensor]]] = {}
        for use, part in zip(uses, parts, strict=True):
            if part is not None:
                for source in use.sources:
                    ends.setdefault(source, []).append((use.held, part))
        return self._at(ends)

    def _at(self, ends: Mapping[int, Sequence[tuple[Held, Tensor]]]) -> Mapping[int, Tensor]:
        """Hand gradients from where a step took in back to what was put out there."""
        found: dict[int, Tensor] = {}
        for source, parts in ends.items():
            for held, part in parts if source in self.outputs else ():
                (gradient,) = self.pulled(held, part, [self.outputs[source]])
                if gradient is not None:
                    found[source] = found[source] + gradient if source in found else gradient
        return found

    def pulled(
        self, value: Tensor | Held, gradient: Tensor | None, helds: Sequence[Held]
    ) -> Sequence[Tensor | None]:
        """Return gradients at what is held, in its shape; None where none gets there."""
        if not helds:
            return ()
        through = value.edge if isinstance(value, Held) else value
        edges = [held.edge for held in helds]
        return backward_pass(
            self._model, through, edges, self._reporter, gradient=gradient, keep_graph=True
        )

    def _axis_of_step(self, number: int, values: Tensor) -> int:
        step = self.trace.steps[number - 1]
        if step.kind:
            return _axis(values, self._layouts.get(step.address))
        return self._axis_of_source(step.sources, values)

    def _axis_of_source(self, sources: Collection[int], values: Tensor) -> int:
        """Return which axis are the channels of what comes from some steps: as it was of them."""
        for source in sorted(sources):
            held = self.outputs.get(source)
            if held is not None and held.values.dim() == values.dim():
                return self._axes[source]
        return _axis(values, None)


def _axis(values: Tensor, layout: Layout | None) -> int:
    """Return which axis of an output with its batch are the channels."""
    dims = values.dim()
    if layout is None or not layout.order:
        return min(1, dims - 1) if dims != 3 else 2  # three: tokens, (1, T, C)
    return dims - 1 if layout.last else int(layout.batch)


def summed(product: Tensor, axis: int) -> Tensor:
    """Sum a product over all but its channels, ``(C,)``; what is no number counts as none."""
    wide = product if product.dtype == torch.float64 else product.float()
    finite = torch.nan_to_num(wide, nan=0.0, posinf=0.0, neginf=0.0)
    return finite.movedim(axis, -1).flatten(0, -2).sum(0).cpu() if wide.dim() > 1 else finite.cpu()
