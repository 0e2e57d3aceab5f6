"""Name the number that an attribution is of: a class score, a channel's mean or one cell."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hookviz.capturing.layer_trace import input_trace
from hookviz.capturing.wanted_layers import check_can_intervene, no_cells_error
from hookviz.errors import ModelError, SettingError, UnknownLayerError
from hookviz.language.saying import mark, say
from hookviz.types import Model, ModelInput


@dataclass(frozen=True, slots=True)
class AttributionTarget:
    """One number of a forward pass that is explained: what gradients and drops are of.

    Attributes:
        class_index: the class whose score (before the softmax) it is, where `layer` is None.
        layer: the layer of whose first call's output it is a part; ``name#1`` for its second call.
        channel: the layer's channel, whose mean it is, where `cell` is None; None stands for the
            mean of all channels.
        cell: the row and column of one cell of the channel.
    """

    class_index: int | None = None
    layer: str | None = None
    channel: int | None = 0
    cell: tuple[int, int] | None = None

    def describe(self, model: Model) -> str:
        """Return its name, to stand within a sentence."""
        if self.layer is None:
            assert self.class_index is not None
            label = model.label(self.class_index)
            return say("the score of {label}", label=label)
        channel = say("channel {channel} of {layer}", channel=self.channel, layer=self.layer)
        if self.cell is None:
            return say("the mean of {layer}", layer=self.layer if self.channel is None else channel)
        maps = say("{layer} (all channels)", layer=self.layer) if self.channel is None else channel
        row, column = self.cell
        return say("row {row}, column {column} of {maps}", row=row, column=column, maps=maps)

    def values_in(self, outputs: Tensor) -> Tensor:
        """Select the target of each input, ``(N,)``.

        `outputs` are all class scores, ``(N, classes)``, or the maps of `layer`, ``(N, C, H, W)``.
        """
        if self.layer is None:
            return outputs[:, self.class_index]
        maps = outputs.mean(1) if self.channel is None else outputs[:, self.channel]
        if self.cell is not None:
            return maps[:, *self.cell]
        return torch.stack([one.mean() for one in maps])

    def check(self, model: Model, model_input: ModelInput) -> None:
        """Refuse a target that is not in the layer's output; any class passes.

        Raises:
            UnknownLayerError: a pass runs no layer of that name.
            ModelError: the layer puts out no maps.
            SettingError: the layer lacks that channel or cell.
        """
        if self.layer is None:
            return
        shape = map_shape(model, model_input, self.layer)
        indices = (self.channel or 0, *(self.cell or (0, 0)))
        axes = (mark("channel"), mark("row"), mark("column"))
        for axis, index, count in zip(axes, indices, shape, strict=True):
            if not 0 <= index < count:
                raise SettingError(
                    say(
                        "There is no {axis} {index} in layer {layer!r}: it has {count:,}, 0 to "
                        "{last}.",
                        axis=say(axis),
                        index=index,
                        layer=self.layer,
                        count=count,
                        last=count - 1,
                    )
                )


def map_shape(model: Model, model_input: ModelInput, layer: str) -> tuple[int, ...]:
    """Look up the shape of the maps that a layer or a block puts out, ``(C, H, W)``.

    Raises:
        UnknownLayerError: a pass runs no layer of that name.
        ModelError: the layer puts out something else.
    """
    trace = input_trace(model, model_input)
    shapes = {info.name: info.output_shape for info in trace.every}
    address = trace.address(layer)
    name = address.layer
    if name not in shapes or address.call >= trace.calls[name]:
        raise UnknownLayerError(say("layer in {model}", model=model.title), layer, shapes)
    check_can_intervene(model, trace, name)
    shape = trace.shapes.get(address, ())
    if len(shape) != 3:
        raise _no_maps_error(model, model_input, layer, ("1", *map(str, shape)))
    if address not in trace.map_outputs.get(name, ()):
        raise no_cells_error(model, layer)
    return shape


def maps_in(model: Model, model_input: ModelInput, layer: str, output: Tensor) -> Tensor:
    """Take the maps out of a layer's output, ``(C, H, W)``; a convolution may leave the batch off.

    So too of a gradient at that output.

    Raises:
        ModelError: it is something else; a layer that puts out maps is named.
    """
    if output.ndim == 3 and tuple(output.shape) == map_shape(model, model_input, layer):
        return output
    output = with_channels_first(model, model_input, layer, output)
    if output.ndim != 4 or len(output) != 1:
        raise _no_maps_error(model, model_input, layer, tuple(map(str, output.shape)))
    return output[0]


def with_channels_first(
    model: Model, model_input: ModelInput, layer: str, output: Tensor
) -> Tensor:
    """View a layer's output as ``(N, C, H, W)`` where it has its channels last, or tokens."""
    trace = input_trace(model, model_input)
    layout = trace.layout_of(trace.address(layer))
    return layout.batch_maps(output) if layout.last else output


def _no_maps_error(
    model: Model, model_input: ModelInput, layer: str, shape: tuple[str, ...]
) -> ModelError:
    trace = input_trace(model, model_input)
    one = [info for info in trace.convs if info.frames == 1]  # not of several images
    maps = [info.name for info in one if len(info.output_shape) == 3]
    suitable = [name for name in maps if name != layer and name in trace.map_outputs]
    hint = say(" {layer!r} puts out maps, for example.", layer=suitable[-1]) if suitable else ""
    return ModelError(
        say(
            "Layer {layer!r} of {model} puts out {shape}, not one image's maps (1×C×H×W).{hint}",
            layer=layer,
            model=model.title,
            shape="×".join(shape),
            hint=hint,
        )
    )
