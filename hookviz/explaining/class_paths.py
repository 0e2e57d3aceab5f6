"""Follow what a class needs backwards through a network: channels, lines between layers, ways.

What a channel passes on to the class is gradient × input, the first-order part of what it adds to
the score (Shrikumar, Greenside and Kundaje, "Learning Important Features Through Propagating
Activation Differences", 2017, who compare it with theirs), summed over the channel's cells as the
Taylor criterion of Molchanov et al., "Pruning Convolutional Neural Networks for Resource Efficient
Inference" (2017), sums it. It is the slope at this one image: a ReLU that is closed or a sigmoid at
its end passes nothing on, however much it would change the score, and no channel was switched off
to see whether the class needs it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from hookviz.errors import HookVizError
from hookviz.explaining.class_ways import Way, strongest_ways
from hookviz.explaining.followed_gradient import GradientTracer, Held
from hookviz.explaining.followed_pass import ExecutionTrace, run_followed
from hookviz.explaining.handed_back import BackwardSteps, summed
from hookviz.explaining.provenance import IMAGE
from hookviz.explaining.scoring import scores_in
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import ProgressReporter, differentiable
from hookviz.hooking.precision import device_and_dtype
from hookviz.language.saying import say
from hookviz.types import ActivationKey, Model, ModelInput, Progress, ignore


@dataclass(frozen=True, eq=False, slots=True)
class ClassPaths:
    """What a class needs, from its score back to the image.

    Attributes:
        trace: of the pass, with its joins.
        score: of the class, before the softmax.
        steps: gradient × value of each channel that a step puts out, summed over its cells,
            ``(C,)``, by the step's number; where no gradient gets there it is missing.
        blocks: the same of what a block's call puts out.
        lines: the share of all that speaks for the class that goes from a step to a step; from
            `IMAGE` on, and to None from those that put out the scores.
        ways: the strongest ways from the first layer to the class, the strongest first.
    """

    trace: ExecutionTrace
    score: float
    steps: Mapping[int, Tensor]
    blocks: Mapping[ActivationKey, Tensor]
    lines: Mapping[tuple[int, int | None], float]
    ways: tuple[Way, ...]


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
    ways: int = 3,
    progress: Progress = ignore,
) -> ClassPaths:
    """Follow what a class's score comes from, backwards, in one pass there and one back.

    A channel's share is its number among those above zero of its layer. Where lines come together,
    each has the share of the channels above zero that came along it; from there on backwards it has
    that share of what its place had, so that the shares of all that pass a layer are 1 in sum.

    Ways are followed channel by channel, as `strongest_ways` says.

    Args:
        model: the model.
        model_input: what the network is given.
        class_index: the class.
        ways: how many ways are followed at most.
        progress: called with the share done; what it raises ends the run.

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
        tracer = GradientTracer(network, reporter, gradients)
        trace, output = run_followed(tracer, model, network, images, reporter)
        score = scores_in(model, output, 1).values[0, class_index]
        if not score.requires_grad:
            raise HookVizError(
                say("No gradient gets from the scores of {model} to its layers.", model=model.title)
            )
        tracer.outputs[IMAGE] = tracer.held(images)
        steps = BackwardSteps(model, model_input, tracer, trace, reporter)
        passed = _passed(steps, score)
        return ClassPaths(
            trace,
            float(score.detach()),
            {at: each for at, each in passed.items() if isinstance(at, int) and at != IMAGE},
            {at: each for at, each in passed.items() if isinstance(at, ActivationKey)},
            _lines(steps, passed),
            strongest_ways(steps, score, ways),
        )


_Place = int | ActivationKey | tuple[int, int]
"""A step, a block's call, or what a step took in: its number, and which of its uses."""


def _passed(steps: BackwardSteps, score: Tensor) -> Mapping[_Place, Tensor]:
    """Return gradient × value by channel of all that is held."""
    every: dict[_Place, tuple[Held, int]] = {}
    for number, held in steps.outputs.items():
        every[number] = held, steps.axis_of(number)
    for at, held in steps.blocks.items():
        every[at] = held, steps.axis_of(at)
    for number, uses in steps.uses.items():
        for place, use in enumerate(uses):
            every[number, place] = use.held, steps.axis_of(use)
    gradients = steps.pulled(score, None, [held for held, _ in every.values()])
    return {
        place: summed(gradient * held.values, axis)
        for (place, (held, axis)), gradient in zip(every.items(), gradients, strict=True)
        if gradient is not None
    }


def _lines(
    steps: BackwardSteps, passed: Mapping[_Place, Tensor]
) -> Mapping[tuple[int, int | None], float]:
    """Return the share of all that goes along each line, from the scores backwards."""
    output, count = steps.trace.output, len(steps.trace.steps)
    lines: dict[tuple[int, int | None], float] = {(each, None): 1 / len(output) for each in output}
    flows = dict.fromkeys(range(count + 1), 0.0) | {each: 1 / len(output) for each in output}
    for number in range(count, 0, -1):
        for source, share in _entering(steps, number, passed).items():
            lines[source, number] = flows[number] * share
            flows[source] += lines[source, number]
    return lines


def _entering(
    steps: BackwardSteps, number: int, passed: Mapping[_Place, Tensor]
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
