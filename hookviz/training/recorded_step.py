"""Look at one step of a training run: weights, gradients and outputs of each layer.

1. As the step begins, the weights are copied, and their norms computed.
2. Each output leaves its mean, its variance and which of its units are alive.
3. As a backward pass ends, the norms of `parameter.grad` are computed: behind what
   `DistributedDataParallel` does to it, and again before the optimiser's step where that is known.
4. All these numbers stay on their devices, and nothing waits for them until the step has ended.
   Then those of one device and type are read together.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.hooking import hooks
from hookviz.hooking.channel_axes import ChannelAxes
from hookviz.hooking.graph_hooks import at_end_of_backward
from hookviz.hooking.layer_warnings import LayerWarnings, numbers
from hookviz.hooking.plain_tensors import read_together
from hookviz.training.trackers import Drawn
from hookviz.training.training_log import TrainingRow


@dataclass(eq=False, slots=True)
class _Outputs:
    """Numbers of one layer's outputs: their count, mean and variance, by call."""

    counts: list[int] = field(default_factory=list)
    means: list[Tensor] = field(default_factory=list)
    variances: list[Tensor] = field(default_factory=list)
    alive: Tensor | None = None


class RecordedStep:
    """Numbers of one training step, kept on the device that computes them until it ends."""

    def __init__(
        self,
        chosen: dict[str, nn.Module],
        seen: dict[str, nn.Module],
        warnings: LayerWarnings,
        drawn: Drawn | None,
    ) -> None:
        self.drawn = drawn
        self._chosen = chosen
        self._seen = seen
        self._warnings = warnings
        self._axes = ChannelAxes()
        self.trained: dict[str, nn.Parameter] = {}
        self.layers: dict[str, str] = {}
        self._paths: dict[str, str] = {}
        self._weights: dict[str, Tensor] = {}
        for name, module in chosen.items():
            with warnings.kept_out(name):
                self._take_weights(name, module)
        self._sizes: dict[str, Tensor] = {}
        with warnings.kept_out(""):
            self._sizes = _norms(self._weights)
        self._gradients: dict[str, Tensor] = {}
        self._awaits_backward = False
        self._outputs: dict[str, _Outputs] = {}

    def _take_weights(self, name: str, module: nn.Module) -> None:
        own = {}
        for key, parameter in module.named_parameters(recurse=False):
            if parameter.requires_grad:
                own[str(id(parameter))] = parameter
                self._paths[str(id(parameter))] = f"{name}/{key}"
                if self.drawn:
                    self.drawn.see_numbers(f"{name}/{key}", parameter)
        self._weights |= {key: numbers(parameter).clone() for key, parameter in own.items()}
        self.trained |= own
        self.layers |= dict.fromkeys(own, name)

    def see_output(self, call: hooks.Call) -> None:
        """Take the numbers of what a layer put out."""
        chosen = call.layer in self._chosen
        with self._warnings.kept_out(call.layer if chosen else None):
            for path, tensor in hooks.tensors_in(call.output):
                if not tensor.is_floating_point():
                    continue
                values = numbers(tensor)
                if not values.nelement():
                    continue
                if self.drawn and not path:
                    self.drawn.see_output(call.layer, values)
                axis = None
                if not tensor.is_nested:
                    axis = self._axes.axis(self._seen[call.layer], call, path, tensor)
                if chosen:
                    self._take_output(call.layer, values, axis)

    def _take_output(self, layer: str, values: Tensor, axis: int | None) -> None:
        wide = values if values.dtype == torch.float64 else values.float()
        mean = wide.mean()
        # Two passes over memory: torch.var is one, and takes thirty times as long on a CPU.
        variance = torch.linalg.vector_norm(wide - mean) ** 2 / wide.nelement()
        outputs = self._outputs.setdefault(layer, _Outputs())
        outputs.counts.append(values.nelement())
        outputs.means.append(mean)
        outputs.variances.append(variance)
        if axis is not None and values.ndim > 1:
            units, before = _largest_per_unit(values, axis) != 0, outputs.alive
            fits = before is not None and before.shape == units.shape
            outputs.alive = before | units if fits else units  # type: ignore[operator]

    def see_gradient(self, _key: str, _gradient: Tensor) -> None:
        """Take the gradients once the backward pass that this one is of has ended."""
        if not self._awaits_backward:
            self._awaits_backward = True
            at_end_of_backward(self._after_backward)

    def _after_backward(self) -> None:
        self._awaits_backward = False
        at_end_of_backward(self.take_gradients)  # what was put there before this is done by then

    def take_gradients(self) -> None:
        """Take the norms of all gradients, as ``parameter.grad`` has them now."""
        gradients = {}
        for key, parameter in self.trained.items():
            with self._warnings.kept_out(self.layers[key]):
                if parameter.grad is not None:
                    gradients[key] = numbers(parameter.grad)
                    if self.drawn:
                        self.drawn.see_numbers(f"{self._paths[key]}/gradient", gradients[key])
        with self._warnings.kept_out(""):
            self._gradients |= _norms(gradients)

    def rows(self, number: int) -> list[TrainingRow]:
        """Return the row of each layer that ran or learns, as step `number`."""
        read: dict[tuple[Any, ...], float] = {}
        with self._warnings.kept_out(""):
            read = read_together(self._tensors())
        return [
            TrainingRow(
                number, name, *self._weight_numbers(module, read), *self._output_numbers(name, read)
            )
            for name, module in self._chosen.items()
            if name in self._outputs or any(self._own(module))
        ]

    def _tensors(self) -> dict[tuple[Any, ...], Tensor]:
        tensors: dict[tuple[Any, ...], Tensor] = {}
        for measure, norms in (
            ("size", self._sizes),
            ("gradient", self._gradients),
            ("change", self._changes()),
        ):
            tensors |= {(measure, key): each for key, each in norms.items()}
        for name, outputs in self._outputs.items():
            for measure, each in (("mean", outputs.means), ("variance", outputs.variances)):
                tensors |= {(measure, name, call): value for call, value in enumerate(each)}
            if outputs.alive is not None:
                tensors["alive", name] = outputs.alive.float().mean()
        return tensors

    def _own(self, module: nn.Module) -> list[str]:
        own = (str(id(parameter)) for parameter in module.parameters(recurse=False))
        return [key for key in own if key in self.trained]

    def _changes(self) -> dict[str, Tensor]:
        """Return the norms of what the step changed; the copies of the weights are used up."""
        changes = {}
        while self._weights:
            key, before = self._weights.popitem()
            with self._warnings.kept_out(self.layers[key]):
                changes[key] = before - numbers(self.trained[key])
        return _norms(changes)

    def _weight_numbers(
        self, module: nn.Module, read: dict[tuple[Any, ...], float]
    ) -> tuple[float | None, ...]:
        own = self._own(module)
        gradient, size, change = (
            _norm(read.get((measure, key)) for key in own)
            for measure in ("gradient", "size", "change")
        )
        return gradient, size, None if change is None or not size else change / size

    def _output_numbers(
        self, name: str, read: dict[tuple[Any, ...], float]
    ) -> tuple[float | None, ...]:
        if ("mean", name, 0) not in read:
            return None, None, None
        counts = self._outputs[name].counts
        means = [read["mean", name, call] for call in range(len(counts))]
        inside = [read["variance", name, call] for call in range(len(counts))]
        total = sum(counts)
        mean = sum(count * each for count, each in zip(counts, means, strict=True)) / total
        # The variance of all is that within the calls and that of their means.
        calls = zip(counts, means, inside, strict=True)
        variance = sum(count * (within + (each - mean) ** 2) for count, each, within in calls)
        alive = read.get(("alive", name))
        return mean, (variance / total) ** 0.5, None if alive is None else 1 - alive


def _largest_per_unit(values: Tensor, axis: int) -> Tensor:
    # Of |x|, without making it: twice over memory is less than writing it.
    dims = tuple(dim for dim in range(values.ndim) if dim != axis)
    return torch.maximum(values.amax(dims), -values.amin(dims))


def _norms(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the Euclidean norm of each tensor, in one call for all on a card."""
    wide = [each.float() if each.dtype.itemsize == 2 else each for each in tensors.values()]
    return dict(zip(tensors, torch._foreach_norm(wide), strict=True)) if wide else {}


def _norm(parts: Iterable[float | None]) -> float | None:
    """Return the norm of parts by their norms; None of none."""
    known = [part for part in parts if part is not None]
    return math.hypot(*known) if known else None
