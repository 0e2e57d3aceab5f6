"""A quantity of many inputs of one size, as many in a pass as time, memory and network allow.

Rows of a batch may know each other: a batch norm without averages of its own mixes them, and so do
a scale by the batch's largest value, a sort over it, or code that is made for so many images. No
law tells such a network, so it is tried with what it is going to be given. The image and half of it
go through together and each alone: what is taken over the whole batch is another number beside the
half. Then the first of the real batches has its last row compared, at its own size.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor

from hookviz.capturing.layer_trace import input_trace
from hookviz.errors import ModelError
from hookviz.explaining.apart import alone_and_together, are_near, halved, rounding
from hookviz.explaining.attribution import unreached
from hookviz.explaining.backward import INPUT, Pass, Quantity
from hookviz.hooking.forward_pass import ProgressReporter, private_replica
from hookviz.hooking.precision import device_and_dtype
from hookviz.hooking.purity import is_pure
from hookviz.types import Model, ModelInput, Progress

WORK = 8e9  # multiply-adds of one batch: a fraction of a second, after which progress is told
MOST_AT_ONCE = 32  # inputs in a batch
_WORTH_TRYING = 4  # inputs; whether fewer may go together takes longer to learn than it saves
_ROOM = 256 << 20  # bytes of activations that a pass may take
_THERE_AND_BACK = 2  # the way back to the input alone takes about as long as the way there

Inputs = Callable[[int, int], Tensor]
"""Makes the inputs from one number up to another, ``(n, C, H, W)``, when their turn has come."""

_Run = Callable[[Tensor, Progress], tuple[Tensor, Tensor]]
"""The quantity of each of some inputs, float64 ``(n,)``, and its gradients, or nothing."""


@dataclass(frozen=True, eq=False, slots=True)
class Some:
    """What is known of some of the inputs, in order.

    Attributes:
        start: the number of the first.
        values: the quantity of each, float64 ``(n,)``.
        gradients: ∂quantity/∂input of each, ``(n, C, H, W)`` on the CPU; none unless asked for.
    """

    start: int
    values: Tensor
    gradients: Tensor = field(default_factory=lambda: torch.empty(0), repr=False)


def each_value(
    model: Model,
    model_input: ModelInput,
    quantity: Quantity,
    inputs: Inputs,
    *,
    count: int,
    progress: Progress,
) -> Iterator[Some]:
    """The quantity of every one of `count` inputs, some in each pass.

    Args:
        model: the model.
        model_input: an input of the size that is meant.
        quantity: what is asked about.
        inputs: makes them, any of them more than once.
        count: how many there are.
        progress: told the share done after every conv layer; what it raises ends the run.

    Raises:
        SettingError: the quantity's layer has no such channel or cell.
        ModelError: the network can't take one of the inputs, or has no class scores.
    """

    def run(images: Tensor, within: Progress) -> tuple[Tensor, Tensor]:
        one = Pass(model, model_input, quantity, (), within)
        with private_replica(model) as replica:
            return one.values_of(replica, images).detach().cpu().double(), torch.empty(0)

    reporter = _rising(progress)
    batch = _at_once(model, model_input, quantity, count, reporter, gradients=False)
    yield from _in_batches(run, inputs, count, batch, reporter)


def each_gradient(
    model: Model,
    model_input: ModelInput,
    quantity: Quantity,
    inputs: Inputs,
    *,
    count: int,
    progress: Progress,
) -> Iterator[Some]:
    """As `each_value`, with the gradients of the quantity at the inputs.

    Raises:
        HookVizError: as `each_value` does; or no gradient gets from the quantity to the input.
    """

    def run(images: Tensor, within: Progress) -> tuple[Tensor, Tensor]:
        one = Pass(model, model_input, quantity, (INPUT,), within)
        gradients = one.run(images)[INPUT]
        if gradients is None:
            raise unreached(model, model_input, INPUT, quantity)
        return one.values.double(), gradients.detach().cpu()

    reporter = _rising(progress)
    batch = _at_once(model, model_input, quantity, count, reporter, gradients=True)
    yield from _in_batches(run, inputs, count, batch, reporter)


@dataclass(frozen=True, slots=True)
class _Batch:
    """How many inputs go into one pass, and by how much their values may differ by rounding."""

    rows: int
    rounding: float = 0.0


def _in_batches(
    run: _Run, inputs: Inputs, count: int, batch: _Batch, reporter: ProgressReporter
) -> Iterator[Some]:
    """All inputs, some in a pass; or one by one from where that turns out to be something else."""
    start, rows, tried = 0, batch.rows, False
    while start < count:
        images = inputs(start, min(count, start + rows))
        within = _share_of(reporter, start, len(images), count)
        try:
            values, gradients = run(images, within)
        except ModelError as error:
            if len(images) == 1 or reporter.was_ended_by(error):
                raise
            rows = 1  # made for fewer; what else is wrong shows with one, too
            continue
        if len(images) > 1 and not tried:
            tried = True
            value, gradient = run(images[-1:], within)
            if not (
                are_near(value, values[-1:], batch.rounding)
                and _is_one_way(gradient, gradients[-1:])
            ):
                rows = 1
                continue
        yield Some(start, values, gradients)
        start += len(images)


def _is_one_way(alone: Tensor, together: Tensor) -> bool:
    """Whether two gradients are the same but for a ReLU here or there whose input is almost 0."""
    return bool((together - alone).norm() <= 1e-2 * alone.norm())


def _rising(progress: Progress) -> ProgressReporter:
    """Tells shares that never fall, as what goes one by one begins anew."""
    most = 0.0

    def tell(share: float) -> None:
        nonlocal most
        most = max(most, share)
        progress(most)

    return ProgressReporter(tell)


def _share_of(reporter: ProgressReporter, start: int, some: int, count: int) -> Progress:
    """Tells how far all inputs are, by how far some of them are."""
    return lambda share: reporter.share((start + some * share) / count)


def _at_once(
    model: Model,
    model_input: ModelInput,
    quantity: Quantity,
    count: int,
    reporter: ProgressReporter,
    *,
    gradients: bool,
) -> _Batch:
    """As many as time and memory allow, and 1 where those of a batch are not apart."""
    trace = input_trace(model, model_input)
    work = sum(layer.multiply_adds * layer.calls for layer in trace.layers)
    sizes = [trace.nbytes[layer.name] for layer in trace.layers]
    held = 2 * sum(sizes) if gradients else 4 * max(sizes, default=0)
    on_gpu = device_and_dtype(model.network)[0].type != "cpu"
    passes = _THERE_AND_BACK if gradients else 1
    by_time = MOST_AT_ONCE if on_gpu else WORK // max(1, passes * work)
    many = int(min(MOST_AT_ONCE, by_time, _ROOM // max(1, held)))
    if many <= 1 or count < _WORTH_TRYING or not is_pure(model.network):
        return _Batch(1)  # a way that values decide may be another one for a batch

    def whole(images: Tensor) -> Tensor:
        one = Pass(model, model_input, quantity, (), lambda _share: reporter.share(0.0))
        with private_replica(model) as replica:
            return one.whole_of(replica, images)

    alone, together = alone_and_together(halved(model_input.tensor), whole, reporter)
    batch = _Batch(many, rounding(model.network, alone))
    return batch if are_near(alone, together, batch.rounding) else _Batch(1)
