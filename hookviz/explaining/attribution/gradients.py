"""Compute an attribution target's gradients at layers and at the input, or say why it has none.

One `GradientPass` runs forward and back, with several inputs at once, each with a target value of
its own. `torch.autograd.grad` asks for single gradients, so no parameter gets a ``grad``. A layer's
output is kept aside while the network goes on with a copy: an in-place function behind the layer
can't write over it.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hookviz.capturing.last_maps import last_maps
from hookviz.capturing.layer_trace import input_trace
from hookviz.capturing.wanted_layers import check_can_intervene, meta_output_error
from hookviz.drawing.grid import Grid, grid_of_any
from hookviz.errors import HookVizError, ModelError, UnknownLayerError
from hookviz.explaining.attribution.target import (
    AttributionTarget,
    map_shape,
    maps_in,
    with_channels_first,
)
from hookviz.explaining.scores.scoring import scores_in
from hookviz.hooking import hooks
from hookviz.hooking.device import device_and_dtype
from hookviz.hooking.forward_pass import (
    ProgressReporter,
    backward_pass,
    differentiable,
    forward_pass,
    private_replica,
)
from hookviz.hooking.torch_functions import EveryFunction, function_name, kind_of
from hookviz.language.saying import say
from hookviz.types import ActivationKey, Model, ModelInput, Progress, ignore

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Numbers = NDArray[np.floating[Any]]

INPUT = ""
"""Stands for the network's input among layer names; no layer is called so."""


