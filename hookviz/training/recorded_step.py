"""Look at one step of a training run: weights, gradients and outputs of each layer."""

import torch
from torch import Tensor, nn

from hookviz.hooking import hooks
from hookviz.hooking.channel_axes import ChannelAxes
from hookviz.hooking.layer_warnings import LayerWarnings, numbers
from hookviz.training.trackers import Drawn
from hookviz.training.training_log import TrainingRow


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
        self._gradients: dict[str, Tensor] = {}
        self._outputs: dict[str, list[tuple[int, Tensor, Tensor]]] = {}
        self._alive: dict[str, Tensor] = {}

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
        self._outputs.setdefault(layer, []).append((values.nelement(), mean, variance))
        if axis is not None and values.ndim > 1:
            units = _largest_per_unit(values, axis) != 0
            before = self._alive.get(layer)
            fits = before is not None and before.shape == units.shape
            self._alive[layer] = before | units if fits else units  # type: ignore[operator]

    def see_gradient(self, key: str, gradient: Tensor) -> None:
        """Take the norm of what the backward pass is about to make of a parameter's gradient."""
        with self._warnings.kept_out(self.layers[key]):
            earlier = self.trained[key].grad
            total = gradient if earlier is None else earlier + gradient
            self._gradients[key] = torch.linalg.vector_norm(numbers(total))
            if self.drawn:
                self.drawn.see_numbers(f"{self._paths[key]}/gradient", total)

    def rows(self, number: int) -> list[TrainingRow]:
        """Return the row of each layer that ran or learns, as step `number`."""
        rows = []
        for name, module in self._chosen.items():
            if name in self._outputs or any(self._own(module)):
                weights: tuple[float | None, ...] = (None, None, None)
                outputs = weights
                with self._warnings.kept_out(name):
                    weights = self._weight_numbers(module)
                with self._warnings.kept_out(name):
                    outputs = self._output_numbers(name)
                rows.append(TrainingRow(number, name, *weights, *outputs))
        return rows

    def _own(self, module: nn.Module) -> list[str]:
        own = (str(id(parameter)) for parameter in module.parameters(recurse=False))
        return [key for key in own if key in self.trained]

    def _weight_numbers(self, module: nn.Module) -> tuple[float | None, ...]:
        own = self._own(module)
        if not own:
            return None, None, None
        gradients = [self._gradients[key] for key in own if key in self._gradients]
        size = _norm([torch.linalg.vector_norm(self._weights[key]) for key in own])
        changes = (numbers(self.trained[key]) - self._weights[key] for key in own)
        change = _norm([torch.linalg.vector_norm(change) for change in changes])
        return (
            _norm(gradients) if gradients else None,
            size,
            change / size if size else None,
        )

    def _output_numbers(self, name: str) -> tuple[float | None, ...]:
        if name not in self._outputs:
            return None, None, None
        calls = [
            (count, float(mean), float(variance)) for count, mean, variance in self._outputs[name]
        ]
        total = sum(count for count, _, _ in calls)
        mean = sum(count * of_call for count, of_call, _ in calls) / total
        # The variance of all is that within the calls and that of their means.
        variance = sum(count * (inside + (of_call - mean) ** 2) for count, of_call, inside in calls)
        alive = self._alive.get(name)
        dead = None if alive is None else 1 - float(alive.float().mean())
        return mean, (variance / total) ** 0.5, dead


def _largest_per_unit(values: Tensor, axis: int) -> Tensor:
    # Of |x|, without making it: twice over memory is less than writing it.
    dims = tuple(dim for dim in range(values.ndim) if dim != axis)
    return torch.maximum(values.amax(dims), -values.amin(dims))


def _norm(parts: list[Tensor]) -> float:
    return float(torch.linalg.vector_norm(torch.stack([part.double() for part in parts])))
