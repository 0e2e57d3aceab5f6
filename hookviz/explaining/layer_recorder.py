"""Record one call of a conv layer in a real pass, so that each of its cells can be explained.

What the convolution was given, and what its output went through next, is taken from the pass
and never assumed: an `EveryFunction` sees the arguments of every torch function that the pass
calls. So the kernel is the one that was used (weight norm and weight standardisation included),
the padding is the one that was made, and activations that a network calls as functions are seen.
"""

import inspect
import weakref
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hookviz.capturing import inputs, layers
from hookviz.capturing.layer_trace import input_trace
from hookviz.errors import ModelError, SettingError, UnknownLayerError
from hookviz.explaining.layer_call import Following, LayerCall, check_range, layer_call, own
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
from hookviz.types import Address, Model, ModelInput

_CONV2D = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
_DEFAULTS = {"bias": None, "stride": 1, "padding": 0, "dilation": 1, "groups": 1}


def record_input(model: Model, image: Any, layer: str, call: int = 0) -> LayerCall:
    """One call of a conv layer with its input, its output and what followed, in one pass.

    The pass runs on a private replica of the network and ends as soon as nothing more can follow.

    Args:
        model: from `load_model` or `wrap`.
        image: anything that `inputs.prepare` takes.
        layer: name of a conv layer.
        call: which of the layer's calls, from 0.

    Raises:
        SettingError: `layer` is no `nn.Conv2d`, or has no such call.
        UnknownLayerError: the model has no layer of that name.
        ImageError: the image can't be read.
        ModelError: the network can't take this input, or the layer is more than a convolution.
    """
    model_input = inputs.prepare(model, image)
    _check_layer(model, model_input, layer, call)
    with private_replica(model) as replica:
        watch = _Watch(replica, layer, call)
        with hooks.observe(replica, watch.layers, watch.see), watch:
            forward_pass(model, replica, model_input.tensor)
    if watch.record is None:
        raise ModelError(
            say(
                "Layer {layer!r} of {model} {problem}, so its values can't be written out as "
                "a sum. Choose another layer.",
                layer=layer,
                model=model.title,
                problem=watch.problem,
            )
        )
    return replace(watch.record, steps=tuple(watch.steps))


