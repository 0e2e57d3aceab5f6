"""Evaluate an attribution target on many inputs, as many in a batch as time and memory allow.

The rows of a batch may depend on each other: a batch norm without averages of its own mixes them,
and so do a scale by the batch's largest value, a sort over it, or code that is made for a fixed
number of images. No rule recognises such a network, so it is tried on its actual inputs. The image
and half of it are run in one batch and each alone: a number taken over the whole batch is another
one beside the half. Then the last row of the first real batch is compared, at its own size.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from hookviz.capturing.layer_trace import input_trace
from hookviz.errors import ModelError
from hookviz.explaining.attribution.gradients import INPUT, GradientPass, no_gradient_error
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.hooking.device import device_and_dtype
from hookviz.hooking.forward_pass import ProgressReporter, private_replica
from hookviz.machine.memory import is_short_of_memory
from hookviz.types import Model, ModelInput, Progress

_SLACK = 4  # times the tolerance, as the largest difference over a whole map counts


def half_and_whole(image: Tensor) -> Tensor:
    """Stack half of an input and the input itself, ``(2, C, H, W)``.

    Nearly every number that a network takes over a whole batch, such as its largest, is another
    one for the two together than for the half alone.
    """
    return torch.cat([image / 2, image])


def run_alone_and_batched(
    images: Tensor, run: Callable[[Tensor], Tensor], reporter: ProgressReporter | None = None
) -> tuple[Tensor, Tensor | None]:
    """Run inputs each in a pass of its own, and all in one batch.

    `run` maps a batch, ``(N, C, H, W)``, to results, ``(N, …)``; a caller may end a pass through
    `reporter`.

    Returns:
        both results, ``(N, …)``; None for the second where the network can't take the batch.

    Raises:
        ModelError: it can't take one of them alone.
    """
    alone = torch.cat([run(image[None]) for image in images])
    try:
        return alone, run(images)
    except ModelError as error:
        if reporter is not None and reporter.was_ended_by(error):
            raise
        return alone, None  # made for one image; what else is wrong shows with one, too


def agree_within(alone: Tensor, together: Tensor | None, tolerance: float) -> bool:
    """Return whether two results agree within rounding; NaN and infinities have to be the same."""
    return (
        together is not None
        and alone.shape == together.shape
        and torch.allclose(together, alone, rtol=0, atol=_SLACK * tolerance, equal_nan=True)
    )


def batch_tolerance(network: nn.Module, values: Tensor) -> float:
    """Return by how much values may differ through rounding between batches of different sizes."""
    device, dtype = device_and_dtype(network)
    epsilon = torch.finfo(dtype).eps
    if device.type == "cuda" and dtype == torch.float32 and torch.backends.cudnn.allow_tf32:
        epsilon = 2.0**-16  # its products have ten bits: two passes are some 1e-3 apart
    finite = values[values.isfinite()]
    largest = float(finite.abs().max()) if finite.numel() else 0.0
    return min(256 * epsilon, 0.02) * largest


MAX_BATCH_WORK = 8e9  # multiply-adds of a batch: a fraction of a second between progress reports
MAX_BATCH_SIZE = 32  # inputs
_MIN_TO_BATCH = 4  # inputs; to try whether fewer are independent takes longer than it saves
_MAX_BATCH_BYTES = 256 << 20  # of activations
_PASSES_WITH_GRADIENT = 2  # a backward pass to the input alone takes about as long as a forward

Inputs = Callable[[int, int], Tensor]
"""Makes the inputs from one number up to another (exclusive), ``(n, C, H, W)``, when needed."""

_Run = Callable[[Tensor, Progress], tuple[Tensor, Tensor]]
"""Returns the target of each input, float64 ``(n,)``, and the gradients or an empty tensor."""


@dataclass(frozen=True, eq=False, slots=True)
class TargetBatch:
    """Target values of one batch of the inputs, and the gradients where asked for.

    Attributes:
        start: the number of the batch's first input.
        values: the target of each, float64 ``(n,)``.
        gradients: ∂target/∂input of each, ``(n, C, H, W)`` on the CPU; empty unless asked for.
    """

    start: int
    values: Tensor
    gradients: Tensor = field(default_factory=lambda: torch.empty(0), repr=False)


def iter_target_values(
    model: Model,
    model_input: ModelInput,
    target: AttributionTarget,
    inputs: Inputs,
    *,
    count: int,
    progress: Progress,
    gradients: bool = False,
) -> Iterator[TargetBatch]:
    """Evaluate the target on `count` inputs, batch by batch; with its gradients at the inputs.

    `model_input` is an input of the same size. `inputs` may make the same inputs again. `progress`
    is called with the share done after every conv layer; an exception that it raises ends the run.

    Raises:
        SettingError: the target's layer lacks that channel or cell.
        ModelError: the network can't take one of the inputs, or has no class scores.
        HookVizError: no gradient gets from the target to the input.
    """

    def run(images: Tensor, batch_progress: Progress) -> tuple[Tensor, Tensor]:
        layers = (INPUT,) if gradients else ()
        gradient_pass = GradientPass(model, model_input, target, layers, batch_progress)
        if not gradients:
            with private_replica(model) as replica:
                values = gradient_pass.target_values(replica, images)
            return values.detach().cpu().double(), torch.empty(0)
        gradient = gradient_pass.run(images)[INPUT]
        if gradient is None:
            raise no_gradient_error(model, model_input, INPUT, target)
        return gradient_pass.values.double(), gradient.detach().cpu()

    reporter = rising(progress)
    plan = _plan_batches(model, model_input, target, count, reporter, gradients=gradients)
    yield from _iter_batches(run, inputs, count, plan, reporter)


@dataclass(frozen=True, slots=True)
class _BatchPlan:
    """Batch size, and how much the same input's outputs may differ between batches by rounding."""

    rows: int
    tolerance: float = 0.0


