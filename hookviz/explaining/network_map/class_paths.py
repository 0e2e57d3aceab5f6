"""Follow a class score backwards through a network: channels, lines between layers, paths.

What a channel passes on to the class is gradient × input, the first-order part of what it adds to
the score (Shrikumar, Greenside and Kundaje, "Learning Important Features Through Propagating
Activation Differences", 2017, who compare it with theirs), summed over the channel's cells as the
Taylor criterion of Molchanov et al., "Pruning Convolutional Neural Networks for Resource Efficient
Inference" (2017), sums it. It is the slope at this one image: a ReLU that is closed or a sigmoid at
its end passes nothing on, however much it would change the score, and no channel was switched off
to see whether the class needs it.

1. Follow a pass with gradients. Of each value the number at that moment is saved, and the edge of
   autograd's graph that it went through, so that a later write into the tensor changes neither.
   An input from several calls goes through an edge of its own, apart from other uses of the tensor.
2. Backpropagate the class's gradient from step to step.
3. Follow the strongest paths through the channels.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from hookviz.capturing.layer_trace import input_trace
from hookviz.errors import HookVizError
from hookviz.explaining.network_map.followed_pass import (
    IMAGE,
    BlockCall,
    ExecutionTrace,
    ProvenanceTracer,
    read_by,
    run_followed,
)
from hookviz.explaining.scores.scoring import scores_in
from hookviz.hooking import hooks
from hookviz.hooking.device import device_and_dtype
from hookviz.hooking.forward_pass import ProgressReporter, backward_pass, differentiable
from hookviz.hooking.torch_functions import TensorMarks, kind_of, not_followed
from hookviz.language.saying import say
from hookviz.types import ActivationKey, Layout, Model, ModelInput, Progress, ignore


class _SavedActivation(NamedTuple):
    """A tensor of a pass: its values as they were, and the edge of the graph that made them."""

    values: Tensor
    edge: GradientEdge


class _StepInput(NamedTuple):
    """What a call or a join took in: the numbers of the calls that it came from, and the tensor."""

    sources: frozenset[int]
    saved: _SavedActivation


class _GradientTracer(ProvenanceTracer):
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
        self.outputs: dict[int, _SavedActivation] = {}
        self.block_outputs: dict[ActivationKey, _SavedActivation] = {}
        self.uses: dict[int, list[_StepInput]] = {}
        self._saved = TensorMarks[_SavedActivation](while_unwritten=True)
        self._block_inputs: list[list[_StepInput]] = []
        self._join_inputs: list[_StepInput] = []
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
        self._join_inputs = apart.uses
        return super().called(func, args, kwargs)

    def _join(self, *of: Any) -> frozenset[int]:
        made = of[2]
        joined = super()._join(*of)
        (number,) = joined
        self.uses[number] = self._join_inputs
        with not_followed():
            self._save_first(made, self.outputs, number)
        return joined

    def before(self, call: hooks.Call) -> Any:
        super().before(call)
        with not_followed():
            changed, self.uses[len(self.steps)] = self._apart(call)
        return changed

    def after(self, call: hooks.Call) -> Any:
        number = self._open[-1][0]
        output = super().after(call)
        with not_followed():
            self._save_first(
                [tensor for _, tensor in hooks.tensors_in(output)], self.outputs, number
            )
        return output

    def enter(self, call: hooks.Call) -> Any:
        super().enter(call)
        with not_followed():
            changed, uses = self._apart(call)
        self._block_inputs.append(uses)
        return changed

    def leave(self, call: hooks.Call) -> None:
        super().leave(call)
        self._block_inputs.pop()
        with not_followed():
            outputs = [tensor for _, tensor in hooks.tensors_in(call.output)]
            self._save_first(outputs, self.block_outputs, ActivationKey(call.layer, call.index))

    def _as_one_step(self, block: BlockCall, call: hooks.Call, outputs: Sequence[Tensor]) -> None:
        for number in range(block.first, len(self.steps) + 1):  # joins that it takes the place of
            self.uses.pop(number, None)
            self.outputs.pop(number, None)
        super()._as_one_step(block, call, outputs)
        self.uses[block.first] = self._block_inputs[-1]
        self._save_first(outputs, self.outputs, block.first)

    def save(self, tensor: Tensor) -> _SavedActivation:
        """Return a tensor's values as they are now, with its edge."""
        known = self._saved.get(tensor)
        if known is None:
            known = _SavedActivation(tensor.detach().clone(), get_gradient_edge(tensor))
            self._saved[tensor] = known
            if tensor.device.type == "cpu":  # elsewhere the backward pass is a thread of its own
                self._gradients.add("", tensor)
        return known

    def _save_first(self, tensors: Any, into: dict[Any, _SavedActivation], key: Any) -> None:
        for tensor in tensors:
            if _has_gradient(tensor):
                into[key] = self.save(tensor)
                return

    def _apart(self, call: hooks.Call) -> tuple[Any, list[_StepInput]]:
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

    def __init__(self, tracer: _GradientTracer, written: Tensor | None = None) -> None:
        self.uses: list[_StepInput] = []
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
        sources, saved = self._tracer.sources_of([tensor]), self._tracer.save(tensor)
        if tensor is self._written:
            self.uses.append(_StepInput(sources, saved))
            return tensor
        seen = tensor.view_as(tensor)
        self._tracer.set_sources(seen, sources)
        self.uses.append(
            _StepInput(sources, _SavedActivation(saved.values, get_gradient_edge(seen)))
        )
        return seen


