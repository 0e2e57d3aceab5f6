"""Lead from what a lens shows to that channel in the explorer, or to that image.

The browser's Back leads back.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from hookviz.capturing.layer_trace import LayerTrace, steps_after
from hookviz.images import reading
from hookviz.images.samples import samples
from hookviz.language.naming import names_in_links
from hookviz.language.saying import say
from hookviz.lenses.contract import parameters as kinds
from hookviz.lenses.contract.lens import Lens
from hookviz.lenses.contract.running import list_lenses
from hookviz.ui.lenses.lens_choice import layers_at_side
from hookviz.ui.link import named_channels, update_link
from hookviz.ui.recent_images import recent_images
from hookviz.ui.state import TARGET, Cell, choose, choose_sample, choose_upload


def lead_to_channel(
    trace: LayerTrace, layer: str
) -> Callable[[int, Cell | None, Cell], None] | None:
    """Return what shows a channel of that layer in the explorer; None where it has no such layer.

    It gets the channel, the cell of its map if one was pointed at, and the map's size.
    """
    shown_at = _shown_at(trace, layer)
    if shown_at is None:
        return None
    shown, after = shown_at
    first = next((conv.name for conv in trace.convs), None)
    known = (*trace.layers, *trace.maps)
    shape = next(info.output_shape for info in known if info.name == layer)

    def lead(channel: int, cell: Cell | None, size: Cell) -> None:
        at = cell if size == shape[1:] else None  # a tile can be a kernel
        choose(layer=shown)
        if after:
            choose(after=after)
        update_link(
            lens=None,
            layer=None if shown == first else shown,
            channel=str(channel),
            after=after,
            **({"cell": ",".join(map(str, (*at, *size)))} if at else {}),
            **dict.fromkeys(named_channels()),
        )

    return lead


def channel_questions() -> list[dict[str, Any]]:
    """Return what can be asked about a channel that is picked up in the explorer, lens by lens.

    Each has its words, and the words of the link that lead there; ``{layer}`` and ``{channel}`` in
    them stand for those that are picked up, and an empty one goes out of the link.
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
    """Return the words of the link with which a lens is about one channel of a layer."""
    link = {"layer": "{layer}", "channel": "{channel}"}
    for parameter in lens.parameters:
        word = f"{lens.slug}-{parameter.name}"
        if isinstance(parameter, kinds.Channels):
            link[word] = ""  # the one that is picked up
        elif isinstance(parameter, kinds.LayerChoice) and parameter.name == "layer":
            link |= {} if parameter in layers_at_side(lens) else {word: "{layer}"}
    return link | {f"{lens.slug}-{name}": value for name, value in settings.items()}


def class_way(names: Sequence[str], count: int) -> Callable[[int], dict[str, str]]:
    """Return what gives the words of the link that lead from a class to where it is.

    Args:
        names: of the classes, which may be too few.
        count: how many classes there are.
    """
    slug = next(lens.slug for lens in list_lenses() if lens.of_class)
    words = names_in_links(names, count)
    return lambda number: {"lens": slug, TARGET: words[number]}


def _shown_at(trace: LayerTrace, layer: str) -> tuple[str, str | None] | None:
    """Return the layer that shows these maps, and what is shown of what followed it, if any.

    That is the conv layer that the layer followed, or the layer itself.
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
        alike = [step for step in steps if layers[step.layer].kind == kind]
        if alike and alike[0].layer == layer:
            return conv.name, kind
    return layer, None


def lead_to_image(digest: str, shown: str) -> Callable[[], None] | None:
    """Return what looks at the image of that digest; None where it is no sample and no recent one.

    `shown` is the digest of the image that is looked at, to which nothing has to lead.
    """
    if digest and digest == shown:
        return lambda: None
    for recent in recent_images():
        if recent.digest == digest:
            return partial(_look_at_upload, recent.thumbnail.name)
    name = _samples().get(digest)
    return None if name is None else partial(_look_at_sample, name)


def _look_at_upload(name: str) -> None:
    choose(image="Upload")
    choose_upload(name)


def _look_at_sample(name: str) -> None:
    choose(image="Samples")
    choose_sample(name)


@cache
def _samples() -> dict[str, str]:
    """Return the samples' names by their digests."""
    return {reading.read(sample.path).digest: sample.name for sample in samples()}
