"""Record one call of a conv or linear layer in a real pass, so that its cells can be explained.

What the layer was given, and what its output went through next, is taken from the pass
and never assumed: an `EveryFunction` sees the arguments of every torch function that the pass
calls. So the kernel is the one that was used (weight norm and weight standardisation included),
the padding is the one that was applied, and activations that a network calls as functions are seen.
While it looks, `nn.MultiheadAttention` does without its fused kernel, which rounds otherwise.
"""

import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from hookviz.capturing import inputs, layers
from hookviz.capturing.layer_trace import input_trace
from hookviz.capturing.wanted_layers import no_cells_error
from hookviz.errors import ModelError, SettingError, UnknownLayerError
from hookviz.explaining.layers.layer_call import (
    CONVOLUTIONS,
    FollowingOp,
    LayerCall,
    check_range,
    following_op,
    layer_call,
    linear_call,
)
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import forward_pass, private_replica
from hookviz.hooking.torch_functions import (
    ACTIVATIONS,
    NORMS,
    EveryFunction,
    function_name,
    not_followed,
    version,
)
from hookviz.language.saying import say
from hookviz.types import FIRST, LAST, TOKENS, UNKNOWN, ActivationKey, Layout, Model, ModelInput

_CONV2D = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
_LINEAR = ("input", "weight", "bias")
_DEFAULTS = {"bias": None, "stride": 1, "padding": 0, "dilation": 1, "groups": 1}


def record_layer_call(model: Model, image: Any, layer: str, call: int = 0) -> LayerCall:
    """Record one call of a conv or linear layer in one pass: input, output and what followed.

    The pass ends as soon as nothing more can follow.

    Args:
        model: from `load_model` or `wrap`.
        image: anything that `inputs.prepare` takes.
        layer: name of a conv layer, or of a linear one that works on maps or tokens.
        call: which of the layer's calls, from 0.

    Raises:
        SettingError: `layer` is no `nn.Conv2d` and no `nn.Linear`, or has no such call.
        UnknownLayerError: the model has no layer of that name.
        ImageError: the image can't be read.
        ModelError: the network can't take this input, the layer is more than a convolution or a
            product with a matrix, or where the rows and columns are that it works on is unknown.
    """
    model_input = inputs.prepare(model, image)
    layout = _check_layer(model, model_input, layer, call)
    with private_replica(model) as replica:
        recorder = _CallRecorder(replica, layer, call, layout)
        with hooks.observe(replica, recorder.layers, recorder.on_call), recorder:
            forward_pass(model, replica, model_input.tensor)
    if recorder.record is None:
        raise _no_sum(model, layer, recorder.problem)
    return replace(recorder.record, steps=tuple(recorder.steps))


def _check_layer(model: Model, model_input: ModelInput, layer: str, call: int) -> Layout:
    """Return how that call's output lies, if it can be of such a layer."""
    modules = dict(model.network.named_modules(remove_duplicate=False))
    modules.pop("")
    if layer not in modules:
        raise UnknownLayerError(say("layer in {model}", model=model.title), layer, modules)
    run = input_trace(model, model_input)
    if not isinstance(modules[layer], nn.Conv2d | nn.Linear):
        convs = [info.name for info in run.convs if info.kind == "Conv2d"]
        hint = (
            say(" The first one of {model} is {layer!r}.", model=model.title, layer=convs[0])
            if convs
            else ""
        )
        raise SettingError(
            say(
                "Layer {layer!r} is a {name}. Only ordinary two-dimensional convolutions "
                "(Conv2d), and linear layers on maps or tokens, can be written out as a sum.{hint}",
                layer=layer,
                name=type(modules[layer]).__name__,
                hint=hint,
            )
        )
    if layer not in run.calls:
        raise ModelError(
            say(
                "Layer {layer!r} of {model} is not run by a forward pass, or it goes by "
                "another name there.",
                layer=layer,
                model=model.title,
            )
        )
    check_range(layer, "call", call, run.calls[layer])
    if isinstance(modules[layer], nn.Conv2d):
        return CONVOLUTIONS
    layout = run.layouts.get(ActivationKey(layer, call), UNKNOWN)
    if layout.frames:
        raise _no_sum(model, layer, say("works on the frames of a clip"))
    if layout.order not in {LAST, TOKENS}:
        raise no_cells_error(model, layer)
    return layout


def _no_sum(model: Model, layer: str, problem: str) -> ModelError:
    """Return the error that says why a layer's values are no sums."""
    return ModelError(
        say(
            "Layer {layer!r} of {model} {problem}, so its values can't be written out as "
            "a sum. Choose another layer.",
            layer=layer,
            model=model.title,
            problem=problem,
        )
    )


