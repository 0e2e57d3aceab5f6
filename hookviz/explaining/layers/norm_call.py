"""Record one call of a layer norm in a real pass, and write any of its values out.

``y = (x − mean) / √(variance + ε) · scale + shift``, mean and variance being those of the numbers
that are normalised together (Ba et al., "Layer Normalization", 2016): as a rule the channels of one
token or one place. They depend on x, so that a value is no sum of products with learned weights as
a convolution's is, and is not told as one.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import torch
from torch import Tensor, nn

from hookviz.capturing import inputs
from hookviz.capturing.layer_trace import input_trace
from hookviz.errors import ModelError, SettingError, UnknownLayerError
from hookviz.explaining.layers.layer_call import (
    Normalisation,
    check_range,
    float_copy,
    map_of,
    relative_tolerance,
)
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import forward_pass, private_replica
from hookviz.hooking.torch_functions import EveryFunction, function_name, not_followed
from hookviz.language.saying import say
from hookviz.types import FIRST, LAST, TOKENS, UNKNOWN, ActivationKey, Layout, Model

_LAYER_NORM = ("input", "normalized_shape", "weight", "bias", "eps")
_DEFAULTS = {"weight": None, "bias": None, "eps": 1e-5}


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
        if math.isfinite(self.total):
            return abs(self.total - self.value) <= self.tolerance
        return self.total == self.value or (math.isnan(self.total) and math.isnan(self.value))


def explain_norm(call: NormCall, channel: int, row: int, column: int) -> NormedCell:
    """Write one value of a recorded layer norm out.

    Raises:
        SettingError: the layer has no such channel, row or column.
    """
    cell = {"channel": channel, "row": row, "column": column}
    for (axis, index), count in zip(cell.items(), call.output.shape, strict=True):
        check_range(call.layer, axis, index, count)
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

    Args:
        model: from `load_model` or `wrap`.
        image: anything that `inputs.prepare` takes.
        layer: name of an `nn.LayerNorm`, or of a layer made of it, such as those that turn maps to
            have their channels last for it.
        call: which of the layer's calls, from 0.

    Raises:
        SettingError: `layer` is no layer norm, or has no such call.
        UnknownLayerError: the model has no layer of that name.
        ImageError: the image can't be read.
        ModelError: the network can't take this input, the layer is more than a layer norm, or
            where rows and columns are is unknown.
    """
    model_input = inputs.prepare(model, image)
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
        """Call `func`, and keep what a layer norm was given and has put out."""
        output = func(*args, **kwargs)
        if function_name(func) == "layer_norm":
            self._last = {**_DEFAULTS, **dict(zip(_LAYER_NORM, args, strict=False)), **kwargs}
            self._last["output"] = output
        return output

    def on_call(self, call: hooks.Call) -> None:
        """Record the wanted call, which ends the pass."""
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
