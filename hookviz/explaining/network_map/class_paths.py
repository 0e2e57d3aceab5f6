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
from typing import NamedTuple

import torch
from torch import Tensor

from hookviz.errors import HookVizError
from hookviz.explaining.network_map.followed_gradient import (
    BackwardSteps,
    GradientTracer,
    Held,
    summed,
)
from hookviz.explaining.network_map.followed_pass import IMAGE, ExecutionTrace, run_followed
from hookviz.explaining.scores.scoring import scores_in
from hookviz.hooking import hooks
from hookviz.hooking.device import device_and_dtype
from hookviz.hooking.forward_pass import ProgressReporter, differentiable
from hookviz.language.saying import say
from hookviz.types import ActivationKey, Model, ModelInput, Progress, ignore

ALONE = 0.999
"""Share from which one channel has nearly all, such as behind a batch norm."""


class WayStep(NamedTuple):
    """A channel of a step's output on a way, and its share of what the next one was made from."""

    step: int
    channel: int
    share: float


Way = tuple[WayStep, ...]
"""From the first layer on to the class."""


def _strongest_ways(steps: BackwardSteps, score: Tensor, count: int) -> tuple[Way, ...]:
    """Return the ways back from a score, the strongest first.

    At each step back goes the channel that adds most to the one that the way is at: of its
    gradient × value the part of each channel that it was made from, along each line. The ways part
    where the score first comes from several channels.
    """
    at = max(steps.trace.output)
    gradient = steps.pulled(score, None, [steps.outputs[at]])[0] if at in steps.outputs else None
    if gradient is None:
        return ()
    way: list[WayStep] = []
    while chosen := _choices(steps, at, gradient, count):
        if len(chosen) > 1 and chosen[0][0].share < ALONE:
            found = [[*way, *_followed(steps, *each)] for each in chosen]
            return tuple(tuple(reversed(each)) for each in found)
        step, gradient = chosen[0]
        way.append(step)
        at = step.step
    return (tuple(reversed(way)),) if way else ()


def _followed(steps: BackwardSteps, step: WayStep, gradient: Tensor) -> list[WayStep]:
    """Return a step and those before it, backwards."""
    way = [step]
    while chosen := _choices(steps, step.step, gradient, 1):
        step, gradient = chosen[0]
        way.append(step)
    return way


def _choices(
    steps: BackwardSteps, number: int, gradient: Tensor, count: int
) -> list[tuple[WayStep, Tensor]]:
    """Return the channels that add most to what a step hands backwards, the first of them.

    Each with the gradient that it hands on. There are none where the image adds most, or nothing
    adds anything.
    """
    handed = steps.handed(number, gradient)
    sums = {
        source: summed(each * steps.outputs[source].values, steps.axis_of(source))
        for source, each in handed.items()
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
            alone = torch.zeros_like(handed[source])
            axis = steps.axis_of(source)
            alone.select(axis, channel).copy_(handed[source].select(axis, channel))
            share = max(0.0, -fall) / whole if whole else 0.0
            chosen.append((WayStep(source, channel, share), alone))
    return chosen


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

    Ways are followed channel by channel, as `_strongest_ways` says.

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
            _strongest_ways(steps, score, ways),
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
