"""Hand gradients back from step to step of a pass that was followed with them."""

from collections.abc import Collection, Mapping, Sequence

import torch
from torch import Tensor

from hookviz.capturing.layer_trace import input_trace
from hookviz.explaining.followed_gradient import GradientTracer, Held, Use
from hookviz.explaining.followed_pass import ExecutionTrace
from hookviz.explaining.provenance import IMAGE
from hookviz.hooking.forward_pass import ProgressReporter, backward_pass
from hookviz.types import ActivationKey, Layout, Model, ModelInput


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

    def axis_of(self, of: int | ActivationKey | Use) -> int:
        """Return which axis of a step's output, of a block's or of a use are the channels."""
        if isinstance(of, Use):
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
