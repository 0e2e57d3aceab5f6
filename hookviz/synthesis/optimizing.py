"""Pictures that climb: step by step along a goal's gradient, to be stopped and gone on with.

Over 300 lines: its sentences for people stand whole, with a line for each fact.
"""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from hookviz.capturing.layer_trace import layer_trace
from hookviz.errors import ModelError, SettingError
from hookviz.explaining.apart import alone_and_together, are_near, halved, rounding
from hookviz.hooking import hooks, replicas
from hookviz.hooking.forward_pass import ProgressReporter, backward_pass, forward_pass
from hookviz.hooking.plain_tensors import plain
from hookviz.hooking.precision import device_and_dtype
from hookviz.hooking.purity import is_pure
from hookviz.language.saying import say
from hookviz.machine.memory import own_memory
from hookviz.synthesis.diversity import diversity_penalty, total_variation
from hookviz.synthesis.goals import Goal, by_picture
from hookviz.synthesis.method import MOST_PICTURES, SynthesisMethod
from hookviz.synthesis.model_range import InputRange, picture_shape, pixels
from hookviz.synthesis.picture_space import Fourier, HeldSpectrum, PictureSpace
from hookviz.synthesis.zero_gradient import zero_gradient_error
from hookviz.types import Model, Pixels
from hookviz.wording import byte_size

_TIMES = 3  # what a pass there and back holds at most, in bytes of the layers' outputs
_SHARE = 2  # of the process's memory, one part of so many is for one run
_EPSILON = 1e-16  # Adam's; a deep network's gradients can be far below its usual 1e-8
_STEP_SEEDS = 1_000_003  # so far apart are two seeds' steps


_Passes = Callable[[Tensor], Tensor]  # from inputs to the layer's output by picture


@dataclass(frozen=True, eq=False, slots=True)
class Saved:
    """All that an optimization has to remember between steps; nothing of the network."""

    parameters: Tensor
    adam: dict[str, Any]
    unit: Tensor | None
    last_channels: bool
    history: tuple[tuple[float, ...], ...]

    @property
    def steps(self) -> int:
        """How many were done."""
        return len(self.history)

    @property
    def nbytes(self) -> int:
        """About how much memory it takes: Adam has two numbers for each parameter."""
        return 3 * self.parameters.nbytes + 100 * len(self.history)


