"""Optimise pictures for a goal, step by step along its gradient; any step can be the last."""

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from hookviz.capturing.layer_trace import layer_trace
from hookviz.errors import ModelError, SettingError
from hookviz.hooking.forward_pass import backward_pass
from hookviz.language.saying import say
from hookviz.machine.memory import own_memory
from hookviz.synthesis.goal import Goal
from hookviz.synthesis.layer_passes import LayerPasses, Outputs
from hookviz.synthesis.model_range import InputRange, picture_shape, pixels
from hookviz.synthesis.picture_space import FixedMagnitudeSpectrum, Fourier, PictureSpace
from hookviz.synthesis.settings import MOST_PICTURES, SynthesisMethod
from hookviz.synthesis.zero_gradient import zero_gradient_error
from hookviz.types import Model, Pixels
from hookviz.wording import byte_size

_TIMES = 3  # what a pass there and back holds at most, in bytes of the layers' outputs
_SHARE = 2  # of the process's memory, one half is for one run
_EPSILON = 1e-16  # Adam's; a deep network's gradients can be far below its usual 1e-8
_STEP_SEEDS = 1_000_003  # between the first steps of two seeds that follow each other


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
        method: SynthesisMethod,
        *,
        seeds: Sequence[int] | None = None,
        start: Tensor | None = None,
        shape: Sequence[int] | None = None,
    ) -> None:
        """Begin with noise, or with `start`.

        Args:
            model: from `load_model` or `wrap`.
            goals: one for each picture, all of the same layers, or all of classes.
            method: how.
            seeds: of each picture's first noise; the method's for all by default.
            start: pictures of 0…1 to begin with, ``(N, C, H, W)``, instead of noise.
            shape: ``(C, H, W)`` of each, instead of the method's size.

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

        Args:
            steps: in all, those done before included.
            after: called after every step; what it raises ends the run, and nothing is lost.

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

    Args:
        output: ``(N, C, rows, columns)``, N at least 2.
    """
    flat = output.flatten(2)
    gram = (flat @ flat.transpose(1, 2)).flatten(1)
    gram = gram / gram.norm(dim=1, keepdim=True).clamp(min=1e-12)
    cosines = gram @ gram.T
    penalty: Tensor = (cosines.sum() - torch.diagonal(cosines).sum()) / (len(output) - 1)
    return penalty
