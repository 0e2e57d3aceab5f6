"""Optimise pictures for a goal, step by step along its gradient; any step can be the last.

`LayerPasses` runs pictures up to some layers, with the outputs that each has alone in its batch.
`run_resumed` goes on where an optimization of equal arguments was ended, from a session's cache.
Without a gradient to follow, the error names a layer that has one.
"""

import copy
import math
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.capturing.cache import ByteCache
from hookviz.capturing.layer_trace import layer_trace
from hookviz.errors import HookVizError, ModelError, SettingError
from hookviz.explaining.attribution.batched_passes import (
    agree_within,
    batch_tolerance,
    half_and_whole,
    run_alone_and_batched,
)
from hookviz.hooking import hooks
from hookviz.hooking.channels_last import lay_out, with_channels_last
from hookviz.hooking.device import device_and_dtype
from hookviz.hooking.forward_pass import (
    ProgressReporter,
    backward_pass,
    differentiable,
    forward_pass,
)
from hookviz.hooking.torch_functions import plain
from hookviz.language.saying import mark, say
from hookviz.machine.memory import own_memory
from hookviz.synthesis.composing import FunctionObjective, Goal
from hookviz.synthesis.goals import by_picture
from hookviz.synthesis.picture_space import (
    FixedMagnitudeSpectrum,
    Fourier,
    InputRange,
    PictureSpace,
    picture_shape,
    pixels,
)
from hookviz.synthesis.settings import MOST_PICTURES, MaximizationConfig
from hookviz.types import Model, Pixels
from hookviz.wording import byte_size

Outputs = Callable[[Tensor], tuple[Tensor, ...]]
"""From inputs, ``(N, C, H, W)``, to each layer's output, ``(N, C, rows, columns)``."""

ROUNDED = mark(
    "Each pass had its channels last in memory, which is faster and rounds otherwise than a plain "
    "one: by less than 2 in 100,000, which adds up over many steps."
)
"""How passes are rounded that have their inputs so."""


class LayerPasses:
    """Forward passes of a model that end where all layers that are asked for have run.

    They go on to the class scores where None is among the layers.

    Attributes:
        channels_last: whether inputs go through with their channels last in memory, which is faster
            on CPUs; until a network turns out that can't take that. A convolutional network's
            weights lie so too.
    """

    def __init__(self, model: Model, layers: Sequence[str | None]) -> None:
        self._model, self._layers = model, tuple(layers)
        self.channels_last = True
        self._fast = model  # or around weights with their channels last, once passes begin
        self._keeps_apart: bool | None = None  # whether it keeps images of a batch apart, if tried

    @property
    def how(self) -> str:
        """How the passes are rounded, in words; empty of plain ones."""
        return say(ROUNDED) if self.channels_last else ""

    @contextmanager
    def on_network(self) -> Iterator[Outputs]:
        """Hold the network for passes there and back, and yield the function that runs forward."""
        self._fast = with_channels_last(self._model) if self.channels_last else self._model
        with ExitStack() as held:
            network = held.enter_context(differentiable(self._fast))
            yield partial(self._outputs, held, network)

    def _outputs(self, held: ExitStack, network: nn.Module, inputs: Tensor) -> tuple[Tensor, ...]:
        """Run a batch at once where the network keeps its images apart, else one by one."""
        run = partial(self._run_batch, held, network)
        if len(inputs) > 1 and self._keeps_apart is None:
            self._keeps_apart = all(
                self._try_apart(partial(_output_of, run, at), inputs)
                for at in range(len(self._layers))
            )
        if len(inputs) > 1 and not self._keeps_apart:
            alone = [run(image[None]) for image in inputs]
            return tuple(torch.cat(outputs) for outputs in zip(*alone, strict=True))
        return run(inputs)

    @torch.no_grad()
    def _try_apart(self, run: Callable[[Tensor], Tensor], inputs: Tensor) -> bool:
        tried = torch.cat([half_and_whole(inputs[:1]), inputs[1:2]])
        alone, together = run_alone_and_batched(tried, run)
        return agree_within(alone, together, batch_tolerance(self._model.network, alone))

    def _run_batch(self, held: ExitStack, network: nn.Module, inputs: Tensor) -> tuple[Tensor, ...]:
        if self.channels_last:
            try:
                return self._run(network, lay_out(inputs))
            except ModelError as error:
                if ".reshape(" not in str(error.__cause__):  # as torch advises where `view` fails
                    raise
                self.channels_last = False
        if not self.channels_last and self._fast is not self._model:  # whose weights lie so
            network = held.enter_context(differentiable(self._model))
        return self._run(network, inputs)

    def _run(self, network: nn.Module, inputs: Tensor) -> tuple[Tensor, ...]:
        model, layers = self._model, self._layers
        outputs: dict[str | None, object] = {}

        def see(call: hooks.Call) -> None:
            if call.layer in outputs:
                return
            output = call.output
            if isinstance(output, Tensor):
                output = plain(output)
            if isinstance(output, Tensor) and len(layers) > 1:
                output = output.clone()  # the pass goes on, and an in-place ReLU may follow
            outputs[call.layer] = output
            if len(outputs) == len(layers):
                raise hooks.StopForward  # the rest of the network adds nothing

        with hooks.observe(network, [layer for layer in layers if layer is not None], see):
            inputs = inputs.to(device_and_dtype(model.network)[0])
            scores = forward_pass(model, network, inputs, ProgressReporter(None))
        if None in layers:
            outputs[None] = scores
        for layer in layers:
            if layer not in outputs:
                raise ModelError(
                    say("Layer {layer!r} of {model} did not run.", layer=layer, model=model.title)
                )
        count, shape = len(inputs), tuple(inputs.shape[1:])
        return tuple(by_picture(model, layer, outputs[layer], count, shape) for layer in layers)


