"""Show one channel of a layer on many images: what its detector answers to elsewhere."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.capturing import engine
from hookviz.capturing.batch_images import named
from hookviz.codegen.function_source import source_of
from hookviz.codegen.lens_facts import LensCode, LensFacts
from hookviz.codegen.lens_parts import TENSORS_IN, batches, constants, file_of, in_order
from hookviz.codegen.wording import as_maps
from hookviz.drawing.colormaps import COLORMAPS
from hookviz.drawing.overlay import input_picture
from hookviz.drawing.palette import coloured
from hookviz.drawing.panels import ImageMap, MapsPanel, Panel, TablePanel, TextPanel
from hookviz.errors import HookVizError, SettingError
from hookviz.language.saying import mark, say, say_count
from hookviz.lenses.contract.lens import SEES, Lens, LensOutput, Subject
from hookviz.lenses.contract.more_images import left_out, over_images
from hookviz.lenses.contract.parameters import ChannelChoice, LayerChoice, MoreImages
from hookviz.types import TOKENS, InputImage, ModelInput, Progress
from hookviz.wording import number, times

Map = NDArray[np.float32]
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

    def compute(model_input: ModelInput, image: Any, _: Progress) -> tuple[ModelInput, str, Map]:
        digest = image.digest if isinstance(image, InputImage) else ""
        return model_input, digest, _map(subject, model_input, layer, channel)

    by_name, reasons = over_images(subject, images, compute)
    maps = [_ChannelMap(name, *result) for name, result in by_name.items()]
    tops = {each.name: np.nan_to_num(highest_of(each.values), nan=-np.inf) for each in maps}
    maps[1:] = sorted(maps[1:], key=lambda each: -tops[each.name])
    return (*_panels(maps, layer, channel), *left_out(reasons)), _values(maps)


@dataclass(frozen=True, eq=False, slots=True)
class _ChannelMap:
    """Map of one image, ``(H, W)``; `digest` is that of the image, if it was one."""

    name: str
    model_input: ModelInput
    digest: str
    values: Map


def finite_of(values: Map) -> Map:
    """Return the finite values, ``(n,)``."""
    return values[np.isfinite(values)]


def highest_of(values: Map) -> float:
    """Return the highest finite value; NaN without any."""
    return float(finite_of(values).max(initial=-np.inf)) if finite_of(values).size else np.nan


def mean_of(values: Map) -> float:
    """Return the mean of the finite values; NaN without any."""
    finite = finite_of(values)
    return float(finite.mean(dtype=np.float64)) if finite.size else np.nan


def place_of(values: Map) -> tuple[int, int]:
    """Return row and column of the highest finite value, the first of equal ones."""
    whole = np.where(np.isfinite(values), values, -np.inf)
    row, column = divmod(int(whole.argmax()), values.shape[1])
    return row, column


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


def _values(maps: list[_ChannelMap]) -> dict[str, NDArray[Any]]:
    arrays = [each.values for each in maps]
    same_size = len({array.shape for array in arrays}) == 1
    numbered = {f"map_{index}": array for index, array in enumerate(arrays)}
    return {
        "names": np.array([each.name for each in maps]),
        "highest": np.array(list(map(highest_of, arrays)), np.float32),
        "mean": np.array(list(map(mean_of, arrays))),
        "place": np.array(list(map(place_of, arrays))),
        **({"maps": np.stack(arrays)} if same_size else numbered),
    }


def _panels(maps: list[_ChannelMap], layer: str, channel: int) -> tuple[Panel, ...]:
    finite = np.concatenate([finite_of(each.values) for each in maps])
    low, high = float(finite.min(initial=0)), float(finite.max(initial=0))
    signed = low < 0
    colours = COLORMAPS["RdBu_r" if signed else "viridis"]
    if signed:
        high = max(-low, high)
        low = -high
    middle = say(", {colour} is zero", colour=say(colours.middle)) if signed else ""
    panel = MapsPanel(
        say("Channel {channel} of {layer}", channel=channel, layer=layer),
        tuple(
            ImageMap(
                each.name,
                say("highest {highest}", highest=number(highest_of(each.values))),
                input_picture(each.model_input),
                coloured(each.values, colours.name, low=low, high=high),
                each.digest,
            )
            for each in maps
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
    table = TablePanel(say("In numbers"), _HEAD, tuple(map(_row, maps)))
    return TextPanel(_says(maps, layer, channel)), panel, table


def _says(maps: list[_ChannelMap], layer: str, channel: int) -> str:
    here, others = maps[0], maps[1:]
    says = say(
        "Channel {channel} of {layer} reaches {highest} on this image",
        channel=channel,
        layer=layer,
        highest=number(highest_of(here.values)),
    )
    if not others:
        return say("{finding}. Add more images to see what else it answers to.", finding=says)
    best = others[0]
    more = sum(highest_of(each.values) > highest_of(here.values) for each in others)
    return say_count(
        "{finding}, and {best_value} on {best_image!r}, the highest of {image_count} others; "
        "{higher_count} of them has more than this one.",
        "{finding}, and {best_value} on {best_image!r}, the highest of {image_count} others; "
        "{higher_count} of them have more than this one.",
        more,
        finding=says,
        best_value=number(highest_of(best.values)),
        best_image=best.name,
        image_count=len(others),
        higher_count=more or say("none"),
    )


def _row(row: _ChannelMap) -> tuple[str | int, ...]:
    return (
        row.name,
        number(highest_of(row.values)),
        *place_of(row.values),
        number(mean_of(row.values)),
        number(100 * float(np.mean(row.values == 0))),
    )


def script(facts: LensFacts) -> LensCode:
    """Write code for a pass of each image, in the order in which the lens has them."""
    lines = in_order(
        constants(facts, layer="", channel="from 0"),
        TENSORS_IN,
        _MAP_OF.format(maps=as_maps(facts.layout), axes=3 if facts.layout.order == TOKENS else 4),
        source_of(finite_of, highest_of, mean_of, place_of),
        batches(file_of(name) for name in named(facts.chosen["images"])),
        _MAPS,
    )
    values = {"names": "np.array(names)", "highest": "np.array(highest, np.float32)"}
    values |= {"mean": "[mean_of(each) for each in maps]"}
    values |= {"place": "[place_of(each) for each in maps]"}
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
