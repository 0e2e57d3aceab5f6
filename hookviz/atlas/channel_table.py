"""Number the channels of the layers that an atlas is of in one row."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from hookviz.capturing import reading_ahead
from hookviz.capturing.inputs import own_shape
from hookviz.capturing.layer_trace import LayerTrace, input_trace
from hookviz.capturing.wanted_layers import wanted_layers
from hookviz.errors import ModelError, SettingError
from hookviz.language.saying import say
from hookviz.types import UNKNOWN, ActivationKey, Layout, Model


@dataclass(frozen=True, slots=True)
class LayerChannels:
    """Channels of one output of one call of a layer among those of all.

    Attributes:
        address: ``conv1``, or ``conv1#1`` for a second call, as captures have it.
        first: row of its channel 0 among all channels.
        channels: how many there are.
        cells: rows and columns of its maps for the model's own input; one row where it puts out
            lines, ``(C, L)``.
        dimensions: of its maps without the batch: 3, and 2 of lines.
        layout: how its output has these maps: channels first, or last, or in tokens.
    """

    address: str
    first: int
    channels: int
    cells: tuple[int, int]
    dimensions: int = 3
    layout: Layout = UNKNOWN

    @property
    def name(self) -> str:
        """Name of the layer, without the call."""
        return ActivationKey.read(self.address).layer

    @property
    def rows(self) -> slice:
        """Rows of its channels among all."""
        return slice(self.first, self.first + self.channels)


@dataclass(frozen=True)
class ChannelTable:
    """Channels of every layer that an atlas is of, in order of execution.

    Attributes:
        layers: one for each output of each call of each layer.
        input_shape: of the input whose pass listed them, ``(C, H, W)``.
    """

    layers: tuple[LayerChannels, ...]
    input_shape: tuple[int, ...] = ()

    @property
    def channels(self) -> int:
        """Number of channels in all layers."""
        return sum(layer.channels for layer in self.layers)

    @cached_property
    def by_address(self) -> Mapping[str, LayerChannels]:
        """Layers by their written addresses."""
        return {layer.address: layer for layer in self.layers}


def channel_table(
    trace: LayerTrace,
    names: Collection[str] | None = None,
    input_shape: tuple[int, ...] = (),
) -> ChannelTable:
    """List the channels of layers that put out maps or lines, and leave out what is neither.

    Args:
        trace: of a pass.
        names: of the layers; None for those that the page lists first, `LayerTrace.usual`.
        input_shape: of that pass's input, ``(C, H, W)``.
    """
    listed = trace.usual if names is None else [each for each in trace.maps if each.name in names]
    layers: list[LayerChannels] = []
    first = 0
    for address in (address for layer in listed for address in _outputs(trace, layer.name)):
        channels, *cells = trace.shapes[address]
        rows, columns = (1, *cells)[-2:]
        layout = trace.layouts.get(address, UNKNOWN)
        layers.append(
            LayerChannels(str(address), first, channels, (rows, columns), len(cells) + 1, layout)
        )
        first += channels
    return ChannelTable(tuple(layers), input_shape)


def _outputs(trace: LayerTrace, name: str) -> tuple[ActivationKey, ...]:
    """Return where a layer puts out maps, or lines; a volume is neither."""
    found = trace.map_outputs.get(name, ())
    return tuple(address for address in found if len(trace.shapes[address]) in (2, 3))


def check_takes_images(model: Model) -> None:
    """Check that a model takes images.

    Raises:
        ModelError: it takes something else.
    """
    if len(own_shape(model)) != 3:
        raise ModelError(
            say("{model} takes no images, so there is no atlas of it.", model=model.title)
        )


def trace_by(model: Model, image: object, size: int | None) -> tuple[LayerTrace, tuple[int, ...]]:
    """Trace the pass of one image, at that size if one is given, and return its input's shape too.

    Raises:
        ModelError: the network can't take it.
        HookVizError: it can't be read.
    """
    _, model_input, _ = reading_ahead.read(model, image, size)
    return input_trace(model, model_input), tuple(model_input.tensor.shape[1:])


def table_by(model: Model, image: object, size: int | None) -> ChannelTable:
    """List the channels of the layers that the page lists first, by the pass of one image.

    Raises:
        ModelError: the network can't take it.
        HookVizError: it can't be read.
    """
    trace, input_shape = trace_by(model, image, size)
    return channel_table(trace, input_shape=input_shape)


def names_with_maps(
    model: Model, trace: LayerTrace, layers: str | Iterable[str] | None
) -> tuple[str, ...] | None:
    """Return the layers asked for, once each; None for those that the page lists first.

    Raises:
        UnknownLayerError: the model has no layer of that name.
        SettingError: no layer is named, or something that is no name.
        ModelError: one of them puts out no maps.
    """
    if layers is None:
        return None
    names = wanted_layers(model, trace, layers)
    if not names:
        raise SettingError(say("No layer is named in layers; list_layers tells the names."))
    for name in names:
        if not _outputs(trace, name):
            raise _no_maps(model, trace, name)
    return names


def _no_maps(model: Model, trace: LayerTrace, name: str) -> ModelError:
    """Return the error for a layer without maps, which names the one that runs next to it."""
    turns = {layer: turn for (layer, call), turn in trace.turns.items() if not call}
    others = [layer.name for layer in trace.maps if _outputs(trace, layer.name)]
    if not others:
        return no_channels(model)
    if name in trace.functions.calls:
        return ModelError(
            say(
                "{layer} is a function in the network's code: an atlas is made of layers. Take the "
                "layer before it.",
                layer=name,
            )
        )
    return ModelError(
        say(
            "Layer {layer!r} of {model} puts out no maps, or nobody knows which of its axes are "
            "channels, rows and columns, so no atlas can take it. Layer {near!r}, which runs next "
            "to it, will do.",
            layer=name,
            model=model.title,
            near=min(others, key=lambda other: abs(turns[other] - turns[name])),
        )
    )


def no_channels(model: Model) -> ModelError:
    """Return the error for a network without layers that have maps."""
    return ModelError(say("{model} has no layer whose maps could be looked at.", model=model.title))