def _output_of(run: Outputs, at: int, images: Tensor) -> Tensor:
    return run(images)[at]


_TIMES = 3  # what a pass there and back holds at most, in bytes of the layers' outputs
_SHARE = 2  # of the process's memory, one half is for one run
_EPSILON = 1e-16  # Adam's; a deep network's gradients can be far below its usual 1e-8
_STEP_SEEDS = 1_000_003  # between the first steps of two seeds that follow each other

_EVERY = 0.2  # seconds between two copies


@dataclass(frozen=True, eq=False, slots=True)
class OptimizationState:
    """Copy of all that an `Optimization` has to remember between steps; nothing of the network."""

    parameters: Tensor
    adam: dict[str, Any]
    unit: Tensor | None
    channels_last: bool
    history: tuple[tuple[float, ...], ...]

    @property
    def steps(self) -> int:
        """Number of steps that were done."""
        return len(self.history)

    @property
    def nbytes(self) -> int:
        """Approximate bytes that it takes: Adam has two numbers for each parameter."""
        return 3 * self.parameters.nbytes + 100 * len(self.history)


class Optimization:
    """Gradient ascent of pictures for goals of the same layers of a model, one for each picture.

    Each step is a pass there and back over all pictures, and one step of Adam (Kingma and Ba,
    2015). Between steps nothing is left of it on any network: it may be kept, stopped and continued
    at any time.

    Attributes:
        model: whose pictures they are.
        goals: of each picture.
        method: how they are made.
        shape: ``(C, H, W)`` of each picture.
        passes: what runs the network, and says how its numbers are rounded.
        steps: how many are done.
        values: of each goal in the step before, on the transformed picture.
        history: the values of every step, each ``(N,)``.
    """

    def __init__(
        self,
        model: Model,
        goals: Sequence[Goal],
        method: MaximizationConfig,
        *,
        seeds: Sequence[int] | None = None,
        start: Tensor | None = None,
        shape: Sequence[int] | None = None,
    ) -> None:
        """Begin with noise, or with `start`.

        There is a goal for each picture, all of the same layers, or all of classes. `seeds` are of
        each picture's first noise, by default the method's. `start` are pictures of 0…1,
        ``(N, C, H, W)``. `shape`, ``(C, H, W)``, takes the place of the method's size.

        Raises:
            SettingError: the method means nothing, or the goals are not of the same layers.
            HookVizError: the model takes no pictures.
            ModelError: the pictures would take more memory than there is.
        """
        method.check()
        if not 0 < len(goals) <= MOST_PICTURES:
            raise SettingError(
                say(
                    "{count} pictures: 1 to {limit} are made at once.",
                    count=len(goals),
                    limit=MOST_PICTURES,
                )
            )
        if len({frozenset(goal.layers) for goal in goals}) > 1:
            raise SettingError(
                say("Pictures that are made at once are of one layer, or of the same ones.")
            )
        self.model, self.goals, self.method = model, tuple(goals), method
        self.layers = goals[0].layers
        self.seeds = tuple(seeds or [method.seed] * len(goals))
        own = picture_shape(model, method.size)
        if shape is None and start is not None:
            shape = start.shape[1:]
        self.shape = own if shape is None else (shape[0], shape[1], shape[2])
        self.nbytes = self._bytes_needed()
        self.passes = LayerPasses(model, self.layers)
        with torch.inference_mode(mode=False):  # the caller's is no business of these tensors
            self._range = InputRange.of(model, self.shape)
            self._space = self._begin(self.seeds, start)
            self._adam = torch.optim.Adam(
                [self._space.parameters],
                lr=self._space.rate * method.rate,
                eps=_EPSILON,
            )
        self._unit: Tensor | None = None
        self.steps = 0
        self.history: list[tuple[float, ...]] = []

    @property
    def values(self) -> tuple[float, ...]:
        """Value of each goal in the step before; NaN before the first."""
        return self.history[-1] if self.history else (float("nan"),) * len(self.goals)

    def _begin(self, seeds: tuple[int, ...], start: Tensor | None) -> PictureSpace:
        if start is not None:
            return Fourier.of(start)
        if self.method.space == "Fourier":
            return Fourier(self.shape, seeds)
        if self.shape[1] != self.shape[2]:
            raise SettingError(say("MACO is for square pictures; space='Fourier' is for all."))
        return FixedMagnitudeSpectrum(self.shape, seeds)

    def _bytes_needed(self) -> int:
        """Estimate the memory of a step, and refuse one that takes more than a run may."""
        trace = layer_trace(self.model, self.shape)
        names = [layer.name for layer in trace.layers]
        names = names[: max(_end(names, layer) for layer in self.layers)]  # passes end there
        outputs = sum(trace.nbytes.get(name, 0) for name in names)
        needed = _TIMES * outputs * len(self.goals)
        most = own_memory().limit // _SHARE
        if needed > most:
            raise ModelError(
                say(
                    "{count} pictures of {height}×{width} take about {memory} with "
                    "{model}, and {limit} is what one run may take here. Fewer or smaller ones "
                    "take less.",
                    count=len(self.goals),
                    height=self.shape[1],
                    width=self.shape[2],
                    memory=byte_size(needed),
                    model=self.model.title,
                    limit=byte_size(most),
                )
            )
        return needed

    def run(self, steps: int, after: Callable[["Optimization"], object] = lambda _: None) -> None:
        """Go on until `steps` are done in all.

        `after` is called after every step; an exception that it raises ends the run, and nothing is
        lost.

        Raises:
            ModelError: there is no gradient to follow, and the layer that has one is named; or the
                network can't be differentiated.
        """
        while self.steps < steps:
            with self.passes.on_network() as outputs:
                self._step(outputs)
            after(self)

    def state(self) -> OptimizationState:
        """Copy what an optimization of equal arguments can go on from, here or later."""
        return OptimizationState(
            self._space.parameters.detach().clone(),
            copy.deepcopy(self._adam.state_dict()),
            self._unit,
            self.passes.channels_last,
            tuple(self.history[: self.steps]),
        )

    def restore(self, state: OptimizationState) -> None:
        """Go on from there, to the pictures that this optimization would have made itself."""
        with torch.no_grad():
            self._space.parameters.copy_(state.parameters)
        self._adam.load_state_dict(copy.deepcopy(state.adam))
        self._unit, self.passes.channels_last = state.unit, state.channels_last
        self.history, self.steps = list(state.history), state.steps

    def pictures(self) -> tuple[Pixels, ...]:
        """Return the pictures so far: RGB, uint8, ``(H, W, 3)`` each."""
        return pixels(self.tensor())

    def tensor(self) -> Tensor:
        """Return the pictures so far, ``(N, C, H, W)`` in 0…1, float32."""
        with torch.inference_mode(mode=False), torch.no_grad():
            return self._space.pictures()

    def measured(self) -> tuple[float, ...]:
        """Return the value of each goal on the pictures as they are, untransformed."""
        with self.passes.on_network() as outputs, torch.no_grad():
            inputs = self._range.to_input(self._space.pictures())
            return tuple(self._values(outputs(inputs)).tolist())

    def _step(self, outputs: Outputs) -> None:
        """Do one pass there and back, and one step of Adam."""
        seeds = self.method.seed * _STEP_SEEDS + self.steps
        generator = torch.Generator().manual_seed(seeds % 2**63)
        pictures = self._space.pictures()
        transformed = self.method.robustness.of(pictures, generator)
        seen = outputs(self._range.to_input(transformed))
        values = self._values(seen)
        if self._unit is None:
            self._unit = self.goals[0].unit(*(output.detach() for output in seen))
        signs = values.new_tensor([-1.0 if goal.rises else 1.0 for goal in self.goals])
        loss = (signs * values / self._unit).sum() + self._cost(pictures, seen)
        gradient = self._gradient(loss)
        self.history.append(tuple(values.tolist()))
        # one pass over it: the sum is 0 where nothing leads on, and not finite where a part is not
        if gradient is None or not 0 < float(gradient.abs().sum()) < math.inf:
            raise _zero_gradient_error(
                self.model, self.goals[0], self.shape, values.detach(), gradient
            )
        self._space.parameters.grad = gradient
        self._adam.step()
        self._space.parameters.grad = None
        self.steps += 1

    def _gradient(self, loss: Tensor) -> Tensor | None:
        if not loss.requires_grad:
            return None
        return backward_pass(self.model, loss, [self._space.parameters])[0]

    def _cost(self, pictures: Tensor, seen: tuple[Tensor, ...]) -> Tensor | float:
        """Return what the penalty and the diversity add to the loss."""
        method = self.method
        cost: Tensor | float = 0.0
        if method.penalty == "total variation":
            cost = cost + 10 * method.strength * total_variation(pictures)
        elif method.penalty == "L2":
            cost = cost + 10 * method.strength * (pictures - 0.5).square().mean((1, 2, 3)).sum()
        if method.diversity and len(self.goals) > 1:
            penalties = [diversity_penalty(output).to(pictures) for output in seen]
            cost = cost + method.diversity * torch.stack(penalties).mean()
        return cost

    def _values(self, seen: tuple[Tensor, ...]) -> Tensor:
        outputs = dict(zip(self.layers, seen, strict=True))
        values = [
            goal.value(*(outputs[layer][number] for layer in goal.layers))
            for number, goal in enumerate(self.goals)
        ]
        return torch.stack(values)


