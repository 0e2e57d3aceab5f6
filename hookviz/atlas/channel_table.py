"""Number the channels of all conv layers of a network in one row."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from hookviz.atlas import reading_ahead
from hookviz.capturing.layer_trace import LayerTrace, input_trace
from hookviz.errors import ModelError
from hookviz.hooking.forward_pass import own_shape
from hookviz.language.saying import say
from hookviz.types import Address, Model


@dataclass(frozen=True, slots=True)
class LayerChannels:
    """Channels of one call of a conv layer among those of all.

    Attributes:
        address: ``conv1``, or ``conv1#1`` for a second call, as captures have it.
        first: row of its channel 0 among all channels.
        channels: how many there are.
        cells: rows and columns of its maps for the model's own input; one row where it puts out
            lines, ``(C, L)``.
        dimensions: of its output without the batch: 3 for maps, 2 for lines.
    """

    address: str
    first: int
    channels: int
    cells: tuple[int, int]
    dimensions: int = 3

    @property
    def name(self) -> str:
        """Name of the layer, without the call."""
        return Address.read(self.address).layer

    @property
    def rows(self) -> slice:
        """Rows of its channels among all."""
        return slice(self.first, self.first + self.channels)


@dataclass(frozen=True)
class ChannelTable:
    """Channels of every conv layer, in order of execution.

    Attributes:
        layers: one for each call of each conv layer.
    """

    layers: tuple[LayerChannels, ...]

    @property
    def channels(self) -> int:
        """Number of channels in all layers."""
        return sum(layer.channels for layer in self.layers)

    @cached_property
    def by_address(self) -> Mapping[str, LayerChannels]:
        """Layers by their written addresses."""
        return {layer.address: layer for layer in self.layers}


def channel_table(trace: LayerTrace) -> ChannelTable:
    """List the channels of every conv layer that puts out maps or lines, and leave out others."""
    layers: list[LayerChannels] = []
    first = 0
    for conv in trace.convs:
        shape = conv.output_shape
        if len(shape) not in (2, 3):
            continue
        cells = (1, *shape[1:])[-2:]
        for call in range(conv.calls):
            address = str(Address(conv.name, call))
            layers.append(LayerChannels(address, first, shape[0], (cells[0], cells[1]), len(shape)))
            first += shape[0]
    return ChannelTable(tuple(layers))


def check_takes_images(model: Model) -> None:
    """Check that a model takes images.

    Raises:
        ModelError: it takes something else.
    """
    if len(own_shape(model)) != 3:
        raise ModelError(
            say("{model} takes no images, so there is no atlas of it.", model=model.title)
        )


def table_by(model: Model, image: object, size: int | None) -> ChannelTable:
    """List a model's channels by the pass of one image, at that size if one is given.

    Raises:
        ModelError: the network can't take it.
        HookVizError: it can't be read.
    """
    _, model_input, _ = reading_ahead.read(model, image, size)
    return channel_table(input_trace(model, model_input))


def no_channels(model: Model) -> ModelError:
    """Return the error for a network without conv layers that have maps."""
    return ModelError(
        say("{model} has no conv layer whose maps could be looked at.", model=model.title)
    )
