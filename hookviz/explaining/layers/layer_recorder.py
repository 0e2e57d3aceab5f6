"""Record one call of a conv or linear layer, or of a layer norm, to write its values out.

The input of the layer, and what its output went through next, is taken from the pass and never
assumed: an `EveryFunction` sees the arguments of every torch function that the pass calls. So the
kernel is the one that was used (weight norm and weight standardisation included), the padding is
the one that was applied, and activations that a network calls as functions are seen. During the
pass `nn.MultiheadAttention` does without its fused kernel, which rounds differently.

A layer norm computes ``y = (x − mean) / √(variance + ε) · scale + shift``, with mean and variance
of the numbers that are normalised together, as a rule the channels of one token or one cell (Ba et
al., "Layer Normalization", 2016). They depend on x, so a value is no sum of products with learned
weights as a convolution's is, and has a record of its own, `NormCall`.
"""

import math
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.capturing import inputs, layers
from hookviz.capturing.layer_trace import input_trace
from hookviz.capturing.wanted_layers import no_cells_error
from hookviz.errors import ModelError, SettingError, UnknownLayerError
from hookviz.explaining.layers.layer_call import (
    CONVOLUTIONS,
    FollowingOp,
    LayerCall,
    Normalisation,
    check_cell,
    check_range,
    float_copy,
    following_op,
    is_near,
    layer_call,
    linear_call,
    map_of,
    relative_tolerance,
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
_CONV_DEFAULTS = {"bias": None, "stride": 1, "padding": 0, "dilation": 1, "groups": 1}


def record_layer_call(model: Model, image: Any, layer: str, call: int = 0) -> LayerCall:
    """Record one call of a conv or linear layer in one pass: input, output and what followed.

    The pass ends as soon as nothing more can follow.

    `layer` names a conv layer, or a linear one that works on maps or tokens; `call` counts from 0.

    Raises:
        SettingError: `layer` is no `nn.Conv2d` and no `nn.Linear`, or lacks that call.
        UnknownLayerError: the model has no layer of that name.
        ImageError: the image can't be read.
        ModelError: the network can't take this input, the layer is more than a convolution or a
            product with a matrix, or where the rows and columns are that it works on is unknown.
    """
    model_input = inputs.prepare_input(model, image)
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
            self._conv = {**_CONV_DEFAULTS, **dict(zip(_CONV2D, args, strict=False)), **kwargs}
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


_LAYER_NORM = ("input", "normalized_shape", "weight", "bias", "eps")
_NORM_DEFAULTS = {"weight": None, "bias": None, "eps": 1e-5}


@dataclass(frozen=True, eq=False, slots=True)
class NormCall:
    """Record of one call of a layer norm: any value of it can be written out.

    All tensors are on the CPU and have ``(C, H, W)``, whatever is alike repeated.

    Attributes:
        layer: written address of the call.
        given: the layer's input, float32.
        output: what it put out, float32.
        mean, variance: of the numbers normalised together, float64.
        scale, shift: as learned, 1 and 0 where they are not, float32.
        epsilon: added to the variance.
        together: how many numbers are normalised together.
        rounding: relative rounding of the network's arithmetic, see `NormedCell.agrees`.
    """

    layer: str
    given: Tensor = field(repr=False)
    output: Tensor = field(repr=False)
    mean: Tensor = field(repr=False)
    variance: Tensor = field(repr=False)
    scale: Tensor = field(repr=False)
    shift: Tensor = field(repr=False)
    epsilon: float
    together: int
    rounding: float

    @property
    def nbytes(self) -> int:
        """Memory that its input and output take, in bytes."""
        return self.given.nbytes + self.output.nbytes


@dataclass(frozen=True, slots=True)
class NormedCell:
    """One value of a layer norm, written out.

    Attributes:
        layer: written address.
        channel, row, column: which value it is.
        given: what the layer was given there.
        norm: mean, variance, scale, shift and ε.
        together: how many numbers mean and variance are of.
        value: what the network computed.
        total: the formula's result in double precision.
        tolerance: how far `value` may be from it, see `agrees`.
    """

    layer: str
    channel: int
    row: int
    column: int
    given: float
    norm: Normalisation
    together: int
    value: float
    total: float
    tolerance: float

    @property
    def agrees(self) -> bool:
        """Whether the formula gives the network's value, up to its arithmetic's rounding.

        ``|total − value| ≤ rounding · ((|x| + |mean|) / √(variance + ε) · |scale| + |shift|)``,
        see `CellSum.agrees`.
        """
        return is_near(self.total, self.value, self.tolerance)


def explain_norm(call: NormCall, channel: int, row: int, column: int) -> NormedCell:
    """Write one value of a recorded layer norm out.

    Raises:
        SettingError: the layer lacks that channel, row or column.
    """
    check_cell(call.layer, call.output, channel, row, column)
    given, value, mean, variance, scale, shift = (
        float(each[channel, row, column])
        for each in (call.given, call.output, call.mean, call.variance, call.scale, call.shift)
    )
    norm = Normalisation(mean, variance, scale, shift, call.epsilon)
    deviation = math.sqrt(variance + call.epsilon)
    total = norm.apply(given) if deviation else math.nan
    size = ((abs(given) + abs(mean)) / deviation if deviation else 0) * abs(scale) + abs(shift)
    tolerance = call.rounding * size + torch.finfo(torch.float32).tiny
    return NormedCell(
        call.layer, channel, row, column, given, norm, call.together, value, total, tolerance
    )


def record_norm_call(model: Model, image: Any, layer: str, call: int = 0) -> NormCall:
    """Record one call of a layer norm that puts out maps or tokens, in one pass.

    The pass ends with that call.

    `layer` names an `nn.LayerNorm`, or a layer made of one, such as those that permute maps to
    channels last for it; `call` counts from 0.

    Raises:
        SettingError: `layer` is no layer norm, or lacks that call.
        UnknownLayerError: the model has no layer of that name.
        ImageError: the image can't be read.
        ModelError: the network can't take this input, the layer is more than a layer norm, or
            where rows and columns are is unknown.
    """
    model_input = inputs.prepare_input(model, image)
    modules = dict(model.network.named_modules(remove_duplicate=False))
    if layer not in modules:
        raise UnknownLayerError(say("layer in {model}", model=model.title), layer, modules)
    if not isinstance(modules[layer], nn.LayerNorm):
        raise SettingError(
            say(
                "Layer {layer!r} is a {name}, and no LayerNorm.",
                layer=layer,
                name=type(modules[layer]).__name__,
            )
        )
    run = input_trace(model, model_input)
    check_range(layer, "call", call, run.calls.get(layer, 0))
    layout = run.layouts.get(ActivationKey(layer, call), UNKNOWN)
    problem = say("puts out no maps, or its rows and columns are not known")
    if layout.frames:
        problem = say("works on the frames of a clip")
    elif layout.order in {FIRST, LAST, TOKENS}:
        with private_replica(model) as replica:
            recorder = _Recorder(call, layout)
            with hooks.observe(replica, (layer,), recorder.on_call), recorder:
                forward_pass(model, replica, model_input.tensor)
        if recorder.record is not None:
            return recorder.record
        problem = say("is more than one call of torch's layer_norm")
    raise ModelError(
        say(
            "Layer {layer!r} of {model} {problem}, so its values can't be written out. Choose "
            "another layer.",
            layer=layer,
            model=model.title,
            problem=problem,
        )
    )


class _Recorder(EveryFunction):
    """Follows one pass until the wanted call, and keeps the last layer norm that it sees."""

    def __init__(self, call: int, layout: Layout) -> None:
        super().__init__()
        self.record: NormCall | None = None
        self._wanted, self._layout = call, layout
        self._last: dict[str, Any] = {}

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        output = func(*args, **kwargs)
        if function_name(func) == "layer_norm":
            self._last = {**_NORM_DEFAULTS, **dict(zip(_LAYER_NORM, args, strict=False)), **kwargs}
            self._last["output"] = output
        return output

    def on_call(self, call: hooks.Call) -> None:
        if call.index == self._wanted:
            with not_followed():
                self.record = self._recorded(call)
            raise hooks.StopForward
        self._last = {}

    def _recorded(self, call: hooks.Call) -> NormCall | None:
        done, (given, *_), output = self._last, call.inputs, call.output
        if not done or not isinstance(output, Tensor):
            return None
        order = _order(done["output"], output)
        if order is None or _order(done["input"], given) != order or len(output) != 1:
            return None
        wide = done["input"].detach().cpu().double()
        normed = len(done["normalized_shape"])
        variance, mean = torch.var_mean(wide, tuple(range(-normed, 0)), correction=0, keepdim=True)
        scale, shift = (
            torch.tensor(float(bare)) if done[name] is None else float_copy(done[name])
            for name, bare in (("weight", 1), ("bias", 0))
        )

        def maps(tensor: Tensor) -> Tensor:
            return map_of(tensor.expand(wide.shape).permute(order), self._layout)

        return NormCall(
            layer=str(ActivationKey(call.layer, call.index)),
            given=float_copy(map_of(given, self._layout)),
            output=float_copy(map_of(output, self._layout)),
            mean=maps(mean),
            variance=maps(variance),
            scale=maps(scale),
            shift=maps(shift),
            epsilon=float(done["eps"]),
            together=math.prod(done["normalized_shape"]),
            rounding=relative_tolerance(output),
        )


def _order(inner: Tensor, outer: Tensor) -> tuple[int, ...] | None:
    """Return in which order a tensor's axes give another view of the same memory; None in none."""
    if inner.untyped_storage().data_ptr() != outer.untyped_storage().data_ptr():
        return None
    for order in permutations(range(inner.ndim)):
        turned = inner.permute(order)
        if turned.shape == outer.shape and turned.stride() == outer.stride():
            return order
    return None
