"""Follow the strongest ways from a class back through the channels that its score comes from."""

from typing import NamedTuple

import torch
from torch import Tensor

from hookviz.explaining.handed_back import BackwardSteps, summed
from hookviz.explaining.provenance import IMAGE

ALONE = 0.999
"""Share from which one channel has nearly all, such as behind a batch norm."""


class WayStep(NamedTuple):
    """A channel of a step's output on a way, and its share of what the next one was made from."""

    step: int
    channel: int
    share: float


Way = tuple[WayStep, ...]
"""From the first layer on to the class."""


def strongest_ways(steps: BackwardSteps, score: Tensor, count: int) -> tuple[Way, ...]:
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
