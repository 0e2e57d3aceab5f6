"""One pass there and back: a number of a pass, and its gradients at layers and at the input.

Several inputs can go through at once, each with a number of its own.

The pass runs on a fresh replica, and `torch.autograd.grad` asks for single gradients, so nothing
that is shared gets one. What a layer puts out is held aside while the network goes on with a copy:
an in-place ReLU behind the layer can't write over it.

Over 300 lines: there and back are one pass.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.capturing.layer_trace import input_trace
from hookviz.capturing.ordinary import check_ordinary, without_values
from hookviz.errors import ModelError, SettingError, UnknownLayerError
from hookviz.explaining.scoring import scores_in
from hookviz.hooking import hooks, replicas
from hookviz.hooking.forward_pass import ProgressReporter, backward_pass, forward_pass
from hookviz.hooking.plain_tensors import kind_of
from hookviz.hooking.precision import device_and_dtype
from hookviz.hooking.torch_functions import EveryFunction, function_name
from hookviz.language.naming import class_label
from hookviz.language.saying import mark, say
from hookviz.types import Model, ModelInput, Progress

INPUT = ""
"""Stands for the network's input among layer names; no layer is called so."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """One number of a pass, for gradients to be of.

    Attributes:
        target: a class, whose score (before the softmax) it is, where `layer` is None.
        layer: a layer, of whose first call it is a part.
        channel: the layer's channel, whose mean it is, where `cell` is None; None stands for the
            mean of all channels.
        cell: the row and column of one cell of the channel.
    """

    target: int | None = None
    layer: str | None = None
    channel: int | None = 0
    cell: tuple[int, int] | None = None

    def says(self, model: Model) -> str:
        """What it is called, to stand within a sentence."""
        if self.layer is None:
            assert self.target is not None
            label = class_label(self.target, model.categories)
            return say("the score of {label}", label=label)
        channel = say("channel {channel} of {layer}", channel=self.channel, layer=self.layer)
        if self.cell is None:
            return say("the mean of {layer}", layer=self.layer if self.channel is None else channel)
        cell = say("row {row}, column {column} of ", row=self.cell[0], column=self.cell[1])
        return cell + (
            say("{layer} (all channels)", layer=self.layer) if self.channel is None else channel
        )


class Pass:
    """One pass there and back: what the wanted layers put out, and gradients with respect to it.

    Attributes:
        held: what each wanted layer put out in its first call, and the input as `INPUT`.
        values: the quantity of each input, ``(N,)``, once the pass has run.
        relus: at how many ReLUs negative gradients were cut.
    """

    def __init__(
        self,
        model: Model,
        model_input: ModelInput,
        quantity: Quantity,
        wanted: Collection[str],
        progress: Progress,
        *,
        guided: bool = False,
    ) -> None:
        self.held: dict[str, Tensor] = {}
        self.values = torch.empty(0)
        self.relus = 0
        self._model, self._model_input, self._quantity = model, model_input, quantity
        self._wanted, self._guided = frozenset(wanted), guided
        self._reporter = ProgressReporter(progress)
        convs = input_trace(model, model_input).convs
        self._watched = {layer.name for layer in convs} | self._wanted - {INPUT}
        self._calls = max(1, sum(layer.calls for layer in convs))
        self._there = self._back = 0
        self._ways = 2  # there and back
        self._asked: Tensor | None = None
        if quantity.layer is not None:
            _check_part(quantity, check_maps(model, model_input, quantity.layer))
            self._watched.add(quantity.layer)

    @property
    def value(self) -> float:
        """The quantity of the first input."""
        return float(self.values[0])

    def run(self, images: Tensor) -> Mapping[str, Tensor | None]:
        """The gradients by layer, of the shape of what it put out; None where there is none.

        Args:
            images: ``(N, C, H, W)``. The gradient is that of the sum of the N quantities, which is
                each one's own where the network keeps its rows apart.
        """
        # Where the caller has switched gradients off, that is no business of this replica's.
        with (
            torch.inference_mode(mode=False),  # switches gradients on, too
            hooks.on_gradients(self._see_back) as self._gradients,
        ):
            replica = replicas.for_gradients(self._model.network)
            images = images.to(*device_and_dtype(replica), copy=True)
            if INPUT in self._wanted:
                self.held[INPUT] = images.requires_grad_()
            try:
                values = self._of(self._whole(self._forward(replica, images), len(images)))
                self.values = values.detach().cpu()
                return self._backward(values.sum())
            finally:
                del self._gradients  # it knows this object, and the two would keep each other

    def values_of(self, replica: nn.Module, images: Tensor) -> Tensor:
        """The quantities alone, ``(N,)``, in a pass of a replica; gradients stay on or off."""
        return self._of(self.whole_of(replica, images))

    def whole_of(self, replica: nn.Module, images: Tensor) -> Tensor:
        """What the quantities are parts of: all class scores, or maps, ``(N, …)``."""
        self._ways = 1
        return self._whole(self._forward(replica, images), len(images))

    def _forward(self, replica: nn.Module, images: Tensor) -> Any:
        guide = _Reluctance(self._guide) if self._guided else nullcontext()
        with hooks.edit(replica, self._watched, self._see), guide:
            return forward_pass(self._model, replica, images, self._reporter)

    def _backward(self, value: Tensor) -> Mapping[str, Tensor | None]:
        names = list(self.held)
        nothing: dict[str, Tensor | None] = dict.fromkeys(self._wanted)
        if not (names and value.requires_grad):
            return nothing
        held = [self.held[name] for name in names]
        gradients = backward_pass(self._model, value, held, self._reporter)
        return nothing | dict(zip(names, gradients, strict=True))

    def _see(self, call: hooks.Call) -> Tensor | None:
        output, replacement = call.output, None
        is_ordinary = isinstance(output, Tensor) and not kind_of(output)
        if call.index == 0 and is_ordinary:
            if call.layer in self._wanted:
                output, replacement = self._hold(call.layer, output)
            if call.layer == self._quantity.layer:
                self._asked = output
                raise hooks.StopForward  # the rest of the network adds nothing to it
        if is_ordinary and output.requires_grad and output.device.type == "cpu":
            # On a GPU the way back runs in a thread of its own, and is quick.
            self._gradients.add(call.layer, output)
        self._there += 1
        self._reporter.share(self._there / self._calls / self._ways)
        return replacement

    def _hold(self, layer: str, output: Tensor) -> tuple[Tensor, Tensor]:
        """A layer's output as a tensor with a graph, and the copy that the network goes on with.

        An output of a part that runs without gradients starts a graph here, so the rest has one.
        """
        with torch.enable_grad():
            if not output.requires_grad:
                output = output.detach().requires_grad_()
            self.held[layer] = output
            return output, output.clone()

    def _guide(self, output: Tensor) -> None:
        self.relus += 1
        self._gradients.add(INPUT, output)

    def _see_back(self, name: str, gradient: Tensor) -> Tensor | None:
        if name == INPUT:
            return gradient.clamp(min=0)
        self._back += 1
        self._reporter.share(0.5 + self._back / self._calls / 2)
        return None

    def _of(self, whole: Tensor) -> Tensor:
        """The quantities, ``(N,)``."""
        quantity = self._quantity
        if quantity.layer is None:
            return whole[:, quantity.target]
        part = whole.mean(1) if quantity.channel is None else whole[:, quantity.channel]
        if quantity.cell is not None:
            return part[:, *quantity.cell]
        return torch.stack([each.mean() for each in part])

    def _whole(self, output: Any, count: int) -> Tensor:
        """The class scores, ``(N, classes)``, or maps of the asked layer, ``(N, C, H, W)``."""
        layer, asked = self._quantity.layer, self._asked
        if layer is None:
            return scores_in(self._model, output, count)
        if asked is None:
            raise ModelError(
                say(
                    "Layer {layer!r} of {model} did not run.",
                    layer=layer,
                    model=self._model.title,
                )
            )
        if asked.is_meta:
            raise without_values(self._model, layer)
        if asked.ndim != 4 or len(asked) != count:
            if count > 1:  # of all inputs one map, which is the first one's
                raise ModelError(say("{layer} puts out no maps for each input.", layer=layer))
            asked = map_of(self._model, self._model_input, layer, asked)[None]
        return asked


class _Reluctance(EveryFunction):
    """Tells of every ReLU's output while a pass runs, from a module or a function."""

    def __init__(self, tell: Callable[[Tensor], None]) -> None:
        super().__init__()
        self._tell = tell

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """What `func` gives."""
        output, name = func(*args, **kwargs), function_name(func)
        relu6 = name == "hardtanh" and kwargs.get("min_val") == 0  # as nn.ReLU6 calls it
        if (relu6 or name in ("relu", "relu6")) and getattr(output, "requires_grad", False):
            self._tell(output)
        return output