def _writes(func: Callable[..., Any]) -> bool:
    """Return whether a function writes into its first argument: ``add_`` or ``+=``."""
    name = str(getattr(func, "__name__", ""))
    is_operator = name.startswith("__i") or name == "__setitem__"
    return is_operator or (name.endswith("_") and not name.endswith("__"))


def _has_gradient(tensor: Tensor) -> bool:
    return tensor.requires_grad and not kind_of(tensor) and torch.is_floating_point(tensor)


class _BackwardSteps:
    """A pass through whose steps gradients are backpropagated.

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
        tracer: _GradientTracer,
        trace: ExecutionTrace,
        reporter: ProgressReporter,
    ) -> None:
        self.trace = trace
        self.outputs, self.blocks, self.uses = tracer.outputs, tracer.block_outputs, tracer.uses
        self._model, self._reporter = model, reporter
        self._layouts = input_trace(model, model_input).layouts
        self._axes = {IMAGE: 1}
        for number, saved in sorted(self.outputs.items()):
            if number != IMAGE:
                self._axes[number] = self._axis_of_step(number, saved.values)

    def axis_of(self, of: int | ActivationKey | _StepInput) -> int:
        """Return which axis of a step's output, of a block's or of a use are the channels."""
        if isinstance(of, _StepInput):
            return self._axis_of_source(of.sources, of.saved.values)
        if isinstance(of, ActivationKey):
            return _axis(self.blocks[of].values, self._layouts.get(of))
        return self._axes[of]

    def backprop_step(self, number: int, gradient: Tensor) -> Mapping[int, Tensor]:
        """Return the gradient at what a step was made from, by the step that put that out."""
        sources = self.trace.steps[number - 1].sources
        through = self.outputs[number]
        if len(sources) == 1:
            (source,) = sources
            return self._at({source: [(through, gradient)]})
        uses = self.uses.get(number, ())
        parts = self.vjp(through, gradient, [use.saved for use in uses])
        ends: dict[int, list[tuple[_SavedActivation, Tensor]]] = {}
        for use, part in zip(uses, parts, strict=True):
            if part is not None:
                for source in use.sources:
                    ends.setdefault(source, []).append((use.saved, part))
        return self._at(ends)

    def _at(
        self, ends: Mapping[int, Sequence[tuple[_SavedActivation, Tensor]]]
    ) -> Mapping[int, Tensor]:
        """Hand gradients from where a step took in back to what was put out there."""
        found: dict[int, Tensor] = {}
        for source, parts in ends.items():
            for saved, part in parts if source in self.outputs else ():
                (gradient,) = self.vjp(saved, part, [self.outputs[source]])
                if gradient is not None:
                    found[source] = found[source] + gradient if source in found else gradient
        return found

    def vjp(
        self,
        value: Tensor | _SavedActivation,
        gradient: Tensor | None,
        inputs: Sequence[_SavedActivation],
    ) -> Sequence[Tensor | None]:
        """Return vector-Jacobian products at the inputs; None where no gradient gets there."""
        if not inputs:
            return ()
        through = value.edge if isinstance(value, _SavedActivation) else value
        edges = [saved.edge for saved in inputs]
        return backward_pass(
            self._model, through, edges, self._reporter, gradient=gradient, keep_graph=True
        )

    def _axis_of_step(self, number: int, values: Tensor) -> int:
        step = self.trace.steps[number - 1]
        if step.kind:
            return _axis(values, self._layouts.get(step.address))
        return self._axis_of_source(step.sources, values)

    def _axis_of_source(self, sources: Collection[int], values: Tensor) -> int:
        """Return the channel axis of a tensor made from some steps: that of their outputs."""
        for source in sorted(sources):
            saved = self.outputs.get(source)
            if saved is not None and saved.values.dim() == values.dim():
                return self._axes[source]
        return _axis(values, None)


def _axis(values: Tensor, layout: Layout | None) -> int:
    """Return which axis of an output with its batch are the channels."""
    dims = values.dim()
    if layout is None or not layout.order:
        return min(1, dims - 1) if dims != 3 else 2  # three: tokens, (1, T, C)
    return dims - 1 if layout.last else int(layout.batch)


def summed(product: Tensor, axis: int) -> Tensor:
    """Sum a product over all but its channels, ``(C,)``; NaN and infinities count as 0."""
    wide = product if product.dtype == torch.float64 else product.float()
    finite = torch.nan_to_num(wide, nan=0.0, posinf=0.0, neginf=0.0)
    return finite.movedim(axis, -1).flatten(0, -2).sum(0).cpu() if wide.dim() > 1 else finite.cpu()


ALONE = 0.999
"""Share from which one channel has nearly all, such as behind a batch norm."""


class PathStep(NamedTuple):
    """A channel of a step's output on a way, and its share of what the next one was made from."""

    step: int
    channel: int
    share: float


