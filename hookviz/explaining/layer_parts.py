"""Number the parts of what a layer puts out: the whole, its channels or its cells."""

from collections.abc import Mapping
from math import prod

import torch
from torch import Tensor

from hookviz.capturing.layer_trace import LayerTrace
from hookviz.capturing.unsupported_outputs import no_cells_error
from hookviz.errors import ModelError
from hookviz.language.saying import say
from hookviz.types import FIRST, WINDOWS, ActivationKey, LayerInfo, Model
from hookviz.wording import times

PARTS = ("layer", "channel", "cell")

Outputs = Mapping[ActivationKey, Tensor]
"""What one layer puts out, by its calls."""


class LayerParts:
    """Parts of what one layer puts out for two images, in all its calls.

    Attributes:
        info: the layer.
        clean: what it puts out for the clean image, by address.
        corrupted: what it puts out for the corrupted one.
        numbers: by address, of the output's shape: the part that each of its numbers belongs to;
            -1 for none.
        shape: of the parts: ``()`` of the whole, ``(C,)`` or ``(H, W)``.
        count: how many there are.
    """

    def __init__(
        self,
        model: Model,
        trace: LayerTrace,
        info: LayerInfo,
        outputs: tuple[Outputs, Outputs],
        by: str,
    ) -> None:
        """Take what a layer puts out for either image, and its parts by one of `PARTS`.

        Raises:
            ModelError: nobody knows the channels or the cells, or its calls have different ones.
        """
        self.info, (self.clean, self.corrupted) = info, outputs
        found = {at: _numbered(model, trace, at, each, by) for at, each in self.clean.items()}
        shapes = dict.fromkeys(shape for _, shape in found.values())
        self.numbers = {at: numbers for at, (numbers, _) in found.items()}
        self.shape = next(iter(shapes), ())
        self.count = prod(self.shape)
        if len(shapes) > 1:
            raise ModelError(
                say(
                    "Layer {layer!r} of {model} runs {count} times in a pass, and puts out parts "
                    "of {shapes}. by='layer' takes each of its outputs as a whole.",
                    layer=info.name,
                    model=model.title,
                    count=len(found),
                    shapes=", ".join(map(times, shapes)),
                )
            )


def _numbered(
    model: Model, trace: LayerTrace, address: ActivationKey, output: Tensor, by: str
) -> tuple[Tensor, tuple[int, ...]]:
    """Return the part that each number of an output belongs to, and the shape of the parts."""
    places = torch.arange(output.numel()).reshape(output.shape)
    if by == "layer":
        return places * 0, ()
    layout = trace.layout_of(address)
    if by == "channel":
        if not (layout.last or layout.order == FIRST):
            raise ModelError(
                say(
                    "Nobody knows which axis of {shape} counts the channels that layer {layer!r} "
                    "of {model} puts out. by='layer' takes its output as a whole.",
                    shape=times(output.shape),
                    layer=address.layer,
                    model=model.title,
                )
            )
        axis = output.ndim - 1 if layout.last else int(layout.batch)
        along = torch.arange(output.shape[axis]).reshape(
            [-1 if each == axis else 1 for each in range(output.ndim)]
        )
        return along.expand(output.shape), (output.shape[axis],)
    if address not in trace.map_outputs.get(address.layer, ()):
        raise no_cells_error(model, address.layer)
    maps = layout.maps(places if layout.order == WINDOWS or not layout.batch else places[0])
    cells = torch.arange(prod(maps.shape[1:])).reshape(maps.shape[1:])
    numbers = torch.full((output.numel(),), -1)
    numbers[maps.flatten()] = cells.expand(maps.shape).flatten()
    return numbers.reshape(output.shape), tuple(maps.shape[1:])
