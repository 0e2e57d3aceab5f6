"""List the layers and blocks that a pass ran, with their shapes and how their outputs lie."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from torch import nn

from hookviz.capturing import layers
from hookviz.capturing.function_trace import FunctionTrace
from hookviz.capturing.returned_call import CallTables, ReturnedCall, Shape, described
from hookviz.hooking.modules import named_modules
from hookviz.types import ActivationKey, LayerInfo, Layout


@dataclass(frozen=True, eq=False)
class Listing:
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


class RunModules:
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
    ) -> Listing:
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
        return Listing(
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
