"""Show one channel of a layer on many images: what its detector answers to elsewhere."""

from typing import Any

import numpy as np

from hookviz.capturing import engine
from hookviz.capturing.batch_images import named
from hookviz.codegen.facts import LensCode, LensFacts
from hookviz.codegen.lens_script import TENSORS_IN, batches, constants, file_of, in_order
from hookviz.codegen.script_text import as_maps, source_of
from hookviz.drawing.colormaps import coloured
from hookviz.drawing.overlay import input_picture
from hookviz.drawing.panels import ImageMap, MapsPanel, Panel, TablePanel, TextPanel
from hookviz.errors import HookVizError, SettingError
from hookviz.explaining.layers.channel_maps import (
    ChannelMaps,
    Map,
    finite_of,
    highest_cell,
    highest_of,
    mean_of,
)
from hookviz.language.saying import mark, say, say_count
from hookviz.lenses.contract.lens import SEES, Lens, LensOutput, Subject
from hookviz.lenses.contract.many_images import left_out, over_images
from hookviz.lenses.contract.parameters import ChannelChoice, LayerChoice, MoreImages
from hookviz.types import TOKENS, InputImage, ModelInput, Progress
from hookviz.wording import number, times

_HEAD = (
    mark("image"),
    mark("highest"),
    mark("at row"),
    mark("at column"),
    mark("mean"),
    mark("zeros (%)"),
)


def run(subject: Subject, *, layer: str, channel: int, images: tuple[Any, ...]) -> LensOutput:
    """Return the channel's map on the image looked at, then on the others by its highest value.

    Every image has a pass of its own, which ends at the layer, so that a map is the one of
    `capture` to the last bit. An image that was there already is not shown again. The colours are
    the same for all maps: from the lowest to the highest value, or as far below zero as above where
    there are values below.

    Values: ``names``; ``highest`` and ``mean``, float32 and float64 ``(N,)``, over the finite
    values, NaN without any; ``place``, row and column of the highest, ``(N, 2)``; and ``maps``,
    float32 ``(N, H, W)``, or ``map_0``, ``map_1`` and so on where they differ in size.

    Raises:
        SettingError: the layer has no such channel.
        HookVizError: the layer puts out no maps of rows and columns, or the image looked at can't
            be put through; others that can't are told of.
    """
    result = channel_maps_of(subject, layer, channel, images)
    maps = (
        {"maps": np.stack(result.maps)}
        if result.has_one_size
        else {f"map_{index}": values for index, values in enumerate(result.maps)}
    )
    names = np.array(result.names)
    values = {"names": names, "highest": result.highest, "mean": result.mean, "place": result.cells}
    return (*_panels(result), *left_out(result.left_out)), values | maps


def channel_maps_of(
    subject: Subject, layer: str, channel: int, images: tuple[Any, ...]
) -> ChannelMaps:
    """Return the channel's maps, of the subject's image first, then by their highest value.

    Raises:
        SettingError: the layer has no such channel.
        HookVizError: the layer puts out no maps of rows and columns, or the subject's image can't
            be put through.
    """

    def compute(model_input: ModelInput, image: Any, _: Progress) -> tuple[ModelInput, str, Map]:
        digest = image.digest if isinstance(image, InputImage) else ""
        return model_input, digest, _map(subject, model_input, layer, channel)

    by_name, reasons = over_images(subject, images, compute)
    first, *others = by_name
    tops = {name: np.nan_to_num(highest_of(by_name[name][2]), nan=-np.inf) for name in others}
    names = (first, *sorted(others, key=lambda name: -tops[name]))
    inputs, digests, maps = zip(*(by_name[name] for name in names), strict=True)
    return ChannelMaps(layer, channel, names, maps, inputs, digests, reasons)


def _map(subject: Subject, model_input: ModelInput, layer: str, channel: int) -> Map:
    """Return the channel's map for an input, from the session's cache where it was there before."""
    address = str(subject.trace.map_outputs[layer][0])
    key = ("maps", subject.model.name, subject.model.cache_key, model_input.digest, address)
    maps: Map | None = subject.cache.get(key) if subject.cache is not None else None
    if maps is None:
        capture = engine.capture(subject.model, model_input, layer, logits=False)
        maps = capture[address].values.numpy()
        if subject.cache is not None:
            subject.cache.put(key, maps, maps.nbytes)
    if maps.ndim != 3 or model_input.tensor.ndim != 4:
        raise HookVizError(
            say(
                "The layer {layer} puts out {shape} of {input_shape}, and this lens shows maps, "
                "(C, H, W), of images.",
                layer=layer,
                shape=times(maps.shape),
                input_shape=times(model_input.tensor.shape[1:]),
            )
        )
    if channel >= len(maps):
        raise SettingError(
            say(
                "channel={channel} is not a channel of {layer}, which has {channel_count:,}: 0 "
                "to {last}.",
                channel=channel,
                layer=layer,
                channel_count=len(maps),
                last=len(maps) - 1,
            )
        )
    chosen: Map = maps[channel]
    return chosen


