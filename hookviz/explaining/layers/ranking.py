"""Rank the input channels that matter most to a channel, and find the layer that they come from."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hookviz.capturing import layers
from hookviz.capturing.inputs import own_shape
from hookviz.errors import UnknownLayerError
from hookviz.explaining.layers.layer_call import LayerCall
from hookviz.hooking import hooks
from hookviz.hooking.forward_pass import pass_without_data
from hookviz.hooking.network_state import Findings
from hookviz.hooking.torch_functions import (
    ACTIVATIONS,
    NORMS,
    EveryFunction,
    TensorMarks,
    function_name,
    not_followed,
)
from hookviz.language.saying import say
from hookviz.types import ActivationKey, Model

_POOLS = frozenset(
    f"{kind}_pool2d" for kind in ("max", "avg", "lp", "adaptive_max", "adaptive_avg")
)
_COPIES = frozenset(("clone", "detach", "contiguous", "to", "float", "half", "double", "type_as"))
_KEEP_CHANNELS = (
    NORMS
    | ACTIVATIONS
    | _POOLS
    | _COPIES
    | {"dropout", "dropout2d", "feature_dropout", "local_response_norm", "interpolate", "pad"}
)
"""Functions that make channel k of their output from channel k of their first argument."""

_SCALE_CHANNELS = frozenset(
    f"{prefix}{kind}"
    for prefix in ("", "i", "r")
    for kind in ("add", "sub", "mul", "div", "truediv")
)
"""Arithmetic that keeps the channels where all but one operand are a number per channel."""

_sources = Findings[Mapping[str, str]](most=1)

Ranking = tuple[tuple[int, float], ...]
"""(input channel, amount), the largest first; channels are numbered as in the layer's input."""


def strongest_by_weight(call: LayerCall, channel: int) -> Ranking:
    """Rank the input channels of one output channel by the L2 norm of their slice of the kernel.

    ``√Σ w²`` over the taps: magnitude as a measure of what counts, as for whole filters in Li et
    al., "Pruning Filters for Efficient ConvNets" (2017), who take the L1 norm. A grouped layer's
    channel sees only its group's inputs.

    Raises:
        SettingError: the layer lacks that channel.
    """
    inputs = call.inputs_of(channel)
    return _ranked(inputs, call.kernel[channel].double().square().sum((1, 2)).sqrt())


def strongest_by_contribution(call: LayerCall, channel: int) -> Ranking:
    """Rank the input channels of one output channel by what they add to this image's map.

    ``mean over the map of |Σ over the taps of w · x|``: how far the map's cells would move on
    average, up or down, were that input channel zero.

    Raises:
        SettingError: the layer lacks that channel.
    """
    inputs = call.inputs_of(channel)
    with torch.no_grad():
        added = F.conv2d(  # one filter per input channel: what each adds by itself
            call.padded[None, inputs.start : inputs.stop],
            call.kernel[channel][:, None],
            stride=call.stride,
            dilation=call.dilation,
            groups=len(inputs),
        )
    return _ranked(inputs, added[0].abs().mean((1, 2), dtype=torch.float64))


def source_of(model: Model, layer: str) -> str | None:
    """Find the conv layer whose channels are `layer`'s input channels, one to one.

    Written as an address, ``"conv1"`` or ``"conv1#1"``. None where no layer is that source: the
    input is the image, or several maps were added, joined or mixed, or it differs from call to
    call of the layer.

    Raises:
        UnknownLayerError: a pass runs no conv layer of that name.
        ModelError: the network can't take an input of its own shape.
    """
    convs = layers.conv_names(model.network)
    if layer not in convs:
        raise UnknownLayerError(say("conv layer in {model}", model=model.title), layer, convs)
    return sources(model).get(layer)


def sources(model: Model) -> Mapping[str, str]:
    """Map every conv layer that has a source to that source, see `source_of`; cached per network.

    The pass behind it is made without data where the network can do so.

    Raises:
        ModelError: the network can't take an input of its own shape.
    """
    shape = own_shape(model)
    return _sources.of(model.network).find(
        shape, lambda: pass_without_data(model, shape, _trace_sources)
    )


def _trace_sources(network: nn.Module, image: Tensor) -> Mapping[str, str]:
    tracer = _SourceTracer()
    with hooks.observe(network, layers.conv_names(network), tracer.on_call), tracer:
        network(image)
    return MappingProxyType(
        {
            layer: str(next(iter(addresses)))
            for layer, addresses in tracer.sources_by_layer.items()
            if len(addresses) == 1 and None not in addresses
        }
    )


class _SourceTracer(EveryFunction):
    """Tracks which conv layer's channels each tensor of a pass has, if any.

    The result of a function that is not known to keep channels has no source.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sources_by_layer: dict[str, set[ActivationKey | None]] = {}
        self._sources = TensorMarks[ActivationKey](while_unwritten=True)

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        operands = [tensor for _, tensor in hooks.tensors_in((args, kwargs))]
        before = [(tensor.shape, self._sources.get(tensor)) for tensor in operands]
        output = func(*args, **kwargs)
        if isinstance(output, Tensor):
            source = _preserved_source(function_name(func), before, output.shape)
            if source is not None:
                self._sources[output] = source
        return output

    def on_call(self, call: hooks.Call) -> None:
        """Note the source of a conv layer's input, and the layer as the source of its output."""
        with not_followed():
            layer_input, output = (
                next((tensor for _, tensor in hooks.tensors_in(part)), None)
                for part in (call.inputs, call.output)
            )
            source = None if layer_input is None else self._sources.get(layer_input)
            self.sources_by_layer.setdefault(call.layer, set()).add(source)
            if output is not None:
                self._sources[output] = ActivationKey(call.layer, call.index)


def _preserved_source(
    name: str, operands: list[tuple[torch.Size, ActivationKey | None]], result: torch.Size
) -> ActivationKey | None:
    """Return the source whose channels a function's output keeps, from its operands."""
    if not operands or len(result) < 3:
        return None
    if name in _KEEP_CHANNELS or (name == "cat" and len(operands) == 1):
        shape, source = operands[0]
        return source if shape[:-2] == result[:-2] else None
    if name in _SCALE_CHANNELS:
        full = [source for shape, source in operands if shape == result]
        others = [shape for shape, _ in operands if shape != result]
        if len(full) == 1 and all(shape[-2:].numel() == 1 for shape in others):
            return full[0]
    return None


def _ranked(inputs: range, amounts: Tensor) -> Ranking:
    pairs = zip(inputs, amounts.tolist(), strict=True)
    return tuple(sorted(pairs, key=lambda pair: -pair[1]))