def _check_layer(model: Model, model_input: ModelInput, layer: str, call: int) -> None:
    modules = dict(model.network.named_modules(remove_duplicate=False))
    modules.pop("")
    if layer not in modules:
        raise UnknownLayerError(say("layer in {model}", model=model.title), layer, modules)
    run = input_trace(model, model_input)
    if not isinstance(modules[layer], nn.Conv2d):
        convs = [info.name for info in run.convs if info.kind == "Conv2d"]
        hint = (
            say(" The first one of {model} is {layer!r}.", model=model.title, layer=convs[0])
            if convs
            else ""
        )
        raise SettingError(
            say(
                "Layer {layer!r} is a {name}. Only ordinary two-dimensional convolutions "
                "(Conv2d) can be written out as a sum.{hint}",
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


class _Watch(EveryFunction):
    """Follows one pass: the wanted call of the wanted layer, then what its output goes through.

    A tensor is told by being the same object; what writes into it in place makes it the next
    step's output. A tensor that goes two ways is not followed: neither way is what comes next.
    """

    def __init__(self, network: nn.Module, layer: str, call: int) -> None:
        super().__init__()
        self.layers = layers.leaf_names(network) | {layer}
        self.record: LayerCall | None = None
        self.steps: list[Following] = []
        self.problem = say("is more than one call of torch's conv2d")
        self._modules = dict(network.named_modules())
        self._owners = {
            id(tensor): name
            for name, module in self._modules.items()
            for tensor in (*module.parameters(recurse=False), *module.buffers(recurse=False))
        }
        self._wanted = (layer, call)
        self._conv: dict[str, Any] = {}  # the last one's arguments and output
        self._pad: dict[str, Any] = {}
        # Tensors on the way, not kept alive, with how many steps had been made up to each.
        self._way: list[tuple[weakref.ref[Tensor], int]] = []
        self._ended = False

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """What `func` gives, seen on its way."""
        operands = [tensor for _, tensor in hooks.tensors_in((args, kwargs))]
        positions = [
            position
            for position, (ref, _) in enumerate(self._way)
            if any(tensor is ref() for tensor in operands)
        ]
        versions = [version(tensor) for tensor in operands] if positions else []
        output = func(*args, **kwargs)
        if self.record is None:
            self._remember(function_name(func), args, kwargs, output)
        elif positions:
            written = [version(tensor) for tensor in operands] != versions
            self._follow(func, args, kwargs, output, positions[0], written=written)
        # A tensor further back that is still alive may yet go a second way.
        if self._ended and all(ref() is None for ref, _ in self._way[:-1]):
            raise hooks.StopForward
        return output

    def _remember(
        self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any
    ) -> None:
        """Keep what the layer may turn out to be made of, until the next of its kind."""
        if name == "conv2d":
            self._conv = {**_DEFAULTS, **dict(zip(_CONV2D, args, strict=False)), **kwargs}
            self._conv["output"] = output
        elif name == "pad":
            self._pad = {**dict(zip(("input", "pad"), args, strict=False)), **kwargs}
            self._pad["output"] = output

    def see(self, call: hooks.Call) -> None:
        """Take in one call of a hooked layer."""
        with not_followed():
            if (call.layer, call.index) == self._wanted:
                self._take(call)
                if self.record is None:
                    raise hooks.StopForward
                self._conv, self._pad = {}, {}
                self._way = [(weakref.ref(call.output), 0)]
            elif self.steps and call.output is self._way[-1][0]():
                self._name_last(call.layer)

    def _take(self, call: hooks.Call) -> None:
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
        address = str(Address(call.layer, call.index))
        self.record = layer_call(address, self._conv, pads, layer_input, call.output)

    def _follow(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        output: Any,
        position: int,
        *,
        written: bool,
    ) -> None:
        """Take in what was done with the tensor at one position of the way."""
        tensor, steps = self._way[position][0](), self._way[position][1]
        results = [result for _, result in hooks.tensors_in(output)]
        if all(result is tensor for result in results) and not written:
            return  # a look at its shape, or a dropout that does nothing
        first = args[0] if args else kwargs.get("input")
        known = first is tensor and function_name(func) in NORMS | ACTIVATIONS
        if position < len(self._way) - 1:  # a second way out of a tensor further back
            del self._way[position + 1 :], self.steps[steps:]
            self._ended = True
        elif not self._ended and known and isinstance(output, Tensor):
            self.steps.append(_following(func, args, kwargs, output))
            for _, part in hooks.tensors_in((args[1:], kwargs)):
                self._name_last(self._owners.get(id(part), ""))  # a norm's own numbers, say
            if output is tensor:
                self._way.pop()
            self._way.append((weakref.ref(output), len(self.steps)))
        else:
            self._ended = True

    def _name_last(self, layer: str) -> None:
        """Say which module called the last step's function, if this one can have."""
        last, module = self.steps[-1], type(self._modules.get(layer))
        name = last.kind.replace("_", "")
        if not last.layer and any(name in kind.__name__.lower() for kind in module.__mro__):
            self.steps[-1] = replace(last, layer=layer, kind=module.__name__)


def _following(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Tensor
) -> Following:
    """A step from the function's arguments and what it gave."""
    batched = output.ndim == 4
    step = Following("", function_name(func), own(output[0] if batched else output))
    if not batched or func not in (F.batch_norm, F.instance_norm):
        return step
    bound = inspect.signature(func).bind(*args, **kwargs)
    bound.apply_defaults()
    arguments = bound.arguments
    mean, variance = arguments["running_mean"], arguments["running_var"]
    if mean is None or arguments.get("training") or arguments.get("use_input_stats"):
        variance, mean = torch.var_mean(arguments["input"], (0, 2, 3), correction=0)
    scale = torch.ones_like(mean) if arguments["weight"] is None else arguments["weight"]
    shift = torch.zeros_like(mean) if arguments["bias"] is None else arguments["bias"]
    norm = torch.stack([own(part) for part in (mean, variance, scale, shift)])
    return replace(step, norm=norm, epsilon=arguments["eps"])