def _panels(result: ChannelMaps) -> tuple[Panel, ...]:
    layer, channel = result.layer, result.channel
    colours, (low, high) = result.colormap, result.limits
    middle = say(", {colour} is zero", colour=say(colours.middle)) if low < 0 else ""
    panel = MapsPanel(
        result.title,
        tuple(
            ImageMap(
                name,
                say("highest {highest}", highest=number(float(highest))),
                input_picture(model_input),
                coloured(values, colours.name, low=low, high=high),
                digest,
            )
            for name, highest, model_input, values, digest in zip(
                result.names,
                result.highest,
                result.inputs,
                result.maps,
                result.digests,
                strict=True,
            )
        ),
        say(
            "{low_colour} is {low_value}{zero} and {high_colour} is {high_value} in all of them. "
            "The image looked at comes first, then the others, highest value first.",
            low_colour=say(colours.low).capitalize(),
            low_value=number(low),
            zero=middle,
            high_colour=say(colours.high),
            high_value=number(high),
        ),
        layer=layer,
        channel=channel,
    )
    table = TablePanel(say("In numbers"), _HEAD, tuple(map(_row, result.names, result.maps)))
    return (*_answer(result), TextPanel(_summarize(result)), panel, table)


def _answer(result: ChannelMaps) -> tuple[TextPanel, ...]:
    """Say in one sentence which image the channel responds to most; nothing of one alone."""
    if len(result.names) == 1 or np.isnan(result.highest).any():
        return ()
    most = int(result.highest.argmax())
    words = say(
        "Channel {channel} of {layer} responds most to {image}.",
        channel=result.channel,
        layer=result.layer,
        image=repr(result.names[most]) if most else say("this image"),
    )
    return (TextPanel(words, "answer"),)


def _summarize(result: ChannelMaps) -> str:
    here, *others = result.highest.tolist()
    says = say(
        "Channel {channel} of {layer} reaches {highest} on this image",
        channel=result.channel,
        layer=result.layer,
        highest=number(here),
    )
    if not others:
        return say("{finding}. Add more images to see what else it answers to.", finding=says)
    more = sum(highest > here for highest in others)
    return say_count(
        "{finding}, and {best_value} on {best_image!r}, the highest of {image_count} others; "
        "{higher_count} of them has more than this one.",
        "{finding}, and {best_value} on {best_image!r}, the highest of {image_count} others; "
        "{higher_count} of them have more than this one.",
        more,
        finding=says,
        best_value=number(others[0]),
        best_image=result.names[1],
        image_count=len(others),
        higher_count=more or say("none"),
    )


def _row(name: str, values: Map) -> tuple[str | int, ...]:
    return (
        name,
        number(highest_of(values)),
        *highest_cell(values),
        number(mean_of(values)),
        number(100 * float(np.mean(values == 0))),
    )


def script(facts: LensFacts) -> LensCode:
    """Write code for a pass of each image, in the order in which the lens has them."""
    lines = in_order(
        constants(facts, layer="", channel="from 0"),
        TENSORS_IN,
        _MAP_OF.format(maps=as_maps(facts.layout), axes=3 if facts.layout.order == TOKENS else 4),
        source_of(finite_of, highest_of, mean_of, highest_cell),
        batches(file_of(name) for name in named(facts.chosen["images"])),
        _MAPS,
    )
    values = {"names": "np.array(names)", "highest": "np.array(highest, np.float32)"}
    values |= {"mean": "[mean_of(each) for each in maps]"}
    values |= {"place": "[highest_cell(each) for each in maps]"}
    numbered = [name for name in facts.values if name.startswith("map_")]
    each = {name: f"maps[{name.removeprefix('map_')}]" for name in numbered}
    return lines, values | (each or {"maps": "np.stack(maps)"})


_MAP_OF = '''
def map_of(batch):
    """The channel in the first maps that the layer puts out for one image, (rows, columns)."""
    outputs = []

    def keep(module, inputs, output):  # copies: an in-place ReLU may write over them
        outputs.extend(each.clone() for each in tensors_in(output) if each.ndim == {axes})

    handle = model.get_submodule(LAYER).register_forward_hook(keep)
    with torch.no_grad():
        model(batch)
    handle.remove()
    return outputs[0]{maps}[0, CHANNEL].numpy()

'''
_MAPS = """\
by_file = {file: map_of(each) for file, each in batches.items()}
# The image looked at comes first, then the others by their highest value.
tops = {file: np.nan_to_num(highest_of(each), nan=-np.inf) for file, each in by_file.items()}
names = [IMAGE, *sorted(list(by_file)[1:], key=lambda file: -tops[file])]
maps = [by_file[file] for file in names]
highest = [highest_of(each) for each in maps]"""


LENS = Lens(
    slug="across-images",
    title=mark("One channel across images"),
    question=mark("Where else does the channel respond?"),
    sentence=mark("One channel's map on every sample and on your own images, side by side."),
    group=SEES,
    run=run,
    of_images=True,
    script=script,
    parameters=(
        LayerChoice(kind="maps", default="last map"),
        ChannelChoice(),
        MoreImages(samples=True, help=mark("To see the channel on.")),
    ),
)
