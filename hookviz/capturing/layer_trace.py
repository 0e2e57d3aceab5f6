"""Trace which layers and blocks a forward pass runs: in order of execution, with their shapes."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import MappingProxyType
from typing import Generic, TypeVar
from weakref import ref

from torch import Tensor, nn

from hookviz.capturing import layers
from hookviz.capturing.axes import arranged, laid_out, needs_passes, refolded
from hookviz.capturing.returned_call import CallTables, ReturnedCall, Shape, described
from hookviz.capturing.watched_pass import (
    FirstLook,
    FunctionTrace,
    WatchedPass,
    function_trace,
    watch,
)
from hookviz.errors import ModelError
from hookviz.hooking.channels_last import original
from hookviz.hooking.device import numbers
from hookviz.hooking.forward_pass import (
    find_dtype,
    forward_pass,
    pass_without_data,
    private_replica,
)
from hookviz.hooking.modules import named_modules
from hookviz.hooking.network_state import Findings, is_shared
from hookviz.types import UNKNOWN, ActivationKey, LayerInfo, Layout, Model, ModelInput, Preprocess
from hookviz.weights_digest import fingerprint

_MOST_TRACES = 8  # input shapes, and inputs, per network that are remembered

_Calls = Sequence[ReturnedCall]

_Value = TypeVar("_Value")


@dataclass(frozen=True, eq=False)
class _Listing:
    """Layers and blocks that a pass ran; the attributes as `LayerTrace` has them."""

    layers: tuple[LayerInfo, ...]
    convs: tuple[LayerInfo, ...]
    convs_and_linears: tuple[LayerInfo, ...]
    maps: tuple[LayerInfo, ...]
    every: tuple[LayerInfo, ...]
    map_outputs: Mapping[str, tuple[ActivationKey, ...]]
    layouts: Mapping[ActivationKey, Layout]
    shapes: Mapping[ActivationKey, Shape]
    taken: Mapping[ActivationKey, Layout]
    scores: int
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
    def shown_outputs(self) -> Mapping[str, tuple[ActivationKey, ...]]:
        """`map_outputs` of `shown`."""
        return {**self.map_outputs, **self.functions.map_outputs}

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
        return layers.numbered(listed, {each.name: each.calls for each in listed})

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


class _RunModules:
    """Modules that a pass ran as plain data, which keeps none of them in memory.

    Attributes:
        leaves: names of those without parts.
        parameters: how many numbers each of these learned.
    """

    def __init__(self, network: nn.Module, names: Iterable[str]) -> None:
        """Describe those of these names."""
        modules, ran = dict(named_modules(network)), frozenset(names)
        self.leaves = layers.leaf_names(network) & ran
        self.parameters = layers.parameter_counts(network, self.leaves)
        self._shown = layers.names_outside_of_layers(network)
        self._convs = layers.conv_names(network)
        self._linears = layers.linear_names(network)
        self._infos = {}
        for name in ran:
            parameters = layers.parameters_inside(modules[name])
            self._infos[name] = layers.describe(name, modules[name], (), (), parameters)

    def listing(
        self,
        calls: Sequence[ReturnedCall],
        dimensions: int,
        functions: FunctionTrace,
        scores: int,
    ) -> _Listing:
        """List them by the layouts that their calls have.

        Args:
            calls: in order of return.
            dimensions: how many axes the network's input has, its batch included.
            functions: of the same pass.
            scores: how many class scores the network puts out.
        """
        tables = CallTables(calls, dimensions)
        first, counts = tables.first, tables.counts
        leaves = layers.numbered(
            (
                replace(described(self._infos[name], call), parameters=self.parameters[name])
                for name, call in first.items()
                if name in self.leaves
            ),
            counts,
        )
        maps = {name: at for name, at in tables.map_outputs.items() if name in self._shown}
        weighted = self._convs | self._linears.intersection(maps)
        begun = layers.in_order_of_beginning(call.layer for call in calls)
        infos = [self._infos[name] for name in sorted(first, key=begun.__getitem__)]
        with_maps = (
            described(info, *tables.first_maps[info.name]) for info in infos if info.name in maps
        )
        every = (
            described(info, first[info.name])
            for info in infos
            if info.name in self._shown
            if info.name in self.leaves or first[info.name].shapes
        )
        return _Listing(
            leaves,
            layers.numbered((each for each in leaves if each.name in self._convs), counts),
            layers.numbered((each for each in leaves if each.name in weighted), counts),
            layers.numbered(with_maps, counts),
            layers.numbered(every, counts),
            MappingProxyType(maps),
            MappingProxyType({**tables.layouts, **functions.layouts}),
            MappingProxyType({**tables.shapes, **functions.shapes}),
            MappingProxyType({**tables.taken, **functions.taken}),
            scores,
            functions,
        )


class _Listed(Generic[_Value]):
    """Attribute of a trace's listing, for which passes are made where the layouts need them."""

    def __init__(self, read: Callable[[_Listing], _Value]) -> None:
        self._read = read

    def __get__(self, trace: "LayerTrace", owner: type) -> _Value:
        return self._read(trace.listing)


