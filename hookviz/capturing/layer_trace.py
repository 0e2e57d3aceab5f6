"""Trace which layers a forward pass runs: in order of execution, with their shapes."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from hookviz.capturing import layers
from hookviz.capturing.layouts import Layouts
from hookviz.capturing.returned_call import Outputs, ReturnedCall, check_same_way, returned_call
from hookviz.errors import ModelError
from hookviz.hooking import hooks, purity
from hookviz.hooking.default_device import numbers
from hookviz.hooking.forward_pass import forward_pass, pass_without_data, private_replica
from hookviz.hooking.recorder import Recorder
from hookviz.hooking.torch_functions import not_followed
from hookviz.types import Address, LayerInfo, Model, ModelInput

_MOST_TRACES = 8  # input shapes, and inputs, per network that are remembered


@dataclass(frozen=True, eq=False)
class LayerTrace:
    """Layers that a network runs at one input shape, in order of execution, with their shapes.

    Attributes:
        calls: how often each module runs, containers included, by name in order of first return.
        nbytes: float32 bytes of everything that each module puts out in one pass.
        layers: every module without parts that runs, in order of execution.
        convs: those of them that are convolutions.
        maps: every module that puts out maps, blocks such as ``layer1`` too, in the order in which
            they begin: a block stands before its parts.
        every: the layers, and every block of them that puts out a tensor, in the order in which
            they begin.
        map_outputs: where each of `maps` puts out maps: its calls, and parts of what they return.
        overwritten: modules whose output something writes into later in the pass, such as an
            in-place ReLU; what a hook holds of them has to be copied at once.
        sequence: the module of every call, in order of return.
        passed_on: of these the turns whose call returned what the one before it did, as it was.
        unbatched: outputs that have no batch, as a convolution's that was called without.
        channels_last: outputs whose last dimension is the channels.
        unlike: of modules whose output is no ordinary tensor, what kind it is, in words.
        scores: how many class scores the network puts out; 0 where it puts out something else.
        is_pure: whether every image takes this very way, and version counters tell every
            write (see `hookviz.hooking.purity`).
    """

    calls: Mapping[str, int]
    nbytes: Mapping[str, int]
    layers: tuple[LayerInfo, ...]
    convs: tuple[LayerInfo, ...]
    maps: tuple[LayerInfo, ...]
    every: tuple[LayerInfo, ...]
    map_outputs: Mapping[str, tuple[Address, ...]]
    overwritten: frozenset[str]
    sequence: tuple[str, ...]
    passed_on: frozenset[int]
    unbatched: frozenset[Address]
    channels_last: frozenset[Address]
    unlike: Mapping[str, str]
    scores: int
    is_pure: bool

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


_traces: MutableMapping[nn.Module, dict[tuple[int, ...] | str, LayerTrace]] = WeakIdKeyDictionary()
_lock = threading.Lock()


def layer_trace(model: Model, shape: tuple[int, ...]) -> LayerTrace:
    """Trace a pass over an input of `shape`, ``(C, H, W)``; remembered per network.

    The pass is made without data, on torch's meta device, which takes milliseconds for the
    largest model. A person's own code, and a network whose path depends on values, is run on zeros
    instead; what it runs for a certain image tells `input_trace`.

    Raises:
        ModelError: the network can't take an input of that shape.
    """
    with _lock:
        known = _traces.setdefault(model.network, {})
        if shape in known:
            return known[shape]
    with numbers():
        trace = pass_without_data(model, shape, _pass_in_general)
    purity.record_purity(model.network, is_pure=trace.is_pure)
    return _remember(known, shape, trace)


def steps_after(trace: LayerTrace, layer: str) -> tuple[Address, ...]:
    """Return the calls of layers between a conv layer's first call and the next conv layer's.

    Those that put out maps, ``(C, H, W)``, of as many channels: batch norm, activation, pooling,
    dropout, as the pass runs them. What a network computes between modules, such as the sum with a
    shortcut, shows in the next of them.
    """
    layers = {info.name: info for info in trace.layers}
    convs = {info.name for info in trace.convs}
    if (layer, 0) not in trace.turns or len(layers[layer].output_shape) != 3:
        return ()
    calls = list(trace.turns)
    steps = []
    for name, call in calls[trace.turns[layer, 0] + 1 :]:
        if name in convs:
            break
        shape = layers[name].output_shape if name in layers else ()
        step = Address(name, call)
        is_last = step in trace.channels_last
        if len(shape) == 3 and shape[0] == layers[layer].output_shape[0] and not is_last:
            steps.append(step)
    return tuple(steps)


def input_trace(model: Model, model_input: ModelInput) -> LayerTrace:
    """Trace a pass over this very input.

    It is `layer_trace` of the input's shape, but for a network whose path may depend on
    values: that is run once on the input itself.

    Raises:
        ModelError: the network can't take this input.
    """
    with suppress(ModelError):  # where only zeros fail, the input still may not
        general = layer_trace(model, tuple(model_input.tensor.shape[1:]))
        if general.is_pure:
            return general
    with _lock:
        known = _traces.setdefault(model.network, {})
        if model_input.digest in known:
            return known[model_input.digest]
    with numbers(), private_replica(model) as replica:
        trace = _pass_over(
            replica, model_input.tensor, lambda images: forward_pass(model, replica, images)
        )
    return _remember(known, model_input.digest, trace)


def _remember(
    known: dict[tuple[int, ...] | str, LayerTrace], key: tuple[int, ...] | str, trace: LayerTrace
) -> LayerTrace:
    with _lock:
        while len(known) >= _MOST_TRACES:
            known.pop(next(iter(known)))
        known[key] = trace
    return trace


def _pass_in_general(network: nn.Module, images: Tensor) -> LayerTrace:
    """Trace a pass without an image, and tell whether every image runs the same layers."""
    watched = purity.Purity(network)
    if images.is_meta:
        with watched:
            trace = _pass_over(network, images)
    else:
        # A transformer encoder takes another way where it is watched, so there are two passes;
        # and where its ways differ, nobody knows which one an image takes.
        trace = _pass_over(network, images.clone())
        if not watched.as_before:  # it may be again after the second
            return trace
        try:
            with watched:
                again = _pass_over(network, images)
        except Exception:  # noqa: BLE001 - it went through without being watched
            return trace
        if (again.sequence, again.nbytes) != (trace.sequence, trace.nbytes):
            return trace
    return replace(trace, is_pure=watched.was_pure)


def _pass_over(
    network: nn.Module, images: Tensor, run: Callable[[Tensor], Any] | None = None
) -> LayerTrace:
    modules = dict(network.named_modules())
    modules.pop("")
    seen: list[ReturnedCall] = []
    recorder, outputs, passed_on = Recorder(), Outputs(), set[int]()
    layouts = Layouts()

    def see(call: hooks.Call) -> None:
        with not_followed():
            recorder.see(call)
            module = modules[call.layer]
            check_same_way(call, module, images)
            seen.append(returned_call(call, module, images, layouts))
            if outputs.passes_on(call.output):
                passed_on.add(len(seen) - 1)

    with hooks.observe(network, modules, see):
        output = (run or network)(images)

    calls: dict[str, int] = {}
    nbytes: dict[str, int] = {}
    map_outputs: dict[str, tuple[Address, ...]] = {}
    unbatched, channels_last = set[Address](), set[Address]()
    listed: list[LayerInfo] = []
    with_maps: list[LayerInfo] = []
    with_blocks: list[LayerInfo] = []
    leaves = layers.leaf_names(network)
    shown = layers.names_outside_of_layers(network)
    kept = frozenset(layers.conv_names(network))
    counts = layers.parameter_counts(network, leaves.intersection(call.layer for call in seen))
    for call in seen:
        name, module = call.layer, modules[call.layer]
        calls[name] = calls.get(name, 0) + 1
        nbytes[name] = nbytes.get(name, 0) + call.nbytes
        unbatched |= {Address(name, calls[name] - 1, path) for path in call.unbatched}
        channels_last |= {Address(name, calls[name] - 1, path) for path in call.channels_last}
        if calls[name] == 1 and name in leaves:
            listed.append(
                layers.describe(name, module, call.input_shape, call.output_shape, counts[name])
            )
        if name not in shown:
            continue
        numbers = layers.parameters_inside(module)
        if calls[name] == 1 and (call.has_tensor or name in leaves):
            with_blocks.append(
                layers.describe(name, module, call.input_shape, call.output_shape, numbers)
            )
        if not call.maps:
            continue
        if name not in map_outputs:
            shape = next(iter(call.maps.values()))
            with_maps.append(layers.describe(name, module, call.input_shape, shape, numbers))
        addresses = (Address(name, calls[name] - 1, path) for path in call.maps)
        map_outputs[name] = (*map_outputs.get(name, ()), *addresses)
    numbered = layers.numbered(listed, calls)
    begun = layers.in_order_of_beginning(call.layer for call in seen)
    return LayerTrace(
        MappingProxyType(calls),
        MappingProxyType(nbytes),
        numbered,
        layers.numbered((layer for layer in numbered if layer.name in kept), calls),
        layers.numbered(sorted(with_maps, key=lambda layer: begun[layer.name]), calls),
        layers.numbered(sorted(with_blocks, key=lambda layer: begun[layer.name]), calls),
        MappingProxyType(map_outputs),
        recorder.overwritten_layers(),
        tuple(call.layer for call in seen),
        frozenset(passed_on),
        frozenset(unbatched),
        frozenset(channels_last),
        MappingProxyType({call.layer: call.unlike for call in reversed(seen) if call.unlike}),
        output.shape[1] if isinstance(output, Tensor) and output.ndim == 2 else 0,
        is_pure=False,
    )
