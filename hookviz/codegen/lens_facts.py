"""Hold what the numbers of a lens depend on, from which its script is written."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import nn

from hookviz.capturing.layer_trace import layer_trace
from hookviz.capturing.layers import leaf_names
from hookviz.codegen.facts import NetworkFacts, network_facts
from hookviz.hooking.network_state import Findings
from hookviz.outputs.answer import Output
from hookviz.types import UNKNOWN, ActivationKey, Layout, Model

LensCode = tuple[str, dict[str, str]]
"""What a lens's ``script`` returns: lines of code, and for each value the expression that has it.

The lines find ``model`` in eval mode and ``batch``, ``(1, C, H, W)``.
"""


@dataclass(frozen=True, slots=True)
class Structure:
    """Names of a network's modules that count as layers.

    Attributes:
        layers: what a person would call a layer, in the network's own order.
        without_parts: those that have no modules inside.
        with_weights: those that have parameters of their own beside the modules inside.
    """

    layers: tuple[str, ...]
    without_parts: frozenset[str]
    with_weights: frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class LensFacts(NetworkFacts):
    """What the numbers of a lens depend on, beside the weights and the image themselves.

    Attributes:
        lens: its slug.
        chosen: the parameters that it ran with, defaults filled in.
        values: what its numbers are called, with their shapes.
        shape: ``(C, H, W)`` of the input.
        output: the shape of what the chosen layer puts out, without the batch.
        categories: the classes' names.
        convs: the conv layers that run, in order of execution.
        convs_and_linears: these, and linear layers that put out maps.
        runs: the layers that run, in order of execution.
        structure: which of the network's modules are layers.
        layouts: by a layer's name, how its maps lie, or what its first call puts out; by written
            address, what its other calls do.
        means: what the network's output is.
    """

    lens: str
    chosen: Mapping[str, Any]
    values: Mapping[str, tuple[int, ...]]
    shape: tuple[int, ...]
    output: tuple[int, ...] = ()
    categories: tuple[str, ...]
    convs: tuple[str, ...]
    convs_and_linears: tuple[str, ...]
    runs: tuple[str, ...]
    structure: Structure
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    means: Output = field(default_factory=Output)

    @property
    def layout(self) -> Layout:
        """How what the chosen layer puts out lies."""
        return self.layouts.get(str(self.chosen.get("layer")), UNKNOWN)


def lens_facts_of(
    model: Model,
    image: str,
    lens: str,
    chosen: Mapping[str, Any],
    values: Mapping[str, Any],
    *,
    shape: tuple[int, ...],
    size: int | None = None,
    whole: bool = False,
) -> LensFacts:
    """Return what a lens's numbers depend on, for `model` and the image file called `image`.

    Args:
        model: the network that was looked at.
        image: the file's name.
        lens: the lens's slug.
        chosen: its parameters, as `LensResult.chosen` has them.
        values: its numbers, as `LensResult.values` has them; their shapes are kept.
        shape: ``(C, H, W)`` of the input.
        size: what `run_lens` was given.
        whole: what `run_lens` was given.
    """
    trace, structure = layer_trace(model, shape), _structure(model.network)
    layer = chosen.get("layer")
    output = trace.shapes.get(trace.address(layer), ()) if layer else ()
    fields = network_facts(model, image, size=size, whole=whole)
    # The pictures that a lens makes have a size of their own.
    size_seen = (*shape[:1], *np.shape(values["pictures"])[1:3]) if "pictures" in values else shape
    return LensFacts(
        **fields | {"more_images": bool(chosen.get("images"))},
        lens=lens,
        chosen=dict(chosen),
        values={name: np.shape(value) for name, value in values.items()},
        shape=shape,
        output=output,
        categories=model.categories,
        convs=tuple(conv.name for conv in trace.convs),
        convs_and_linears=tuple(each.name for each in trace.convs_and_linears),
        runs=tuple(each.name for each in trace.layers),
        structure=structure,
        layouts=_layouts(model, size_seen) if layer else {},
        means=model.output,
    )


def _layouts(model: Model, shape: tuple[int, ...]) -> dict[str, Layout]:
    trace = layer_trace(model, shape)
    shown = {str(address): address for address in (ActivationKey(*turn) for turn in trace.turns)}
    shown |= {name: trace.map_outputs.get(name, (ActivationKey(name),))[0] for name in trace.calls}
    return {name: trace.layouts.get(address, UNKNOWN) for name, address in shown.items()}


_structures = Findings[Structure](most=1)


def _structure(network: nn.Module) -> Structure:
    """Return which modules are layers; remembered, since the page asks again at modules click."""
    return _structures.of(network).find("structure", lambda: _structure_now(network))


def _structure_now(network: nn.Module) -> Structure:
    leaves = leaf_names(network)
    modules = {name: module for name, module in network.named_modules() if name}
    single = {name for name, module in modules.items() if not any(module.children())}
    holding = {name for name, each in modules.items() if list(each.parameters(recurse=False))}
    return Structure(
        layers=tuple(name for name in modules if name in leaves),
        without_parts=frozenset(single),
        with_weights=frozenset(holding - single),
    )
