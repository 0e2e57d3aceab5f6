"""Hold what a script depends on: network and image, a picture of channels, a lens's numbers."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol

import numpy as np
from torch import nn

from hookviz.capturing.layer_trace import layer_trace
from hookviz.capturing.layers import leaf_names
from hookviz.drawing.grid import Grid
from hookviz.errors import HookVizError
from hookviz.hooking.network_state import Findings
from hookviz.models import architectures
from hookviz.models.bundled import BUNDLED
from hookviz.models.catalog import find_source
from hookviz.models.model_source import ModelSource, ScriptCalls
from hookviz.outputs.answer import Output
from hookviz.types import UNKNOWN, ActivationKey, Layout, Model, Preprocess


@dataclass(frozen=True, kw_only=True, slots=True)
class NetworkFacts:
    """What any script begins with: a network, and the input that is made of an image.

    Attributes:
        model: its name in the catalog, or the name of one's own network.
        weights: ``"pretrained"``, ``"random"``, ``"own"``, or the name of a checkpoint's file.
        classes: how many classes a checkpoint's network tells apart.
        preprocess: the steps to the input; None where a function of one's own makes them.
        min_size: the smallest input side in pixels that the network is meant for.
        image: the image file's name; empty where the script needs none.
        size: side of the input in pixels; None for the model's own.
        whole: whether the input is the whole image.
        more_images: whether other images become inputs, too.
        train: whether one's own network is shown in training mode.
    """

    model: str
    weights: str = "pretrained"
    classes: int = 0
    preprocess: Preprocess | None
    min_size: int = 1
    image: str
    size: int | None = None
    whole: bool = False
    more_images: bool = False
    train: bool = False

    @property
    def origin(self) -> str:
        """Name of the source of models that has the architecture; ``"own"`` for one's own."""
        library = self._library
        return library.name if library else "own"

    @property
    def architecture(self) -> str:
        """Name of the architecture in the library that it comes from."""
        library = self._library
        return self._known_as.removeprefix(library.prefix if library else "")

    @property
    def library_calls(self) -> ScriptCalls | None:
        """How its library makes it; None where the lines for it stand in `hookviz.codegen`."""
        return self._library.script if self._library else None

    @property
    def _known_as(self) -> str:
        listed = find_source(self.model)
        return listed.same_architecture(self.model) if listed else self.model

    @property
    def _library(self) -> ModelSource | None:
        return None if self.weights == "own" else find_source(self._known_as)

    @property
    def is_shipped(self) -> bool:
        """Whether the weights are those in a file that ships with HookViz."""
        return self.model in BUNDLED and self.weights == "pretrained"

    @property
    def is_checkpoint(self) -> bool:
        """Whether the weights come from a person's own file."""
        return self.weights not in ("pretrained", "random", "own")


@dataclass(frozen=True, kw_only=True, slots=True)
class PictureFacts(NetworkFacts):
    """What a picture of channels depends on, beside the weights and the image themselves.

    Attributes:
        address: the layer, which of its calls, and which part of its output.
        layout: how that lies.
        depth: which slice of it is drawn, or frame; None of an image's maps.
        sort, top, scale: as for `make_grid`.
        colormap: what matplotlib calls it.
        columns: how many tiles stand side by side.
        magnification: pixels per cell, both ways.
        gap: pixels between tiles.
        channel: the one that is drawn alone as well, if any.
    """

    address: ActivationKey
    layout: Layout = UNKNOWN
    depth: int | None = None
    sort: str = "index"
    top: int | None = None
    scale: str
    colormap: str
    columns: int
    magnification: int
    gap: int
    channel: int | None = None


def network_facts(model: Model, image: str, *, size: int | None, whole: bool) -> dict[str, Any]:
    """Return the fields of `NetworkFacts`, by name."""
    own = NetworkFacts(
        model=model.name,
        weights=model.weights,
        preprocess=model.preprocess if isinstance(model.preprocess, Preprocess) else None,
        min_size=model.min_size,
        image=image,
        size=size,
        whole=whole,
        train=model.train,
    )
    if own.origin != "own" and own.is_checkpoint:
        own = replace(own, classes=architectures.classes_of(model.name, model.network))
    return {field.name: getattr(own, field.name) for field in fields(own)}


def picture_facts_of(
    model: Model,
    image: str,
    grid: Grid,
    *,
    size: int | None = None,
    whole: bool = False,
    channel: int | None = None,
) -> PictureFacts:
    """Return what a grid depends on that was made for `model` and the image file called `image`.

    Args:
        model: whose layer it shows.
        image: the file's name.
        grid: the picture, made of what `capture` gave.
        size: what `capture` was given.
        whole: what `capture` was given.
        channel: the one to draw alone as well.

    Raises:
        HookVizError: the grid was made of bare numbers, or does not show that channel.
    """
    if grid.address is None:
        raise HookVizError(
            "This grid was made of bare numbers, and no script can tell where they came from. Make "
            "it of what capture gives, for example make_grid(capture['conv1'])."
        )
    if channel is not None and channel not in grid.order:
        raise HookVizError(
            f"Channel {channel} is not in this grid: {grid.shown}, of channels 0 to "
            f"{grid.shape[0] - 1}. Make the grid without top= to have them all."
        )
    return PictureFacts(
        **network_facts(model, image, size=size, whole=whole),
        address=grid.address,
        layout=grid.layout,
        depth=grid.depth,
        sort=grid.sort,
        top=len(grid.order) if len(grid.order) < grid.shape[0] else None,
        scale=grid.limits.scale,
        colormap=grid.colormap.name,
        columns=grid.geometry.columns,
        magnification=grid.geometry.magnification,
        gap=grid.geometry.gap,
        channel=channel,
    )


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


class LensRun(Protocol):
    """The part of a `LensResult` that a script depends on: slug, parameters and numbers."""

    @property
    def lens(self) -> str: ...  # noqa: D102

    @property
    def chosen(self) -> Mapping[str, Any]: ...  # noqa: D102

    @property
    def values(self) -> Mapping[str, Any]: ...  # noqa: D102


def lens_facts_of(
    model: Model,
    image: str,
    result: LensRun,
    *,
    shape: tuple[int, ...],
    size: int | None = None,
    whole: bool = False,
) -> LensFacts:
    """Return what a lens's numbers depend on, for `model` and the image file called `image`.

    Args:
        model: the network that was looked at.
        image: the file's name.
        result: of the lens; the shapes of its numbers are kept.
        shape: ``(C, H, W)`` of the input.
        size: as for `run_lens`.
        whole: as for `run_lens`.
    """
    chosen, values = result.chosen, result.values
    trace = layer_trace(model, shape)
    layer = chosen.get("layer")
    output = trace.shapes.get(trace.address(layer), ()) if layer else ()
    fields = network_facts(model, image, size=size, whole=whole)
    # The pictures that a lens makes have a size of their own.
    size_seen = (*shape[:1], *np.shape(values["pictures"])[1:3]) if "pictures" in values else shape
    return LensFacts(
        **fields | {"more_images": bool(chosen.get("images"))},
        lens=result.lens,
        chosen=dict(chosen),
        values={name: np.shape(value) for name, value in values.items()},
        shape=shape,
        output=output,
        categories=model.categories,
        convs=tuple(conv.name for conv in trace.convs),
        convs_and_linears=tuple(each.name for each in trace.convs_and_linears),
        runs=tuple(each.name for each in trace.layers),
        structure=_structure(model.network),
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
    """Return which modules are layers; cached: the page asks on every click."""
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