class GradientPass:
    """One forward and backward pass of a target with respect to the outputs of some layers.

    Attributes:
        layer_outputs: what each of `layers` put out in the call that it names, and the input as
            `INPUT`.
        values: the target of each input, ``(N,)``, once the pass has run.
        guided_relus: at how many ReLUs negative gradients were cut.
    """

    def __init__(
        self,
        model: Model,
        model_input: ModelInput,
        target: AttributionTarget,
        layers: Collection[str],
        progress: Progress,
        *,
        guided: bool = False,
    ) -> None:
        self.layer_outputs: dict[str, Tensor] = {}
        self.values = torch.empty(0)
        self.guided_relus = 0
        self._model, self._model_input, self._target = model, model_input, target
        self._layers, self._guided = frozenset(layers), guided
        self._reporter = ProgressReporter(progress)
        trace = input_trace(model, model_input)
        asked = filter(None, {*self._layers, target.layer})  # without the input and a class
        # By layer and call, how it was asked about: "relu" for the first, "relu#1" for the second.
        self._asked = {(at.layer, at.call): text for text in asked for at in (trace.address(text),)}
        convs = trace.convs
        self._hooked = {layer.name for layer in convs} | {layer for layer, _ in self._asked}
        self._calls = max(1, sum(layer.calls for layer in convs))
        self._forward_calls = self._backward_calls = 0
        self._directions = 2  # forward and backward
        self._target_output: Tensor | None = None
        target.check(model, model_input)

    @property
    def value(self) -> float:
        """The target of the first input."""
        return float(self.values[0])

    @property
    def target_in_words(self) -> str:
        """What the target is, in words."""
        return self._target.describe(self._model)

    def run(self, images: Tensor) -> Mapping[str, Tensor | None]:
        """Return the gradients by layer, of the shape of its output; None where there is none.

        Of images ``(N, C, H, W)`` the gradient is that of the sum of the N targets, which is each
        one's own where the network treats the rows of a batch independently.
        """
        with (
            differentiable(self._model) as network,
            hooks.on_gradients(self._on_gradient) as self._gradients,
        ):
            images = images.to(*device_and_dtype(network), copy=True)
            if INPUT in self._layers:
                self.layer_outputs[INPUT] = images.requires_grad_()
            try:
                outputs = self._outputs_in(self._forward(network, images), len(images))
                values = self._target.values_in(outputs)
                self.values = values.detach().cpu()
                return self._backward(values.sum())
            finally:
                del self._gradients  # it knows this object, and the two would keep each other

    def target_values(self, replica: nn.Module, images: Tensor) -> Tensor:
        """Run a replica forward for the targets alone, ``(N,)``; gradients stay on or off."""
        return self._target.values_in(self.target_outputs(replica, images))

    def target_outputs(self, replica: nn.Module, images: Tensor) -> Tensor:
        """Run a replica forward for what the targets are parts of: class scores or maps."""
        self._directions = 1
        return self._outputs_in(self._forward(replica, images), len(images))

    def _forward(self, replica: nn.Module, images: Tensor) -> Any:
        guide = _GuidedReLU(self._guide) if self._guided else nullcontext()
        with hooks.edit(replica, self._hooked, self._on_output), guide:
            return forward_pass(self._model, replica, images, self._reporter)

    def _backward(self, value: Tensor) -> Mapping[str, Tensor | None]:
        names = list(self.layer_outputs)
        unreached: dict[str, Tensor | None] = dict.fromkeys(self._layers)
        if not (names and value.requires_grad):
            return unreached
        outputs = list(self.layer_outputs.values())
        gradients = backward_pass(self._model, value, outputs, self._reporter)
        return unreached | dict(zip(names, gradients, strict=True))

    def _on_output(self, call: hooks.Call) -> Tensor | None:
        output, replacement = call.output, None
        is_ordinary = isinstance(output, Tensor) and not kind_of(output)
        asked = self._asked.get((call.layer, call.index))
        if asked is not None and is_ordinary:
            if asked in self._layers and not output.is_inference():  # which have no gradient
                output, replacement = self._keep(asked, output)
            if asked == self._target.layer:
                self._target_output = output
                raise hooks.StopForward  # the rest of the network adds nothing to it
        if is_ordinary and output.requires_grad and output.device.type == "cpu":
            # On a GPU the backward pass runs in a thread of its own, and is quick.
            self._gradients.add(call.layer, output)
        self._forward_calls += 1
        self._reporter.share(self._forward_calls / self._calls / self._directions)
        return replacement

    def _keep(self, layer: str, output: Tensor) -> tuple[Tensor, Tensor]:
        """Return a layer's output with a graph, and the copy that the network goes on with.

        An output of a part that runs without gradients starts a graph here, so the rest has one.
        """
        with torch.enable_grad():
            if not output.requires_grad:
                output = output.detach().requires_grad_()
            self.layer_outputs[layer] = output
            return output, output.clone()

    def _guide(self, output: Tensor) -> None:
        self.guided_relus += 1
        self._gradients.add(INPUT, output)

    def _on_gradient(self, name: str, gradient: Tensor) -> Tensor | None:
        if name == INPUT:
            return gradient.clamp(min=0)
        self._backward_calls += 1
        self._reporter.share(0.5 + self._backward_calls / self._calls / 2)
        return None

    def _outputs_in(self, network_output: Any, count: int) -> Tensor:
        """Return the class scores, ``(N, classes)``, or the target layer's maps, ``(N, C, H, W)``.

        Raises:
            ModelError: there are none.
        """
        layer, output = self._target.layer, self._target_output
        if layer is None:
            return scores_in(self._model, network_output, count).values
        if output is None:
            raise ModelError(
                say(
                    "Layer {layer!r} of {model} did not run.",
                    layer=layer,
                    model=self._model.title,
                )
            )
        if output.is_meta:
            raise meta_output_error(self._model, layer)
        output = with_channels_first(self._model, self._model_input, layer, output)
        if output.ndim != 4 or len(output) != count:
            if count > 1:  # of all inputs one map, which is the first one's
                raise ModelError(say("{layer} puts out no maps for each input.", layer=layer))
            output = maps_in(self._model, self._model_input, layer, output)[None]
        return output


class _GuidedReLU(EveryFunction):
    """Hands over every ReLU's output while a pass runs, from a module or a function."""

    def __init__(self, on_relu: Callable[[Tensor], None]) -> None:
        super().__init__()
        self._on_relu = on_relu

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        output, name = func(*args, **kwargs), function_name(func)
        relu6 = name == "hardtanh" and kwargs.get("min_val") == 0  # as nn.ReLU6 calls it
        if (relu6 or name in ("relu", "relu6")) and getattr(output, "requires_grad", False):
            self._on_relu(output)
        return output