def _end(names: list[str], layer: str | None) -> int:
    """Return how many layers a pass to one runs; all of them to the class scores."""
    if layer is None:
        return len(names)
    own = [n for n, name in enumerate(names) if f"{name}.".startswith(f"{layer}.")]
    return max(own, default=len(names)) + 1


def total_variation(pictures: Tensor) -> Tensor:
    """Return how much neighbouring pixels of ``(N, C, H, W)`` differ: each one's mean, added up."""
    down, right = pictures.diff(dim=2).abs(), pictures.diff(dim=3).abs()
    return down.mean((1, 2, 3)).sum() + right.mean((1, 2, 3)).sum()


def diversity_penalty(output: Tensor) -> Tensor:
    """Return the mean cosine of the pictures' Gram matrices, times their number; (), 0…N.

    ``G = A Aᵀ`` over the cells of the maps tells which channels go together, wherever that is.
    Pictures that pay for it differ from each other (Olah et al., 2017, Diversity).

    The output is ``(N, C, rows, columns)``, N at least 2.
    """
    flat = output.flatten(2)
    gram = (flat @ flat.transpose(1, 2)).flatten(1)
    gram = gram / gram.norm(dim=1, keepdim=True).clamp(min=1e-12)
    cosines = gram @ gram.T
    penalty: Tensor = (cosines.sum() - torch.diagonal(cosines).sum()) / (len(output) - 1)
    return penalty


