"""Record gradients, updates and activations of each layer while a training loop runs."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from hookviz.errors import SettingError, shorten
from hookviz.hooking import hooks
from hookviz.hooking.channel_axes import ChannelAxes
from hookviz.hooking.graph_hooks import GraphHooks
from hookviz.hooking.layer_warnings import LayerWarnings, numbers
from hookviz.hooking.selection import Layers, select
from hookviz.training.training_log import TrainingLog, TrainingRow


@contextmanager
def record(
    network: nn.Module, *, every: int = 1, layers: Layers = None, exclude: Layers = ()
) -> Iterator[TrainingLog]:
    """Record gradients, updates and activations per layer and step while training runs.

    Unlike the rest of HookViz this works on the very module that is given. It changes nothing:
    the training is the same to the last bit with and without it. Its hooks are gone afterwards on
    every way out. A step begins with a forward pass that gradients are recorded in, the first one
    after a backward pass; passes within `torch.no_grad`, such as a validation, are none, and not
    looked at. With accumulated gradients each backward pass ends a step, and the update is that of
    the last. What can't be looked at, such as a tensor within `torch.vmap` or on the meta device,
    is left out with one `RuntimeWarning` a layer, and the pass goes on.

    A recorded step costs a few looks at each output and gradient and a copy of the weights, the
    others next to nothing: with ``every=10`` 9 % of the training of ResNet-18 on one busy CPU core
    (eight images of 64×64, where the weights weigh most). A loss scaler for mixed precision scales
    the gradient norms too.

    Args:
        network: a module in training.
        every: record each n-th step, the first one included.
        layers: which layers, as of `observe`; by default each without parts.
        exclude: not these; chosen in the same ways.

    Returns:
        What the block gets: a `TrainingLog`, to which a step is added when the next one begins, or
        the block ends.

    Raises:
        SettingError: `every` is no whole number from 1 on; no layer is left.
        UnknownLayerError: no layer has such a name, or is of such a type.
        ModelError: `network` is no module, or it was compiled or scripted.

    >>> network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    >>> optimiser = torch.optim.SGD(network.parameters(), lr=0.1)
    >>> with hookviz.record(network) as log:
    ...     network(torch.ones(4, 2)).sum().backward()  # (N, C)
    ...     optimiser.step()
    >>> [(row.step, row.layer) for row in log.rows], log.rows[1].dead <= 1
    ([(0, '0'), (0, '1')], True)
    """
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise SettingError(f"every={shorten(repr(every))} is not a whole number from 1 on.")
    chosen = layers if layers is not None else _is_leaf
    recording = _Recording(network, select(network, chosen, exclude), every)
    with (
        recording,
        hooks.before(network, [""], recording.begin),
        hooks.observe(network, [""], recording.end_pass, always_call=True),
        hooks.observe(network, [""], recording.see_scores),
    ):
        yield recording.log


def _is_leaf(_name: str, module: nn.Module) -> bool:
    return not any(module.children())


class _Recording:
    """Hooks that tell a training loop's steps apart and open a `_Step` for each recorded one."""

    def __init__(self, network: nn.Module, layers: tuple[str, ...], every: int) -> None:
        self.log = TrainingLog()
        self._network = network
        self._every = every
        self._modules = {name: network.get_submodule(name) for name in layers}
        # The layers before, chosen or not, tell which axis the channels are.
        leaves = {name: module for name, module in network.named_modules() if _is_leaf("", module)}
        self._seen = leaves | self._modules
        self._number = -1
        self._between_steps = True  # so that the next pass begins one
        self._step: _Step | None = None
        self._hooks = ExitStack()
        self._scores = GraphHooks(self._see_backward)
        self._passes = threading.local()
        self._warnings = LayerWarnings("record")

    def __enter__(self) -> None:
        self._scores.__enter__()

    def __exit__(self, *error: object) -> None:
        try:
            self._end()
        finally:
            self._scores.__exit__(*error)

    def begin(self, _call: hooks.Call) -> None:
        self._running_passes().append(torch.is_grad_enabled())
        if not (torch.is_grad_enabled() and self._between_steps):
            return
        self._end()
        self._between_steps = False
        self._number += 1
        if self._number % self._every == 0:
            self._step = self._open_step()

    def end_pass(self, _call: hooks.Call) -> None:
        if self._running_passes():  # else it began before the block did
            self._running_passes().pop()

    def see_scores(self, call: hooks.Call) -> None:
        with self._warnings.kept_out(""):
            for _, tensor in hooks.tensors_in(call.output):
                if tensor.requires_grad:
                    self._scores.add(None, tensor)

    def _open_step(self) -> "_Step":
        step = _Step(self._modules, self._seen, self._warnings)

        def see(call: hooks.Call) -> None:
            if self._is_counted():
                step.see_output(call)

        with self._warnings.kept_out(""):  # a layer may have been taken out meanwhile
            self._hooks.enter_context(hooks.observe(self._network, self._seen, see))
        gradients = self._hooks.enter_context(hooks.on_gradients(step.see_gradient))
        for key, parameter in step.trained.items():
            with self._warnings.kept_out(step.layers[key]):
                gradients.add(key, parameter)
        return step

    def _running_passes(self) -> list[bool]:
        """Return for each running pass of this thread, outermost first, if it records gradients."""
        passes: list[bool] = vars(self._passes).setdefault("passes", [])
        return passes

    def _is_counted(self) -> bool:
        """Return whether a call belongs to the step: a part of its pass may be under `no_grad`."""
        passes = self._running_passes()
        return passes[-1] if passes else torch.is_grad_enabled()

    def _see_backward(self, _key: None, _gradient: Tensor) -> None:
        self._between_steps = True

    def _end(self) -> None:
        self._hooks.close()
        if self._step is not None:
            self.log.rows.extend(self._step.rows(self._number))
            self._step = None


class _Step:
    """Numbers of one training step, kept on the device that computes them until it ends."""

    def __init__(
        self, chosen: dict[str, nn.Module], seen: dict[str, nn.Module], warnings: LayerWarnings
    ) -> None:
        self._chosen = chosen
        self._seen = seen
        self._warnings = warnings
        self._axes = ChannelAxes()
        self.trained: dict[str, nn.Parameter] = {}
        self.layers: dict[str, str] = {}
        self._weights: dict[str, Tensor] = {}
        for name, module in chosen.items():
            with warnings.kept_out(name):
                self._take_weights(name, module)
        self._gradients: dict[str, Tensor] = {}
        self._outputs: dict[str, list[tuple[int, Tensor, Tensor]]] = {}
        self._alive: dict[str, Tensor] = {}

    def _take_weights(self, name: str, module: nn.Module) -> None:
        own = {
            str(id(parameter)): parameter
            for parameter in module.parameters(recurse=False)
            if parameter.requires_grad
        }
        self._weights |= {key: numbers(parameter).clone() for key, parameter in own.items()}
        self.trained |= own
        self.layers |= dict.fromkeys(own, name)

    def see_output(self, call: hooks.Call) -> None:
        chosen = call.layer in self._chosen
        with self._warnings.kept_out(call.layer if chosen else None):
            for path, tensor in hooks.tensors_in(call.output):
                if not tensor.is_floating_point():
                    continue
                values = numbers(tensor)
                if not values.nelement():
                    continue
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
        with self._warnings.kept_out(self.layers[key]):
            # What the backward pass is about to make of `parameter.grad`.
            earlier = self.trained[key].grad
            total = gradient if earlier is None else earlier + gradient
            self._gradients[key] = torch.linalg.vector_norm(numbers(total))

    def rows(self, number: int) -> list[TrainingRow]:
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