class LayerTrace:
    """Layers that a network runs at one input shape, in order of execution, with their shapes.

    One pass tells what ran. Where that leaves open how some output lies, the first look at `layers`
    or at what stands below it here makes up to two more passes: never look at those within a pass.
    They need the network, which a trace does not keep in memory.

    Attributes:
        calls: how often each module runs, containers included, by name in order of first return.
        leaf_calls: how often each module without parts runs.
        nbytes: float32 bytes of everything that each module puts out in one pass.
        overwritten: modules of the catalog's whose output something writes into later, such as an
            in-place ReLU; what a hook holds of them has to be copied at once.
        sequence: the module of every call, in order of return.
        passed_on: of these the turns whose call returned what the one before it did, as it was.
        unlike: of modules whose output is no ordinary tensor, what kind it is, in words.
        scores: how many class scores the network puts out; 0 where it puts out something else.
        keeps_batch: whether all that it puts out has as many rows as there are images.
        is_static: whether the pass read no value of a tensor, so that every input of this shape
            runs the same calls.
        functions: activations and poolings that are no modules: functions that the code calls.
        layers: every module without parts that runs, in order of execution.
        convs_and_linears: convolutions, and linear layers that put out maps, as over tokens.
        maps: every module that puts out maps, blocks such as ``layer1`` too, in the order in which
            they begin: a block stands before its parts.
        every: the layers, and every block of them that puts out a tensor, in the order in which
            they begin.
        map_outputs: where each of `maps` puts out maps: its calls, and parts of what they return.
        layouts: how each output lies.
        shapes: of each output without its batch, ``(C, H, W)`` of maps.
        taken: how the first tensor lay that each call was given, by the call.
        shown: `maps`, and functions that put out maps among them: all that can be looked at.
        listed: `layers`, and functions among them.
        shown_outputs: `map_outputs` of `shown`.
        hidden: layers before the first one whose channels are the classes themselves.
    """

    layers = _Listed(lambda listing: listing.layers)
    convs_and_linears = _Listed(lambda listing: listing.convs_and_linears)
    maps = _Listed(lambda listing: listing.maps)
    every = _Listed(lambda listing: listing.every)
    map_outputs = _Listed(lambda listing: listing.map_outputs)
    layouts = _Listed(lambda listing: listing.layouts)
    shapes = _Listed(lambda listing: listing.shapes)
    taken = _Listed(lambda listing: listing.taken)
    shown = _Listed(lambda listing: listing.shown)
    listed = _Listed(lambda listing: listing.listed)
    shown_outputs = _Listed(lambda listing: listing.shown_outputs)
    hidden = _Listed(lambda listing: listing.hidden)

    def __init__(
        self, network: nn.Module, watched: WatchedPass, arrange: Callable[[_Calls], _Calls] | None
    ) -> None:
        """Take a pass of the network.

        Args:
            network: whose pass it is.
            watched: that pass.
            arrange: returns its calls with the layouts of all outputs, by more passes; None where
                the pass tells them.
        """
        self.sequence = tuple(call.layer for call in watched.calls)
        self.calls: Mapping[str, int] = MappingProxyType(Counter(self.sequence))
        self.functions = function_trace(self.sequence, watched.functions, len(watched.shape) + 1)
        nbytes = Counter[str]()
        for call in watched.calls:
            nbytes[call.layer] += call.nbytes
        self.nbytes: Mapping[str, int] = MappingProxyType({**nbytes, **self.functions.nbytes})
        self.overwritten = watched.overwritten
        self.passed_on = watched.passed_on
        self.unlike: Mapping[str, str] = MappingProxyType(
            {call.layer: call.unlike for call in reversed(watched.calls) if call.unlike}
        )
        self.scores = watched.scores
        self.keeps_batch = watched.keeps_batch
        self.is_static = watched.is_static
        self._modules = _RunModules(network, self.sequence)
        leaves = self._modules.leaves
        self.leaf_calls = {name: self.calls[name] for name in self.calls if name in leaves}
        self._watched = watched
        self._arrange = arrange
        self._listing: _Listing | None = None
        self._is_refolded = bool(refolded(watched.shape, watched.calls))

    @property
    def listing(self) -> _Listing:
        """All that depends on how outputs lie; without a lock, so that passes can't wait for it."""
        if self._arrange is None:
            return self._as_watched
        if self._listing is None:
            self._listing = self._list(self._arrange(self._watched.calls))
        return self._listing

    @cached_property
    def _as_watched(self) -> _Listing:
        """As much of `listing` as its pass alone tells."""
        return self._list(laid_out(self._watched.calls, {}))

    @cached_property
    def _sure(self) -> frozenset[ActivationKey]:
        """Outputs of which the pass alone tells how they lie."""
        if self._is_refolded:
            return frozenset()
        calls = zip(self._watched.calls, self.turns, strict=True)
        outputs = (ActivationKey(*turn, path) for call, turn in calls for path in call.sure)
        return frozenset((*outputs, *self.functions.layouts))

    @cached_property
    def _sure_taken(self) -> frozenset[ActivationKey]:
        """Calls of which the pass alone tells how the first tensor lay that they were given."""
        if self._is_refolded:
            return frozenset()
        calls = zip(self._watched.calls, self.turns, strict=True)
        given = (ActivationKey(*turn) for call, turn in calls if call.is_taken_sure)
        return frozenset((*given, *self.functions.taken))

    def _list(self, calls: _Calls) -> _Listing:
        dimensions = len(self._watched.shape) + 1
        return self._modules.listing(calls, dimensions, self.functions, self.scores)

    @property
    def convs(self) -> tuple[LayerInfo, ...]:
        """The convolutions, which need no more passes, but for those over maps in another order."""
        return (self.listing if self._is_refolded else self._as_watched).convs

    @property
    def usual(self) -> tuple[LayerInfo, ...]:
        """Layers to look at first: the convolutions; of transformers blocks too, by more passes."""
        weighted = sum(self._modules.parameters[name] > 0 for name in self._modules.leaves)
        return self.convs if 5 * len(self.convs) >= weighted else self.listing.usual

    def address(self, layer: str) -> ActivationKey:
        """Return the call that a layer's name, or a written address such as ``relu#1``, is of."""
        return ActivationKey(layer) if layer in self.calls else ActivationKey.read(layer)

    def layout_of(self, address: ActivationKey) -> Layout:
        """Return how one output lies, by more passes only where its layer does not tell."""
        if self._listing is None and address in self._sure:
            return self._as_watched.layouts[address]
        return self.layouts.get(address, UNKNOWN)

    def taken_layout_of(self, address: ActivationKey) -> Layout:
        """Return how the first tensor lay that a call was given, as `layout_of`."""
        if self._listing is None and address in self._sure_taken:
            return self._as_watched.taken[address]
        return self.taken.get(address, UNKNOWN)

    @cached_property
    def recordable(self) -> Mapping[str, int]:
        """How often each module and each function runs, by name in order of first return."""
        if not self.functions.layers:
            return self.calls
        calls = {**self.calls, **self.functions.calls}
        return {name: calls[name] for name in self.functions.names}

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

    The pass of a network of the catalog is made without data, on torch's meta device, which takes
    milliseconds for the largest. A person's own is run on zeros; what it runs for a certain image
    tells `input_trace`. A class that opens one link at once waits for one pass: thirty in Python
    take thirty times as long.

    Raises:
        ModelError: the network can't take an input of that shape.
    """
    model, network = model.unedited, original(model.network)  # edits change no shapes
    known = _traces.of(network)
    key = shape, model.train, model.example
    trace = known.get(key)
    if trace is not None:
        return trace
    # A person's own network runs one pass at a time: whoever is in it would wait for its waiters.
    with known.one_at_a_time if is_shared(network) else nullcontext():
        return known.find(key, partial(_trace, model, shape))


def _trace(model: Model, shape: tuple[int, ...]) -> LayerTrace:
    with numbers():
        follow = partial(watch, notes_writes=is_shared(original(model.network)))
        return _traced(model, shape, pass_without_data(model, shape, follow))


def _traced(model: Model, shape: tuple[int, ...], watched: WatchedPass) -> LayerTrace:
    if not needs_passes(shape, watched.calls):
        return LayerTrace(model.network, watched, None)
    plain = replace(model, network=nn.Identity(), preprocess=Preprocess(1, 1), replaced={})
    arrange = partial(_arrange, ref(original(model.network)), plain, shape)
    return LayerTrace(model.network, watched, arrange)


def _arrange(
    network: ref[nn.Module], model: Model, shape: tuple[int, ...], calls: _Calls
) -> _Calls:
    """Arrange calls of a network that is kept in memory elsewhere."""
    own = network()
    if own is None:
        raise ReferenceError(f"{model.title} is gone: keep the model to look at its layers")
    with numbers():
        return arranged(replace(model, network=own), shape, calls)


def input_trace(model: Model, model_input: ModelInput, look: FirstLook | None = None) -> LayerTrace:
    """Trace a pass over this very input; where one runs for it, `look` records of it.

    Of the catalog's networks it is `layer_trace` of the input's shape, but where a path may depend
    on values: that is run once on the input itself. So is a network of one's own, whose trace
    serves every other input of the shape where its path depends on no values.

    Raises:
        ModelError: the network can't take this input.
    """
    images, model = model_input.tensor, model.unedited
    network, shape = original(model.network), tuple(images.shape[1:])
    known = _traces.of(network)
    by_shape = shape, model.train, model.example
    general = known.get(by_shape)
    if general is not None and general.is_static:
        return general
    weights = fingerprint(network, with_buffers=False), *map(id, model.replaced.values())
    by_input = model_input.digest, model.train, model.example, weights
    trace = known.get(by_input)
    if trace is not None:
        return trace
    if is_shared(network):
        with suppress(ModelError):  # where only zeros fail, the input still may not
            general = layer_trace(model, shape)
    elif len(images) == 1:
        trace = _traced(model, shape, _watched(model, images, look))
        return known.keep(by_shape if trace.is_static else by_input, trace)
    elif general is None:
        with suppress(ModelError):  # it may take no single image
            general = _traced(model, shape, _watched(model, images[:1]))
            known.keep(by_shape, general)
    if general is not None and general.is_static:
        return general
    arrange = None if general is None else partial(_arrange_as, general)
    return known.keep(by_input, LayerTrace(network, _watched(model, images), arrange))


def _watched(model: Model, images: Tensor, look: FirstLook | None = None) -> WatchedPass:
    with numbers(), private_replica(model) as replica:
        find_dtype(replica, tuple(images.shape[1:]))
        run = partial(forward_pass, model, replica)
        return watch(replica, images, run, look, notes_writes=is_shared(model.network))


def _arrange_as(general: LayerTrace, calls: _Calls) -> _Calls:
    """Arrange calls as those of a pass over another input of the shape."""
    return laid_out(calls, general.layouts)


def steps_after(trace: LayerTrace, layer: str) -> tuple[ActivationKey, ...]:
    """Return the calls of layers between a conv layer's first call and the next conv layer's.

    Those that put out maps, ``(C, H, W)``, of as many channels: batch norm, activation, pooling,
    dropout, as the pass runs them, be they modules or functions. What a network computes between
    them, such as the sum with a shortcut, shows in the next of them. Of a linear layer they are
    those that put their channels last, as it does, up to the next layer of weights.
    """
    layers = {info.name: info for info in trace.listed}
    last = trace.layouts.get(ActivationKey(layer), UNKNOWN).last
    ends = {info.name for info in (trace.convs_and_linears if last else trace.convs)}
    if (layer, 0) not in trace.order or len(layers[layer].output_shape) != 3:
        return ()
    calls = list(trace.order)
    steps = []
    for name, call in calls[trace.order[layer, 0] + 1 :]:
        if name in ends:
            break
        step = ActivationKey(name, call)
        shape = trace.shapes.get(step, ()) if name in layers else ()
        is_alike = trace.layouts.get(step, UNKNOWN).last == last
        if len(shape) == 3 and shape[0] == layers[layer].output_shape[0] and is_alike:
            steps.append(step)
    return tuple(steps)