class _CallRecorder(EveryFunction):
    """Follows one pass: records the wanted layer call, then what its output goes through.

    A tensor is recognised as the same object; what writes into it in place makes it the next
    step's output. A tensor with two consumers is not followed: neither is what comes next.
    """

    def __init__(self, network: nn.Module, layer: str, call: int, layout: Layout) -> None:
        super().__init__()
        self.layers = layers.leaf_names(network) | {layer}
        self.record: LayerCall | None = None
        self.steps: list[FollowingOp] = []
        self._layout = layout
        self._following = NORMS | ACTIVATIONS if layout.order == FIRST else ACTIVATIONS
        self.problem = (
            say("is more than one call of torch's conv2d")
            if layout.order == FIRST
            else say("is more than one call of torch's linear")
        )
        self._modules = dict(network.named_modules())
        self._owners = {
            id(tensor): name
            for name, module in self._modules.items()
            for tensor in (*module.parameters(recurse=False), *module.buffers(recurse=False))
        }
        self._wanted = (layer, call)
        self._conv: dict[str, Any] = {}  # the last one's arguments and output
        self._linear: dict[str, Any] = {}
        self._pad: dict[str, Any] = {}
        # The followed tensors, not kept alive, with how many steps led to each.
        self._path: list[tuple[weakref.ref[Tensor], int]] = []
        self._ended = False

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call `func`, and follow the recorded layer's output through it."""
        operands = [tensor for _, tensor in hooks.tensors_in((args, kwargs))]
        positions = [
            position
            for position, (ref, _) in enumerate(self._path)
            if any(tensor is ref() for tensor in operands)
        ]
        versions = [version(tensor) for tensor in operands] if positions else []
        output = func(*args, **kwargs)
        if self.record is None:
            self._keep_conv_or_pad(function_name(func), args, kwargs, output)
        elif positions:
            written = [version(tensor) for tensor in operands] != versions
            self._follow_output(func, args, kwargs, output, positions[0], written=written)
        # An earlier tensor that is still alive may yet get a second consumer.
        if self._ended and all(ref() is None for ref, _ in self._path[:-1]):
            raise hooks.StopForward
        return output

    def _keep_conv_or_pad(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any
    ) -> None:
        """Keep the last calls that the layer may turn out to be made of."""
        if name == "conv2d":
            self._conv = {**_DEFAULTS, **dict(zip(_CONV2D, args, strict=False)), **kwargs}
            self._conv["output"] = output
        elif name == "pad":
            self._pad = {**dict(zip(("input", "pad"), args, strict=False)), **kwargs}
            self._pad["output"] = output
        elif name == "linear":
            self._linear = {"bias": None, **dict(zip(_LINEAR, args, strict=False)), **kwargs}
            self._linear["output"] = output

    def on_call(self, call: hooks.Call) -> None:
        """Record the wanted call, or name the layer of the last step."""
        with not_followed():
            if (call.layer, call.index) == self._wanted:
                self._record_call(call)
                if self.record is None:
                    raise hooks.StopForward
                self._conv, self._pad, self._linear = {}, {}, {}
                self._path = [(weakref.ref(call.output), 0)]
            elif self.steps and call.output is self._path[-1][0]():
                self._name_last(call.layer)

    def _record_call(self, call: hooks.Call) -> None:
        if self._layout.order != FIRST:
            self._record_linear(call)
            return
        if not self._conv or call.output is not self._conv["output"]:
            return
        layer_input, pads = call.inputs[0], (0, 0, 0, 0)
        if self._conv["input"] is not layer_input:
            if (
                self._conv["input"] is not self._pad.get("output")
                or self._pad["input"] is not layer_input
            ):
                return
            pads = tuple(self._pad["pad"])
            if len(pads) > 4 or min(pads) < 0:
                return
        if layer_input.ndim == 4 and layer_input.shape[0] != 1:
            self.problem = say("is run on {shape} images at once", shape=layer_input.shape[0])
            return
        address = str(ActivationKey(call.layer, call.index))
        self.record = layer_call(address, self._conv, pads, layer_input, call.output)

    def _record_linear(self, call: hooks.Call) -> None:
        done = self._linear
        if not done or call.output is not done["output"] or call.inputs[0] is not done["input"]:
            return
        address = str(ActivationKey(call.layer, call.index))
        self.record = linear_call(address, done, self._layout, call.output)

    def _follow_output(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        output: Any,
        position: int,
        *,
        written: bool,
    ) -> None:
        """Add a step for what was done with the tensor at one position of the path."""
        tensor, steps = self._path[position][0](), self._path[position][1]
        results = [result for _, result in hooks.tensors_in(output)]
        if all(result is tensor for result in results) and not written:
            return  # a look at its shape, or an inactive dropout
        first = args[0] if args else kwargs.get("input")
        continues = first is tensor and function_name(func) in self._following
        if position < len(self._path) - 1:  # a second consumer of an earlier tensor
            del self._path[position + 1 :], self.steps[steps:]
            self._ended = True
        elif not self._ended and continues and isinstance(output, Tensor):
            self.steps.append(following_op(func, args, kwargs, output, self._layout))
            for _, parameter in hooks.tensors_in((args[1:], kwargs)):
                self._name_last(self._owners.get(id(parameter), ""))  # such as a norm's parameters
            if output is tensor:
                self._path.pop()
            self._path.append((weakref.ref(output), len(self.steps)))
        else:
            self._ended = True

    def _name_last(self, layer: str) -> None:
        """Name the module that called the last step's function, if this one can have."""
        last, module = self.steps[-1], type(self._modules.get(layer))
        name = last.kind.replace("_", "")
        if not last.layer and any(name in kind.__name__.lower() for kind in module.__mro__):
            self.steps[-1] = replace(last, layer=layer, kind=module.__name__)