def _zero_gradient_error(
    model: Model,
    goal: Goal,
    shape: tuple[int, ...],
    values: Tensor,
    gradient: Tensor | None,
) -> ModelError:
    """Build the error for a gradient that is missing, zero or not finite.

    `shape` is the ``(C, H, W)`` of each picture, `values` those of the goals, ``(N,)``, and
    `gradient` the one with respect to the pictures' parameters.
    """
    what = goal.says(model)
    if not _is_finite(values) or not _is_finite(gradient):
        why = say("{goal} is no finite number here", goal=what)
    elif gradient is None:
        why = say("no gradient gets from {goal} to the picture", goal=what)
    else:
        why = say("{goal} stays the same when the picture changes a little", goal=what)
    if isinstance(goal, FunctionObjective) and gradient is None:
        return ModelError(
            say(
                "In {model}, {reason}: it does not depend on the picture. It has to be computed "
                "of the outputs by torch alone; .detach(), .item() and torch.no_grad cut it off.",
                model=model.title,
                reason=why,
            )
        )
    other = _working_layer(model, shape, goal.layers)
    hint = (
        say(" Layer {layer!r} has one.", layer=other)
        if other
        else say(" No convolution before it has one.")
    )
    if gradient is not None:  # at another picture it may be another one
        hint += say(" Another seed may help.")
    return ModelError(
        say(
            "In {model}, {reason}, so there is no gradient to follow.{hint}",
            model=model.title,
            reason=why,
            hint=hint,
        )
    )


