"""Run one forward and backward pass: an attribution target and its gradients at layers and input.

Several inputs can go through at once, each with a target value of its own.

`torch.autograd.grad` asks for single gradients, so no parameter gets a ``grad``. A layer's output
is kept aside while the network goes on with a copy: an in-place function behind the layer can't
write over it.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.capturing.layer_trace import input_trace
from hookviz.capturing.unsupported_outputs import meta_output_error
from hookviz.errors import ModelError
from hookviz.explaining.attribution_target import AttributionTarget, maps_in, with_channels_first
from hookviz.explaining.scoring import scores_in
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import (
    ProgressReporter,
    backward_pass,
    differentiable,
    forward_pass,
)
from hookviz.hooking.plain_tensors import kind_of
from hookviz.hooking.precision import device_and_dtype
from hookviz.hooking.torch_functions import EveryFunction, function_name
from hookviz.language.saying import say
from hookviz.types import Model, ModelInput, Progress

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

    def run(self, images: Tensor) -> Mapping[str, Tensor | None]:
        """Return the gradients by layer, of the shape of its output; None where there is none.

        Args:
            images: ``(N, C, H, W)``. The gradient is that of the sum of the N targets, which is
                each one's own where the network treats the rows of a batch independently.
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
            if asked in self._layers:
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
        """Call `func`, and hand over its result where it is a ReLU or ReLU6."""
        output, name = func(*args, **kwargs), function_name(func)
        relu6 = name == "hardtanh" and kwargs.get("min_val") == 0  # as nn.ReLU6 calls it
        if (relu6 or name in ("relu", "relu6")) and getattr(output, "requires_grad", False):
            self._on_relu(output)
        return output