def _iter_batches(
    run: _Run, inputs: Inputs, count: int, plan: _BatchPlan, reporter: ProgressReporter
) -> Iterator[TargetBatch]:
    """Run all inputs in batches; one by one from where a batch fails or gives something else."""
    start, rows, checked = 0, plan.rows, False
    while start < count:
        images = inputs(start, min(count, start + rows))
        batch_progress = progress_of_part(reporter, start, len(images), count)
        try:
            values, gradients = run(images, batch_progress)
        except ModelError as error:
            if len(images) == 1 or reporter.was_ended_by(error):
                raise
            # One alone shows what else is wrong.
            rows = len(images) // 2 if is_short_of_memory(error) else 1
            continue
        if len(images) > 1 and not checked:
            checked = True
            value, gradient = run(images[-1:], batch_progress)
            if not (
                agree_within(value, values[-1:], plan.tolerance)
                and _gradients_agree(gradient, gradients[-1:])
            ):
                rows = 1
                continue
        yield TargetBatch(start, values, gradients)
        start += len(images)


def _gradients_agree(alone: Tensor, together: Tensor) -> bool:
    """Return whether gradients agree but for a ReLU here or there whose input is almost 0."""
    return bool((together - alone).norm() <= 1e-2 * alone.norm())


def rising(progress: Progress) -> ProgressReporter:
    """Make a reporter of shares that never fall, as a run one by one starts again from 0."""
    highest = 0.0

    def report(share: float) -> None:
        nonlocal highest
        highest = max(highest, share)
        progress(highest)

    return ProgressReporter(report)


def progress_of_part(reporter: ProgressReporter, start: int, size: int, count: int) -> Progress:
    """Scale the share done of `size` steps from `start` on to that of all `count`."""
    return lambda share: reporter.share((start + size * share) / count)


def _plan_batches(
    model: Model,
    model_input: ModelInput,
    target: AttributionTarget,
    count: int,
    reporter: ProgressReporter,
    *,
    gradients: bool,
) -> _BatchPlan:
    """Choose the batch size: as time and memory allow, and 1 where rows depend on each other."""
    trace = input_trace(model, model_input)
    work = sum(layer.multiply_adds * layer.calls for layer in trace.layers)
    sizes = [trace.nbytes[layer.name] for layer in trace.layers]
    nbytes = 2 * sum(sizes) if gradients else 4 * max(sizes, default=0)
    on_gpu = device_and_dtype(model.network)[0].type != "cpu"
    passes = _PASSES_WITH_GRADIENT if gradients else 1
    by_time = MAX_BATCH_SIZE if on_gpu else MAX_BATCH_WORK // max(1, passes * work)
    rows = int(min(MAX_BATCH_SIZE, by_time, _MAX_BATCH_BYTES // max(1, nbytes)))
    if rows <= 1 or count < _MIN_TO_BATCH or not trace.is_static:
        return _BatchPlan(1)  # code that branches on values may branch differently for a batch

    def outputs(images: Tensor) -> Tensor:
        gradient_pass = GradientPass(
            model, model_input, target, (), lambda _share: reporter.share(0.0)
        )
        with private_replica(model) as replica:
            return gradient_pass.target_outputs(replica, images)

    alone, together = run_alone_and_batched(half_and_whole(model_input.tensor), outputs, reporter)
    plan = _BatchPlan(rows, batch_tolerance(model.network, alone))
    return plan if agree_within(alone, together, plan.tolerance) else _BatchPlan(1)