class Optimization:
    """Pictures of a model for goals of one layer, one goal for each.

    Each step is a pass there and back over all pictures, and one step of Adam (Kingma and Ba,
    2015). Between steps nothing is left of it on any network: it may be kept, stopped and gone on
    with at any time.

    Attributes:
        model: whose pictures they are.
        goals: of each picture.
        method: how they are made.
        shape: ``(C, H, W)`` of each picture.
        steps: how many are done.
        values: what each goal came to in the step before, on the disturbed picture.
        history: the values of every step, each ``(N,)``.
    """

    def __init__(
        self,
        model: Model,
        goals: Sequence[Goal],
        method: SynthesisMethod,
        *,
        seeds: Sequence[int] | None = None,
        start: Tensor | None = None,
        shape: Sequence[int] | None = None,
    ) -> None:
        """Begin.

        Args:
            model: from `load_model` or `wrap`.
            goals: one for each picture, all of one layer, or all of classes.
            method: how.
            seeds: of each picture's first noise; the method's for all by default.
            start: pictures of 0…1 to begin with, ``(N, C, H, W)``, in place of noise.
            shape: ``(C, H, W)`` of each, in place of the method's size.

        Raises:
            SettingError: the method means nothing, or the goals are of several layers.
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
        if len({goal.layer for goal in goals}) > 1:
            raise SettingError(say("Pictures that are made at once are of one layer."))
        self.model, self.goals, self.method = model, tuple(goals), method
        self.layer = goals[0].layer
        own = picture_shape(model, method.size)
        if shape is None and start is not None:
            shape = start.shape[1:]
        self.shape = own if shape is None else (shape[0], shape[1], shape[2])
        self.nbytes = self._bytes_needed()
        with torch.inference_mode(mode=False):  # the caller's is no business of these tensors
            self._range = InputRange.of(model, self.shape)
            self._space = self._begin(tuple(seeds or [method.seed] * len(goals)), start)
            self._adam = torch.optim.Adam(
                [self._space.parameters],
                lr=self._space.rate * method.rate,
                eps=_EPSILON,
            )
        self._unit: Tensor | None = None
        self._last_channels = True
        self._apart: bool | None = None  # whether several may go through together, once it is tried
        self.steps = 0
        self.history: list[tuple[float, ...]] = []

    @property
    def values(self) -> tuple[float, ...]:
        """What each goal came to in the step before; NaN before the first."""
        return self.history[-1] if self.history else (float("nan"),) * len(self.goals)

    def _begin(self, seeds: tuple[int, ...], start: Tensor | None) -> PictureSpace:
        if start is not None:
            return Fourier.of(start)
        if self.method.space == "Fourier":
            return Fourier(self.shape, seeds)
        if self.shape[1] != self.shape[2]:
            raise SettingError(say("MACO is for square pictures; space='Fourier' is for all."))
        return HeldSpectrum(self.shape, seeds)

    def _bytes_needed(self) -> int:
        """About how much memory a step takes, where there is so much."""
        trace = layer_trace(self.model, self.shape)
        names = [layer.name for layer in trace.layers]
        if self.layer is not None:  # passes end there
            own = [n for n, name in enumerate(names) if f"{name}.".startswith(f"{self.layer}.")]
            names = names[: max(own, default=len(names)) + 1]
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

        Args:
            steps: in all, those done before included.
            after: called after every step; what it raises ends the run, and nothing is lost.

        Raises:
            ModelError: there is nothing to climb, with a layer where there is; or the network
                can't be differentiated.
        """
        if self.steps >= steps:
            return
        # Where the caller has switched gradients off, that is no business of this replica's.
        with torch.inference_mode(mode=False), torch.enable_grad():
            passes = self._passes()
            while self.steps < steps:
                self._step(passes)
                after(self)

    def saved(self) -> Saved:
        """What to go on from, in an optimization of equal arguments, here or later."""
        return Saved(
            self._space.parameters.detach().clone(),
            copy.deepcopy(self._adam.state_dict()),
            self._unit,
            self._last_channels,
            tuple(self.history[: self.steps]),
        )

    def restore(self, saved: Saved) -> None:
        """Go on from there, to the pictures that this optimization would have made itself."""
        with torch.no_grad():
            self._space.parameters.copy_(saved.parameters)
        self._adam.load_state_dict(copy.deepcopy(saved.adam))
        self._unit, self._last_channels = saved.unit, saved.last_channels
        self.history, self.steps = list(saved.history), saved.steps

    def pictures(self) -> tuple[Pixels, ...]:
        """What there is so far: RGB, uint8, ``(H, W, 3)`` each."""
        return pixels(self.tensor())

    def tensor(self) -> Tensor:
        """What there is so far, ``(N, C, H, W)`` in 0…1, float32."""
        with torch.inference_mode(mode=False), torch.no_grad():
            return self._space.pictures()

    def measured(self) -> tuple[float, ...]:
        """What each goal comes to on the pictures as they are, undisturbed."""
        with torch.inference_mode(mode=False), torch.no_grad():
            inputs = self._range.to_input(self._space.pictures())
            output = self._output(self._passes(), inputs)
            return tuple(self._values(output).tolist())

    def _step(self, passes: _Passes) -> None:
        """One pass there and back, and one step."""
        seeds = self.method.seed * _STEP_SEEDS + self.steps
        generator = torch.Generator().manual_seed(seeds % 2**63)
        pictures = self._space.pictures()
        disturbed = self.method.robustness.of(pictures, generator)
        output = self._output(passes, self._range.to_input(disturbed))
        values = self._values(output)
        if self._unit is None:
            self._unit = self.goals[0].unit(output.detach())
        signs = values.new_tensor([-1.0 if goal.rises else 1.0 for goal in self.goals])
        loss = (signs * values / self._unit).sum() + self._cost(pictures, output)
        gradient = self._gradient(loss)
        self.history.append(tuple(values.tolist()))
        # one pass over it: the sum is 0 where nothing leads on, and not finite where a part is not
        if gradient is None or not 0 < float(gradient.abs().sum()) < math.inf:
            raise zero_gradient_error(
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

    def _cost(self, pictures: Tensor, output: Tensor) -> Tensor | float:
        """What the penalty and the diversity add to the loss."""
        method = self.method
        cost: Tensor | float = 0.0
        if method.penalty == "total variation":
            cost = cost + 10 * method.strength * total_variation(pictures)
        elif method.penalty == "L2":
            cost = cost + 10 * method.strength * (pictures - 0.5).square().mean((1, 2, 3)).sum()
        if method.diversity and len(self.goals) > 1:
            cost = cost + method.diversity * diversity_penalty(output)
        return cost

    def _output(self, passes: _Passes, inputs: Tensor) -> Tensor:
        """The layer's output for each picture, ``(N, C, rows, columns)``.

        In one pass where the network keeps the pictures apart: each is to become what it would
        alone.
        """
        if len(inputs) > 1 and self._apart is None:
            self._apart = self._are_apart(passes, inputs)
        if len(inputs) > 1 and not self._apart:
            return torch.cat([self._of_batch(passes, each[None]) for each in inputs])
        return self._of_batch(passes, inputs)

    @torch.no_grad()
    def _are_apart(self, passes: _Passes, inputs: Tensor) -> bool:
        tried = torch.cat([halved(inputs[:1]), inputs[1:2]])
        whole = partial(self._of_batch, passes)
        alone, together = alone_and_together(tried, whole)
        return are_near(alone, together, rounding(self.model.network, alone))

    def _of_batch(self, passes: _Passes, inputs: Tensor) -> Tensor:
        """What one pass makes of all the inputs.

        With the channels last in memory, which is faster on CPUs, where the network can take that.
        """
        if self._last_channels:
            laid_out = inputs.contiguous(memory_format=torch.channels_last)
            try:
                return passes(laid_out)
            except ModelError as error:
                if ".reshape(" not in str(error.__cause__):  # as torch advises where `view` fails
                    raise
                self._last_channels = False
        return passes(inputs)

    def _passes(self) -> _Passes:
        """Passes to the layer: on one replica where the network only computes, else on one each."""
        network = self.model.network
        kept = replicas.for_gradients(network) if is_pure(network) else None
        device = device_and_dtype(network)[0]
        watched = () if self.layer is None else (self.layer,)
        seen: list[object] = []

        def see(call: hooks.Call) -> None:
            output = call.output
            seen[:] = [plain(output) if isinstance(output, Tensor) else output]
            raise hooks.StopForward  # the rest of the network adds nothing

        def go(inputs: Tensor) -> Tensor:
            seen.clear()
            replica = replicas.for_gradients(network) if kept is None else kept
            with hooks.observe(replica, watched, see):
                output = forward_pass(
                    self.model, replica, inputs.to(device), ProgressReporter(None)
                )
            if self.layer is not None:
                if not seen:
                    raise ModelError(
                        say(
                            "Layer {layer!r} of {model} did not run.",
                            layer=self.layer,
                            model=self.model.title,
                        )
                    )
                output = seen.pop()
            return by_picture(self.model, self.layer, output, len(inputs))

        return go

    def _values(self, output: Tensor) -> Tensor:
        return torch.stack(
            [goal.value(each) for goal, each in zip(self.goals, output, strict=True)]
        )