ChannelPath = tuple[PathStep, ...]
"""From the first layer on to the class."""


_MOST_PATHS = 3


def _strongest_paths(steps: _BackwardSteps, score: Tensor) -> tuple[ChannelPath, ...]:
    """Return at most `_MOST_PATHS` paths back from a score, the strongest first.

    At each step back goes the channel that adds most to the one that the path is at: of its
    gradient × value the part of each channel that it was made from, along each line. The paths part
    where the score first comes from several channels.
    """
    at = max(steps.trace.output)
    gradient = steps.vjp(score, None, [steps.outputs[at]])[0] if at in steps.outputs else None
    if gradient is None:
        return ()
    path: list[PathStep] = []
    while chosen := _strongest_sources(steps, at, gradient, _MOST_PATHS):
        if len(chosen) > 1 and chosen[0][0].share < ALONE:
            found = [[*path, *_path_from(steps, *each)] for each in chosen]
            return tuple(tuple(reversed(each)) for each in found)
        step, gradient = chosen[0]
        path.append(step)
        at = step.step
    return (tuple(reversed(path)),) if path else ()


def _path_from(steps: _BackwardSteps, step: PathStep, gradient: Tensor) -> list[PathStep]:
    """Return a step and those before it, backwards."""
    path = [step]
    while chosen := _strongest_sources(steps, step.step, gradient, 1):
        step, gradient = chosen[0]
        path.append(step)
    return path


def _strongest_sources(
    steps: _BackwardSteps, number: int, gradient: Tensor, count: int
) -> list[tuple[PathStep, Tensor]]:
    """Return the channels that add most to what a step hands backwards, the first of them.

    Each with the gradient that it hands on. There are none where the image adds most, or nothing
    adds anything.
    """
    gradients = steps.backprop_step(number, gradient)
    sums = {
        source: summed(each * steps.outputs[source].values, steps.axis_of(source))
        for source, each in gradients.items()
    }
    whole = sum(float(each.clamp(min=0).sum()) for each in sums.values())
    ranked = sorted(
        (-float(value), source, int(channel))
        for source, each in sums.items()
        for value, channel in zip(*each.topk(min(count, len(each))), strict=True)
    )[:count]
    if not any(bool(each.any()) for each in sums.values()) or ranked[0][1] == IMAGE:
        return []
    chosen = []
    for rank, (fall, source, channel) in enumerate(ranked):
        if source != IMAGE and (fall < 0 or rank == 0):
            alone = torch.zeros_like(gradients[source])
            axis = steps.axis_of(source)
            alone.select(axis, channel).copy_(gradients[source].select(axis, channel))
            share = max(0.0, -fall) / whole if whole else 0.0
            chosen.append((PathStep(source, channel, share), alone))
    return chosen


@dataclass(frozen=True, eq=False, slots=True)
class ClassPaths:
    """What a class needs, from its score back to the image.

    Attributes:
        trace: of the pass, with its joins.
        score: of the class, before the softmax.
        steps: gradient × value of each channel that a step puts out, summed over its cells,
            ``(C,)``, by the step's number; where no gradient gets there it is missing.
        blocks: the same for each block call's output.
        lines: the share of all that speaks for the class that goes from a step to a step; from
            `IMAGE` on, and to None from those that put out the scores.
        channel_paths: from the first layer to the class, the strongest first.
    """

    trace: ExecutionTrace
    score: float
    steps: Mapping[int, Tensor]
    blocks: Mapping[ActivationKey, Tensor]
    lines: Mapping[tuple[int, int | None], float]
    channel_paths: tuple[ChannelPath, ...]