@dataclass(frozen=True, eq=False, slots=True)
class TargetGradient:
    """Gradient of a target with respect to one output of a layer, or to the input.

    Attributes:
        layer: the layer's name, with its call as ``relu#1``; empty for the input.
        target: what was differentiated, in words.
        output: those values, ``(C, H, W)``; of sound, a volume or a clip with its other axes.
        gradient: ∂target/∂output, of the same shape.
        value: the target.
        guided: at how many ReLUs negative gradients were cut.
    """

    layer: str
    target: str
    output: Numbers = field(repr=False)
    gradient: Numbers = field(repr=False)
    value: float
    guided: int = 0

    @property
    def norm(self) -> float:
        """√Σ g² over all values."""
        return float(np.sqrt(np.square(self.gradient, dtype=np.float64).sum()))

    @property
    def max_per_channel(self) -> Numbers:
        """Largest |g| of each channel, ``(C,)``."""
        largest: Numbers = np.abs(self.gradient).reshape(len(self.gradient), -1).max(1)
        return largest

    def grid(self) -> Grid:
        """Draw the gradient channel by channel, with zero in the middle of the colours."""
        title = say("gradient at {layer}", layer=self.layer or say("the input"))
        return grid_of_any(self.gradient, scale="symmetric", title=title)

    def figure(self) -> "Figure":
        """Draw the `grid` as a page for print."""
        return self.grid().figure()


def layer_gradient(
    model: Model,
    model_input: ModelInput,
    layer: str,
    target: AttributionTarget,
    progress: Progress = ignore,
) -> TargetGradient:
    """Differentiate a target with respect to what a layer puts out in a call, the first by default.

    Args:
        model: the model.
        model_input: the input.
        layer: the layer's name; ``name#1`` for its second call.
        target: what the gradient is of.
        progress: called with the share done after every conv layer, forward and backward.

    Raises:
        UnknownLayerError: a pass runs no layer of that name.
        SettingError: the target's layer lacks that channel or cell.
        ModelError: the layer puts out no maps, the network can't take this input, or it can't be
            differentiated.
        HookVizError: the target does not depend on the layer; a layer that it depends on is named.
    """
    is_image = model_input.tensor.ndim == 4
    (map_shape if is_image else _check_has_channels)(model, model_input, layer)
    run = GradientPass(model, model_input, target, (layer,), progress)
    gradient = run.run(model_input.tensor)[layer]
    if gradient is None:
        raise no_gradient_error(model, model_input, layer, target)
    take = maps_in if is_image else _channels_in
    output, gradient = (
        take(model, model_input, layer, each) for each in (run.layer_outputs[layer], gradient)
    )
    return _gradient(run, layer, output, gradient)


def _check_has_channels(model: Model, model_input: ModelInput, layer: str) -> None:
    """Refuse a layer whose output has no channels, of sound, a volume or a clip."""
    trace = input_trace(model, model_input)
    address = trace.address(layer)
    if address.call >= trace.calls.get(address.layer, 0):
        names = [info.name for info in trace.every]
        raise UnknownLayerError(say("layer in {model}", model=model.title), layer, names)
    check_can_intervene(model, trace, address.layer)
    if address not in trace.map_outputs.get(address.layer, ()):
        convs = [info.name for info in trace.convs if info.name in trace.map_outputs]
        hint = say(" Layer {layer!r} does.", layer=convs[-1]) if convs else ""
        raise ModelError(
            say(
                "Layer {layer!r} of {model} puts out no maps of channels.{hint}",
                layer=layer,
                model=model.title,
                hint=hint,
            )
        )


def _channels_in(model: Model, model_input: ModelInput, layer: str, output: Tensor) -> Tensor:
    """Return an output or a gradient as ``(C, L)``, ``(C, D, H, W)`` and so on.

    Frames of a clip that a network folds into the batch are the depth, ``(C, T, H, W)``.
    """
    output = with_channels_first(model, model_input, layer, output)
    return output[0] if len(output) == 1 else output.movedim(0, 1)


