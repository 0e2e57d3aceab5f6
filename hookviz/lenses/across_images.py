"""One channel of a layer on many images, side by side: what its detector answers to elsewhere."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.capturing import engine
from hookviz.capturing.features import named
from hookviz.capturing.inputs import prepare
from hookviz.drawing.colormaps import COLORMAPS
from hookviz.drawing.maps_panel import ImageMap, MapsPanel
from hookviz.drawing.overlay import input_picture
from hookviz.drawing.palette import coloured
from hookviz.drawing.panels import Panel, TablePanel, TextPanel
from hookviz.errors import HookVizError, SettingError, shorten
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.language.saying import mark, say, say_count
from hookviz.lenses.contract.lens import Lens, LensOutput, Subject
from hookviz.lenses.contract.more_images import prepared_alike
from hookviz.lenses.contract.parameters import ChannelChoice, LayerChoice, MoreImages
from hookviz.types import InputImage, ModelInput
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
    """The channel's map on the image looked at, and on each of the others by its highest value.

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
    first = subject.image if subject.image is not None else subject.model_input
    listed = named([first, *images])
    reporter = ProgressReporter(subject.progress, 1 + len(listed))
    inputs = prepared_alike(subject, listed, reporter)
    found: list[_Found] = []
    panels: list[Panel] = []
    seen: set[str] = set()
    for name, made in inputs.items():
        try:
            if not isinstance(made, ModelInput):
                made = prepare(subject.model, made)  # noqa: PLW2901 - to say why it can't be
            if made.digest not in seen:
                values = _map(subject, made, layer, channel)
                image = listed[name]
                digest = image.digest if isinstance(image, InputImage) else ""
                found.append(_Found(name, made, digest, values))
            seen.add(made.digest)
        except SettingError:
            raise
        except HookVizError as error:
            if reporter.was_ended_by(error) or not found:
                raise
            panels.append(
                TextPanel(
                    say("{name} is left out: {error}", name=shorten(name), error=error), "bad"
                )
            )
        reporter.step()
    found[1:] = sorted(found[1:], key=lambda each: -np.nan_to_num(each.highest, nan=-np.inf))
    return (*_panels(found, layer, channel), *panels), _values(found)


@dataclass(frozen=True, eq=False, slots=True)
class _Found:
    """One image's map, ``(H, W)``; `digest` is that of the image, if it was one."""

    name: str
    made: ModelInput
    digest: str
    values: Map

    @property
    def finite(self) -> Map:
        """The finite values, ``(n,)``."""
        return self.values[np.isfinite(self.values)]

    @property
    def highest(self) -> float:
        """The highest finite value; NaN without any."""
        return float(self.finite.max(initial=-np.inf)) if self.finite.size else float("nan")

    @property
    def mean(self) -> float:
        """The mean of the finite values; NaN without any."""
        return float(self.finite.mean(dtype=np.float64)) if self.finite.size else float("nan")

    @property
    def place(self) -> tuple[int, int]:
        """Row and column of the highest value, the first of equal ones."""
        whole = np.where(np.isfinite(self.values), self.values, -np.inf)
        row, column = divmod(int(whole.argmax()), self.values.shape[1])
        return row, column


def _map(subject: Subject, made: ModelInput, layer: str, channel: int) -> Map:
    """The channel's map for an input, from the session's cache where it was there before."""
    address = str(subject.trace.map_outputs[layer][0])
    key = ("maps", subject.model.name, subject.model.digest, made.digest, address)
    maps: Map | None = subject.cache.get(key) if subject.cache is not None else None
    if maps is None:
        capture = engine.capture(subject.model, made, layer, logits=False)
        maps = capture[address].values.numpy()
        if subject.cache is not None:
            subject.cache.put(key, maps, maps.nbytes)
    if maps.ndim != 3:
        raise HookVizError(
            say(
                "The layer {layer} puts out {shape}, and this lens shows maps of rows and "
                "columns, (C, H, W).",
                layer=layer,
                shape=times(maps.shape),
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


def _values(found: list[_Found]) -> dict[str, NDArray[Any]]:
    maps = [each.values for each in found]
    alike = len({each.shape for each in maps}) == 1
    return {
        "names": np.array([each.name for each in found]),
        "highest": np.array([each.highest for each in found], np.float32),
        "mean": np.array([each.mean for each in found]),
        "place": np.array([each.place for each in found]),
        **(
            {"maps": np.stack(maps)} if alike else {f"map_{n}": each for n, each in enumerate(maps)}
        ),
    }


def _panels(found: list[_Found], layer: str, channel: int) -> tuple[Panel, ...]:
    every = np.concatenate([each.finite for each in found])
    low, high = float(every.min(initial=0)), float(every.max(initial=0))
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
                say("highest {highest}", highest=number(each.highest)),
                input_picture(each.made),
                coloured(each.values, colours.name, low=low, high=high),
                each.digest,
            )
            for each in found
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
    table = TablePanel(say("In numbers"), _HEAD, tuple(map(_row, found)))
    return TextPanel(_says(found, layer, channel)), panel, table


def _says(found: list[_Found], layer: str, channel: int) -> str:
    here, others = found[0], found[1:]
    says = say(
        "Channel {channel} of {layer} reaches {highest} on this image",
        channel=channel,
        layer=layer,
        highest=number(here.highest),
    )
    if not others:
        return say("{finding}. Add more images to see what else it answers to.", finding=says)
    best = others[0]
    more = sum(each.highest > here.highest for each in others)
    return say_count(
        "{finding}, and {best_value} on {best_image!r}, the highest of {image_count} others; "
        "{higher_count} of them has more than this one.",
        "{finding}, and {best_value} on {best_image!r}, the highest of {image_count} others; "
        "{higher_count} of them have more than this one.",
        more,
        finding=says,
        best_value=number(best.highest),
        best_image=best.name,
        image_count=len(others),
        higher_count=more or say("none"),
    )


def _row(found: _Found) -> tuple[str | int, ...]:
    return (
        found.name,
        number(found.highest),
        *found.place,
        number(found.mean),
        number(100 * float(np.mean(found.values == 0))),
    )


LENS = Lens(
    slug="across-images",
    title=mark("One channel across images"),
    question=mark("Where else does it respond?"),
    sentence=mark("One channel's map on every sample and on your own images, side by side."),
    run=run,
    parameters=(
        LayerChoice(kind="maps", default="last map"),
        ChannelChoice(),
        MoreImages(samples=True, help=mark("To see the channel on.")),
    ),
)