def check_maps(model: Model, model_input: ModelInput, layer: str) -> tuple[int, ...]:
    """``(C, H, W)`` of the maps that a layer or a block puts out, by the trace.

    Raises:
        UnknownLayerError: a pass runs no layer of that name.
        ModelError: the layer puts out something else.
    """
    trace = input_trace(model, model_input)
    shapes = {info.name: info.output_shape for info in trace.every}
    if layer not in shapes:
        raise UnknownLayerError(say("layer in {model}", model=model.title), layer, shapes)
    check_ordinary(model, trace, layer)
    if len(shapes[layer]) != 3:
        raise _no_maps(model, model_input, layer, ("1", *map(str, shapes[layer])))
    return shapes[layer]


def _check_part(quantity: Quantity, shape: tuple[int, ...]) -> None:
    row, column = quantity.cell or (0, 0)
    for axis, index, count in (
        (mark("channel"), quantity.channel or 0, shape[0]),
        (mark("row"), row, shape[1]),
        (mark("column"), column, shape[2]),
    ):
        if not 0 <= index < count:
            raise SettingError(
                say(
                    "There is no {axis} {index} in layer {layer!r}: it has {count:,}, 0 to {last}.",
                    axis=say(axis),
                    index=index,
                    layer=quantity.layer,
                    count=count,
                    last=count - 1,
                )
            )


def map_of(model: Model, model_input: ModelInput, layer: str, output: Tensor) -> Tensor:
    """The maps in a layer's output, ``(C, H, W)``, which a convolution may put out without a batch.

    Raises:
        ModelError: it is something else; a layer that puts out maps is named.
    """
    if output.ndim == 3 and tuple(output.shape) == check_maps(model, model_input, layer):
        return output
    if output.ndim != 4 or len(output) != 1:
        raise _no_maps(model, model_input, layer, tuple(map(str, output.shape)))
    return output[0]


def _no_maps(
    model: Model, model_input: ModelInput, layer: str, shape: tuple[str, ...]
) -> ModelError:
    convs = input_trace(model, model_input).convs
    fit = [info.name for info in convs if len(info.output_shape) == 3 and info.name != layer]
    hint = say(" {layer!r} puts out maps, for example.", layer=fit[-1]) if fit else ""
    return ModelError(
        say(
            "Layer {layer!r} of {model} puts out {shape}, not one image's maps (1×C×H×W).{hint}",
            layer=layer,
            model=model.title,
            shape="×".join(shape),
            hint=hint,
        )
    )