def input_gradient(
    model: Model,
    model_input: ModelInput,
    target: AttributionTarget,
    *,
    image: Tensor | None = None,
    guided: bool = False,
    progress: Progress = ignore,
) -> TargetGradient:
    """Differentiate a target with respect to the network's input.

    `image`, ``(1, C, H, W)``, takes the place of the input's own tensor. `guided` cuts negative
    gradients at every ReLU (Springenberg et al., 2015): backwards through one, ∂/∂x = max(0, ∂/∂y)
    where x > 0, else 0. That goes for ReLU6 too, and for both as modules and as functions.

    Raises:
        SettingError: the target's layer lacks that channel.
        ModelError: the network can't take this input, or it can't be differentiated.
        HookVizError: no gradient gets from the target to the input.
    """
    run = GradientPass(model, model_input, target, (INPUT,), progress, guided=guided)
    gradient = run.run(model_input.tensor if image is None else image)[INPUT]
    if gradient is None:
        raise no_gradient_error(model, model_input, INPUT, target)
    return _gradient(run, INPUT, run.layer_outputs[INPUT][0], gradient)


def _gradient(run: GradientPass, layer: str, output: Tensor, gradient: Tensor) -> TargetGradient:
    unbatched = gradient if gradient.ndim == output.ndim else gradient.reshape(output.shape)
    numbers = _numbers(output), _numbers(unbatched)
    return TargetGradient(layer, run.target_in_words, *numbers, run.value, run.guided_relus)


def last_layer_with_gradient(
    model: Model, model_input: ModelInput, target: AttributionTarget, but: str = ""
) -> str | None:
    """Return the last conv layer, other than `but`, at which the target's gradient is not all zero.

    Or the block behind them that puts out the last tokens, or maps with their channels last. None
    where no layer has one.
    """
    trace = input_trace(model, model_input)
    names = [layer.name for layer in trace.convs]
    last = last_maps(trace, {layer.name for layer in trace.every})
    if last is not None and trace.layouts[ActivationKey(last)].last:
        names.append(last)
    run = GradientPass(model, model_input, target, names, ignore)
    gradients = run.run(model_input.tensor)
    for name in reversed(names):
        gradient = gradients[name]
        if gradient is None or name == but:
            continue
        gradient = with_channels_first(model, model_input, name, gradient)
        if gradient.shape[0] != 1 or gradient.ndim != 4:
            continue
        if bool(gradient.any()):
            return name
    return None


def no_gradient_error(
    model: Model, model_input: ModelInput, layer: str, target: AttributionTarget
) -> HookVizError:
    """Return the error for a missing gradient: it says the cause and names a layer that works."""
    what, where = (
        target.describe(model),
        say("layer {layer!r}", layer=layer) if layer else say("the input"),
    )
    other = last_layer_with_gradient(model, model_input, target, but=layer)
    where_seen = "." if layer else say(", which the lens gradients shows.")
    hint = (
        ""
        if other is None
        else say(" Layer {layer!r} has a gradient{seen}", layer=other, seen=where_seen)
    )
    if layer and not _depends_on(model, model_input, layer, target):
        return HookVizError(
            say(
                "In {model}, {quantity} does not depend on {place}.{hint}",
                model=model.title,
                quantity=what,
                place=where,
                hint=hint,
            )
        )
    return HookVizError(
        say(
            "{model} cuts the gradient between {place} and {quantity}: it detaches a tensor, "
            "computes without gradients, or takes a step that has none.{hint}",
            model=model.title,
            place=where,
            quantity=what,
            hint=hint,
        )
    )


def _depends_on(
    model: Model, model_input: ModelInput, layer: str, target: AttributionTarget
) -> bool:
    """Return whether noise on the layer's output changes the target."""
    address = input_trace(model, model_input).address(layer)

    def value(amount: float) -> Tensor:
        def disturb(call: hooks.Call) -> Tensor | None:
            if call.index != address.call:
                return None
            output: Tensor = call.output
            noise = torch.randn(output.shape, generator=torch.Generator().manual_seed(0))
            return output + amount * (output.abs().max() + 1) * noise.to(output)

        run = GradientPass(model, model_input, target, (), ignore)
        with private_replica(model) as replica, hooks.edit(replica, (address.layer,), disturb):
            return run.target_values(replica, model_input.tensor)

    return bool(value(0.0) != value(1.0))


def _numbers(tensor: Tensor) -> Numbers:
    """Copy values to the CPU, as float32 where the network computed in less."""
    values = tensor.detach().cpu()
    wide = values if values.dtype == torch.float64 else values.float()
    numbers: Numbers = wide.numpy()
    return numbers
