"""Lead from a lens's result to a channel or an image in the explorer; Back leads back."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from hookviz.capturing.layer_trace import LayerTrace, steps_after
from hookviz.language.naming import names_in_links
from hookviz.language.saying import say
from hookviz.lenses.contract import parameters as kinds
from hookviz.lenses.contract.lens import Lens
from hookviz.lenses.contract.running import list_lenses
from hookviz.ui.lenses.lens_choice import layers_at_side
from hookviz.ui.link import named_channels, update_link
from hookviz.ui.recent_images import recent_images
from hookviz.ui.state import TARGET, Cell, open_sample, open_upload, sample_names


def lead_to_channel(
    trace: LayerTrace, layer: str
) -> Callable[[int, Cell | None, Cell], None] | None:
    """Return a callback that shows a channel of a layer in the explorer; None without such a layer.

    The callback gets the channel, the cell of its map under the pointer, if any, and the map's
    size.
    """
    view = _explorer_view(trace, layer)
    if view is None:
        return None
    base, after = view
    first = next((conv.name for conv in trace.convs), None)
    known = (*trace.layers, *trace.maps)
    shape = next(info.output_shape for info in known if info.name == layer)

    def lead(channel: int, cell: Cell | None, size: Cell) -> None:
        at = cell if size == shape[1:] else None  # a tile can be a kernel
        update_link(
            lens=None,
            layer=None if base == first else base,
            channel=str(channel),
            after=after,
            **({"cell": ",".join(map(str, (*at, *size)))} if at else {}),
            **dict.fromkeys(named_channels()),
        )

    return lead


def channel_questions() -> list[dict[str, Any]]:
    """Return, lens by lens, the question about the explorer's channel, and its link.

    ``{layer}`` and ``{channel}`` in a link stand for those of the explorer; an empty word is left
    out of the link.
    """
    return [
        {
            "says": say(lens.of_channel.words),
            "hint": say(lens.sentence),
            "needsWeights": any(each.kind == "conv or linear" for each in layers_at_side(lens)),
            "link": {"lens": lens.slug} | _about_channel(lens, lens.of_channel.settings),
        }
        for lens in list_lenses()
        if lens.of_channel is not None
    ]


def _about_channel(lens: Lens, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the link of a lens about one channel of a layer."""
    link = {"layer": "{layer}", "channel": "{channel}"}
    for parameter in lens.parameters:
        word = f"{lens.slug}-{parameter.name}"
        if isinstance(parameter, kinds.Channels):
            link[word] = ""  # the explorer's
        elif isinstance(parameter, kinds.LayerChoice) and parameter.name == "layer":
            link |= {} if parameter in layers_at_side(lens) else {word: "{layer}"}
    return link | {f"{lens.slug}-{name}": value for name, value in settings.items()}


def class_links(names: Sequence[str], count: int) -> Callable[[int], dict[str, str]]:
    """Return a function from a class's number to the link of the lens that shows its evidence.

    Args:
        names: of the classes, which may be too few.
        count: how many classes there are.
    """
    slug = next(lens.slug for lens in list_lenses() if lens.of_class)
    words = names_in_links(names, count)
    return lambda number: {"lens": slug, TARGET: words[number]}


def _explorer_view(trace: LayerTrace, layer: str) -> tuple[str, str | None] | None:
    """Return the layer, and the step after it if any, under which the explorer shows these maps.

    It is the conv layer that the layer followed, or the layer itself.
    """
    layers = {info.name: info for info in trace.listed}
    maps = {info.name: info for info in trace.maps}
    if layer not in maps:
        return None
    if layer not in layers or layer in {conv.name for conv in trace.convs}:
        return (layer, None) if len(maps[layer].output_shape) == 3 else None
    kind = layers[layer].kind
    for conv in trace.convs:
        steps = steps_after(trace, conv.name)
        if layer == next((each.layer for each in steps if layers[each.layer].kind == kind), None):
            return conv.name, kind
    return layer, None


def lead_to_image(digest: str, current: str) -> Callable[[], None] | None:
    """Return a callback that opens the sample or recent image of a digest; None without one.

    It does nothing for the digest of the `current` image.
    """
    if digest and digest == current:
        return lambda: None
    for recent in recent_images():
        if recent.digest == digest:
            return partial(open_upload, recent.thumbnail.name)
    name = sample_names().get(digest)
    return None if name is None else partial(open_sample, name)
