"""From a channel in a lens to that channel in the explorer, and back by the browser's Back."""

from collections.abc import Callable

from hookviz.capturing.layer_trace import LayerTrace, steps_after
from hookviz.ui.link import go
from hookviz.ui.state import Cell, choose


def lead_to(trace: LayerTrace, layer: str) -> Callable[[int, Cell | None, Cell], None] | None:
    """What shows a channel of that layer in the explorer; None where the explorer hasn't got it.

    It gets the channel, the cell of its map if one was pointed at, and the map's size.
    """
    place = _place(trace, layer)
    if place is None:
        return None
    shown, after = place
    first = next((conv.name for conv in trace.convs), None)
    known = (*trace.layers, *trace.maps)
    shape = next(info.output_shape for info in known if info.name == layer)

    def lead(channel: int, cell: Cell | None, size: Cell) -> None:
        at = cell if size == shape[1:] else None  # a tile can be a kernel
        choose(layer=shown)
        if after:
            choose(after=after)
        go(
            lens=None,
            layer=None if shown == first else shown,
            channel=str(channel),
            after=after,
            **({"cell": ",".join(map(str, (*at, *size)))} if at else {}),
        )

    return lead


def _place(trace: LayerTrace, layer: str) -> tuple[str, str | None] | None:
    """Where a layer's maps are seen: with the conv layer that it followed, or by themselves.

    The layer that is looked at, and what is shown of what followed it, if any.
    """
    layers = {info.name: info for info in trace.layers}
    maps = {info.name: info for info in trace.maps}
    if layer not in maps:
        return None
    if layer not in layers or layer in {conv.name for conv in trace.convs}:
        return (layer, None) if len(maps[layer].output_shape) == 3 else None
    kind = layers[layer].kind
    for conv in trace.convs:
        steps = steps_after(trace, conv.name)
        alike = [step for step in steps if layers[step.layer].kind == kind]
        if alike and alike[0].layer == layer:
            return conv.name, kind
    return layer, None