def shares_of(passed: Tensor) -> Tensor:
    """Return the share of each channel among those that speak for the class; others have none.

    >>> shares_of(torch.tensor([3.0, -2.0, 1.0])).tolist()
    [0.75, 0.0, 0.25]
    """
    above = passed.clamp(min=0)
    whole = above.sum()
    return above / whole if whole > 0 else torch.zeros_like(above)


def class_paths(
    model: Model,
    model_input: ModelInput,
    class_index: int,
    *,
    progress: Progress = ignore,
) -> ClassPaths:
    """Follow what a class's score comes from, backwards, in one pass there and one back.

    A channel's share is its number among those above zero of its layer. Where lines come together,
    each has the share of the channels above zero that came along it; from there on backwards it has
    that share of the step's own, so that the shares of all lines past a layer are 1 in sum.

    `progress` is called with the share done; an exception that it raises ends the run.

    Raises:
        ModelError: the network can't take this input, puts out no class scores, or can't be
            differentiated.
        HookVizError: it runs no layer, or its score has no gradient.
    """
    reporter = ProgressReporter(progress)
    with (
        differentiable(model) as network,
        hooks.on_gradients(lambda _name, _gradient: reporter.share(0.5)) as gradients,
    ):
        images = model_input.tensor.to(*device_and_dtype(network), copy=True).requires_grad_()
        tracer = _GradientTracer(network, reporter, gradients)
        trace, output = run_followed(tracer, model, network, images, reporter)
        score = scores_in(model, output, 1).values[0, class_index]
        if not score.requires_grad:
            raise HookVizError(
                say("No gradient gets from the scores of {model} to its layers.", model=model.title)
            )
        tracer.outputs[IMAGE] = tracer.save(images)
        steps = _BackwardSteps(model, model_input, tracer, trace, reporter)
        passed = _gradient_times_value(steps, score)
        return ClassPaths(
            trace,
            float(score.detach()),
            {at: each for at, each in passed.items() if isinstance(at, int) and at != IMAGE},
            {at: each for at, each in passed.items() if isinstance(at, ActivationKey)},
            _lines(steps, passed),
            _strongest_paths(steps, score),
        )


_Location = int | ActivationKey | tuple[int, int]
"""A step, a block's call, or what a step took in: its number, and which of its uses."""


def _gradient_times_value(steps: _BackwardSteps, score: Tensor) -> Mapping[_Location, Tensor]:
    """Return gradient × value by channel of every saved activation."""
    every: dict[_Location, tuple[_SavedActivation, int]] = {}
    for number, saved in steps.outputs.items():
        every[number] = saved, steps.axis_of(number)
    for at, saved in steps.blocks.items():
        every[at] = saved, steps.axis_of(at)
    for number, uses in steps.uses.items():
        for place, use in enumerate(uses):
            every[number, place] = use.saved, steps.axis_of(use)
    gradients = steps.vjp(score, None, [saved for saved, _ in every.values()])
    return {
        place: summed(gradient * saved.values, axis)
        for (place, (saved, axis)), gradient in zip(every.items(), gradients, strict=True)
        if gradient is not None
    }


def _lines(
    steps: _BackwardSteps, passed: Mapping[_Location, Tensor]
) -> Mapping[tuple[int, int | None], float]:
    """Return the share of all that goes along each line, from the scores backwards."""
    output, count = steps.trace.output, len(steps.trace.steps)
    lines: dict[tuple[int, int | None], float] = {(each, None): 1 / len(output) for each in output}
    flows = dict.fromkeys(range(count + 1), 0.0) | {each: 1 / len(output) for each in output}
    for number in range(count, 0, -1):
        for source, share in _shares_into(steps, number, passed).items():
            lines[source, number] = flows[number] * share
            flows[source] += lines[source, number]
    return lines


def _shares_into(
    steps: _BackwardSteps, number: int, passed: Mapping[_Location, Tensor]
) -> Mapping[int, float]:
    """Return the share that came along each line into a step."""
    sources = steps.trace.steps[number - 1].sources
    if len(sources) == 1:
        return dict.fromkeys(sources, 1.0)
    amounts = dict.fromkeys(sorted(sources), 0.0)
    for place, use in enumerate(steps.uses.get(number, ())):
        found = passed.get((number, place))
        if found is not None:
            for source in use.sources:
                amounts[source] += float(found.clamp(min=0).sum()) / len(use.sources)
    whole = sum(amounts.values())
    return {source: amount / whole if whole else 0.0 for source, amount in amounts.items()}
