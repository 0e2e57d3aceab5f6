"""Trace which layers a forward pass runs: in order of execution, with their shapes."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from torch import nn

from hookviz.capturing import layers
from hookviz.capturing.axes import arranged, laid_out
from hookviz.capturing.function_trace import FunctionTrace, function_trace
from hookviz.capturing.returned_call import (
    Path,
    ReturnedCall,
    Shape,
)
from hookviz.capturing.watched_pass import WatchedPass, watch, watch_in_general
from hookviz.errors import ModelError
from hookviz.hooking import purity
from hookviz.hooking.channels_last import original
from hookviz.hooking.default_device import numbers
from hookviz.hooking.findings import Findings
from hookviz.hooking.forward_pass import forward_pass, private_replica
from hookviz.hooking.shape_pass import pass_without_data
from hookviz.types import UNKNOWN, Address, LayerInfo, Layout, Model, ModelInput

_MOST_TRACES = 8  # input shapes, and inputs, per network that are remembered


@dataclass(frozen=True, eq=False)
class LayerTrace:
    """Layers that a network runs at one input shape, in order of execution, with their shapes.

    Attributes:
        calls: how often each module runs, containers included, by name in order of first return.
        nbytes: float32 bytes of everything that each module puts out in one pass.
        layers: every module without parts that runs, in order of execution.
        convs: those of them that are convolutions.
        convs_and_linears: these, and linear layers that put out maps, as over tokens.
        maps: every module that puts out maps, blocks such as ``layer1`` too, in the order in which
            they begin: a block stands before its parts.
        every: the layers, and every block of them that puts out a tensor, in the order in which
            they begin.
        map_outputs: where each of `maps` puts out maps: its calls, and parts of what they return.
        overwritten: modules whose output something writes into later in the pass, such as an
            in-place ReLU; what a hook holds of them has to be copied at once.
        sequence: the module of every call, in order of return.
        passed_on: of these the turns whose call returned what the one before it did, as it was.
        layouts: how each output lies.
        shapes: of each output without its batch, ``(C, H, W)`` of maps.
        taken: how the first tensor lay that each call was given, by the call.
        unlike: of modules whose output is no ordinary tensor, what kind it is, in words.
        scores: how many class scores the network puts out; 0 where it puts out something else.
        is_pure: whether every image takes this very way, and version counters tell every
            write (see `hookviz.hooking.purity`).
        functions: activations and poolings that are no modules: functions that the code calls.
    """

    calls: Mapping[str, int]
    nbytes: Mapping[str, int]
    layers: tuple[LayerInfo, ...]
    convs: tuple[LayerInfo, ...]
    convs_and_linears: tuple[LayerInfo, ...]
    maps: tuple[LayerInfo, ...]
    every: tuple[LayerInfo, ...]
    map_outputs: Mapping[str, tuple[Address, ...]]
    overwritten: frozenset[str]
    sequence: tuple[str, ...]
    passed_on: frozenset[int]
    layouts: Mapping[Address, Layout]
    shapes: Mapping[Address, Shape]
    taken: Mapping[Address, Layout]
    unlike: Mapping[str, str]
    scores: int
    is_pure: bool
    functions: FunctionTrace

    @cached_property
    def shown(self) -> tuple[LayerInfo, ...]:
        """`maps`, and functions that put out maps among them: all that can be looked at."""
        return self.functions.among(self.maps, self.functions.maps, blocks=True)

    @cached_property
    def listed(self) -> tuple[LayerInfo, ...]:
        """`layers`, and functions among them."""
        return self.functions.among(self.layers, self.functions.layers, blocks=False)

    @cached_property
    def shown_outputs(self) -> Mapping[str, tuple[Address, ...]]:
        """`map_outputs` of `shown`."""
        return {**self.map_outputs, **self.functions.map_outputs}

    @cached_property
    def recordable(self) -> Mapping[str, int]:
        """How often each module and each function runs, by name in order of first return."""
        if not self.functions.layers:
            return self.calls
        calls = {**self.calls, **self.functions.calls}
        return {name: calls[name] for name in self.functions.names}

    @cached_property
    def usual(self) -> tuple[LayerInfo, ...]:
        """Layers to look at first: the convolutions.

        Where those are fewer than a fifth of the layers with weights that put out maps, as in a
        transformer, blocks that put out maps stand among them.
        """
        weighted = sum(
            bool(layer.parameters) for layer in self.layers if layer.name in self.map_outputs
        )
        if 5 * len(self.convs) >= weighted:
            return self.convs
        convs, leaves = ({layer.name for layer in each} for each in (self.convs, self.layers))
        listed = [each for each in self.maps if each.name in convs or each.name not in leaves]
        return layers.numbered(listed, self.calls)

    @cached_property
    def hidden(self) -> tuple[LayerInfo, ...]:
        """Layers before the first one whose channels are the classes themselves.

        Such a layer is a convolution with a channel per class, and nothing that has weights or
        another number of channels runs after it: the scores are its maps, pooled.
        """
        last = next((layer for layer in reversed(self.layers) if layer.parameters), None)
        if last is None or not last.kernel_size or not self.scores:
            return self.layers
        ends = self.layers[last.index :]
        alike = all(layer.output_shape[:1] == (self.scores,) for layer in ends)
        return self.layers[: last.index] if alike and last.index else self.layers

    @cached_property
    def turns(self) -> Mapping[tuple[str, int], int]:
        """Turn at which each call returned, by layer and call: 0 for the first; in this order."""
        counts: Counter[str] = Counter()
        turns = {}
        for turn, name in enumerate(self.sequence):
            turns[name, counts[name]] = turn
            counts[name] += 1
        return turns

    @cached_property
    def order(self) -> Mapping[tuple[str, int], int]:
        """`turns` of modules and functions together."""
        return {call: turn for turn, call in enumerate(self.functions.order)}


_traces = Findings[LayerTrace](_MOST_TRACES)


def layer_trace(model: Model, shape: tuple[int, ...]) -> LayerTrace:
    """Trace a pass over an input of `shape`, ``(C, H, W)``; remembered per network.

    The pass is made without data, on torch's meta device, which takes milliseconds for the
    largest model. A person's own code, and a network whose path depends on values, is run on zeros
    instead; what it runs for a certain image tells `input_trace`.

    Raises:
        ModelError: the network can't take an input of that shape.
    """
    known = _traces.of(original(model.network))
    trace = known.get(shape)
    if trace is not None:
        return trace
    with numbers():
        watched = pass_without_data(model, shape, watch_in_general)
        purity.record_purity(model.network, is_pure=watched.is_pure)
        calls = arranged(model, shape, watched.calls)
        return known.keep(shape, _trace(model.network, replace(watched, calls=calls)))


def input_trace(model: Model, model_input: ModelInput) -> LayerTrace:
    """Trace a pass over this very input.

    It is `layer_trace` of the input's shape, but for a network whose path may depend on
    values: that is run once on the input itself.

    Raises:
        ModelError: the network can't take this input.
    """
    general = None
    with suppress(ModelError):  # where only zeros fail, the input still may not
        general = layer_trace(model, tuple(model_input.tensor.shape[1:]))
        if general.is_pure:
            return general
    known = _traces.of(original(model.network))
    trace = known.get(model_input.digest)
    if trace is not None:
        return trace
    with numbers(), private_replica(model) as replica:
        watched = watch(
            replica, model_input.tensor, lambda images: forward_pass(model, replica, images)
        )
    calls = watched.calls if general is None else laid_out(watched.calls, general.layouts)
    trace = _trace(model.network, replace(watched, calls=calls))
    return known.keep(model_input.digest, trace)


def _trace(network: nn.Module, watched: WatchedPass) -> LayerTrace:
    """List what a pass ran, and what of it puts out maps."""
    seen = watched.calls
    modules = dict(network.named_modules())
    calls: dict[str, int] = {}
    nbytes: dict[str, int] = {}
    map_outputs: dict[str, tuple[Address, ...]] = {}
    layouts: dict[Address, Layout] = {}
    shapes: dict[Address, Shape] = {}
    taken: dict[Address, Layout] = {}
    listed: list[LayerInfo] = []
    with_maps: list[LayerInfo] = []
    with_blocks: list[LayerInfo] = []
    leaves = layers.leaf_names(network)
    shown = layers.names_outside_of_layers(network)
    kept = frozenset(layers.conv_names(network))
    linears = layers.linear_names(network)
    counts = layers.parameter_counts(network, leaves.intersection(call.layer for call in seen))
    for call in seen:
        name, module = call.layer, modules[call.layer]
        calls[name] = calls.get(name, 0) + 1
        nbytes[name] = nbytes.get(name, 0) + call.nbytes
        addresses = {path: Address(name, calls[name] - 1, path) for path in call.layouts}
        layouts |= {addresses[path]: layout for path, layout in call.layouts.items()}
        shapes |= {addresses[path]: call.map_shape(path) for path in call.layouts}
        taken[Address(name, calls[name] - 1)] = call.taken_layout
        if calls[name] == 1 and name in leaves:
            listed.append(_described(module, call, counts[name]))
        if name not in shown:
            continue
        parameters = layers.parameters_inside(module)
        if calls[name] == 1 and (call.shapes or name in leaves):
            with_blocks.append(_described(module, call, parameters))
        maps = call.maps(watched.dimensions)
        if maps and name not in map_outputs:
            with_maps.append(_described(module, call, parameters, next(iter(maps))))
        if maps:
            found = (addresses[path] for path in maps)
            map_outputs[name] = (*map_outputs.get(name, ()), *found)
    numbered = layers.numbered(listed, calls)
    begun = layers.in_order_of_beginning(call.layer for call in seen)
    sequence = tuple(call.layer for call in seen)
    functions = function_trace(sequence, watched.functions, watched.dimensions)
    return LayerTrace(
        MappingProxyType(calls),
        MappingProxyType({**nbytes, **functions.nbytes}),
        numbered,
        layers.numbered((layer for layer in numbered if layer.name in kept), calls),
        layers.numbered(
            (each for each in numbered if each.name in kept | linears.intersection(map_outputs)),
            calls,
        ),
        layers.numbered(sorted(with_maps, key=lambda layer: begun[layer.name]), calls),
        layers.numbered(sorted(with_blocks, key=lambda layer: begun[layer.name]), calls),
        MappingProxyType(map_outputs),
        watched.overwritten,
        sequence,
        watched.passed_on,
        MappingProxyType({**layouts, **functions.layouts}),
        MappingProxyType({**shapes, **functions.shapes}),
        MappingProxyType({**taken, **functions.taken}),
        MappingProxyType({call.layer: call.unlike for call in reversed(seen) if call.unlike}),
        watched.scores,
        watched.is_pure,
        functions,
    )


def _described(
    module: nn.Module, call: ReturnedCall, parameters: int, path: Path | None = None
) -> LayerInfo:
    """Describe a layer by one of its outputs, the first one without a `path`."""
    path = next(iter(call.shapes), None) if path is None else path
    layout = UNKNOWN if path is None else call.layouts[path]
    shape = () if path is None else call.map_shape(path)
    return layers.describe(call.layer, module, call.input_shape, shape, parameters, layout=layout)