def _is_finite(tensor: Tensor | None) -> bool:
    return tensor is None or bool(tensor.isfinite().all())


def _working_layer(
    model: Model, shape: tuple[int, ...], layers: tuple[str | None, ...]
) -> str | None:
    """Find the last convolution, before all of `layers`, with a gradient at a noisy picture."""
    trace = layer_trace(model, shape)
    index = {info.name: info.index for info in trace.layers}
    end = min(index.get(layer or "", len(index)) for layer in layers)
    names = [conv.name for conv in trace.convs if index[conv.name] < end]
    outputs: dict[str, Tensor] = {}

    def see(call: hooks.Call) -> None:
        if isinstance(call.output, Tensor):
            outputs[call.layer] = call.output

    noise = torch.randn(1, *shape, generator=torch.Generator().manual_seed(0)).requires_grad_()
    try:
        with differentiable(model) as network:
            with hooks.observe(network, names, see):
                forward_pass(model, network, noise)
            for name in reversed(names):
                output = outputs.get(name)
                if output is None or not output.requires_grad or not _is_finite(output):
                    continue
                gradient = backward_pass(model, output.mean(), [noise])[0]
                if gradient is not None and _is_finite(gradient) and bool(gradient.any()):
                    return name
    except HookVizError:
        return None  # the network fails as a whole, and that there is no hint says it
    return None


def run_resumed(
    optimization: Optimization,
    steps: int,
    cache: ByteCache | None,
    key: Hashable,
    after: Callable[[Optimization], object],
) -> None:
    """Run to `steps` in all, from where the session's last run of the same ended.

    A copy is kept: a later run with fewer steps begins anew, to the same pictures. It is kept
    during the run, too: a page's next run can begin before this one has ended.

    The optimization has no step yet. `key` is the cache key, equal for optimizations of equal
    arguments alone. `after` is called after every step; an exception that it raises ends the run.
    """
    kept: OptimizationState | None = None if cache is None else cache.get(key)
    if kept is not None and kept.steps <= steps:
        optimization.restore(kept)
    due = 0.0

    def keep() -> None:
        if cache is not None and optimization.steps:
            state = optimization.state()
            cache.put(key, state, state.nbytes)

    def keep_and(now: Optimization) -> None:
        nonlocal due
        if time.monotonic() >= due:
            keep()
            due = time.monotonic() + _EVERY
        after(now)

    try:
        optimization.run(steps, keep_and)
    finally:
        keep()
