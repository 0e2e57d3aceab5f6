"""Answer with the strongest patches of a channel, by an atlas, and their links.

Patches also take the place of the channels' maps, for all channels or those of a class.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hookviz.atlas.atlas import Atlas, TopActivation
from hookviz.atlas.tally import TOP
from hookviz.capturing.cache import ByteCache
from hookviz.drawing.grid import Grid, with_channels
from hookviz.drawing.pictures import PatchSheet, encode_jpeg, patch_sheet
from hookviz.errors import HookVizError
from hookviz.explorer.layers import maps, resolve
from hookviz.explorer.question import Answer, Report, asked_number
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import EVERY_CHANNEL, Cell, View
from hookviz.language.naming import class_label, listed_label
from hookviz.language.saying import mark, say
from hookviz.markup import data_url
from hookviz.models.bundled import BUNDLED
from hookviz.types import Pixels
from hookviz.wording import number

THIS_IMAGE = mark("those for this image")
_TRANSLATED = (EVERY_CHANNEL, THIS_IMAGE, mark("photograph"))  # the last of the atlases in the box


class PatchTiles(NamedTuple):
    """Strongest patch of each chosen channel.

    Attributes:
        grid: those channels, in the patches' order.
        sheet: the patches.
        note: why every channel is shown instead of those of the choice; else empty.
    """

    grid: Grid
    sheet: PatchSheet
    note: str


def atlas_of_step(subject: Subject, step: str) -> Atlas | None:
    """Return the subject's atlas where it knows a step's channels."""
    atlas = subject.atlas
    return atlas if atlas is not None and step in atlas.layers else None


def answer_choices(subject: Subject, atlas: Atlas) -> list[tuple[str, str]]:
    """Return the choices of channels: the word of a link, and its translation."""
    known = any(each.digest == subject.image.digest for each in atlas.images)
    translated = _translator(subject, atlas, listed_label)
    options = (EVERY_CHANNEL, *((THIS_IMAGE,) if known else ()), *atlas.classes)
    return [(option, translated(option)) for option in options]


def patch_tiles(
    subject: Subject, atlas: Atlas, grid: Grid, maps: NDArray[np.float32], answers: str
) -> PatchTiles:
    """Return the strongest patch of each channel of a choice.

    Args:
        subject: the network and the image.
        atlas: of the subject's network, with the patches.
        grid: of the channels' maps; its title is the step's address.
        maps: output of the step, ``(C, H, W)``.
        answers: one of `answer_choices`; any other value is every channel.

    Raises:
        HookVizError: the atlas can't be read any more.
    """
    choice = answers if answers == THIS_IMAGE or answers in atlas.classes else EVERY_CHANNEL
    channels = _answering(subject, atlas, grid.title, choice)
    note = ""
    if channels:
        grid = with_channels(grid, maps, channels)
    elif choice != EVERY_CHANNEL:
        note = say(
            "No channel of this layer has {class_name!r} among its strongest: these are all.",
            class_name=_translator(subject, atlas, class_label)(choice),
        )
    # another order of the same channels is another sheet
    key = ("patch sheet", str(atlas.path), atlas.digest, grid.title, grid.order.tobytes())
    sheet: PatchSheet | None = subject.cache.get(key)
    if sheet is None:
        all_of_layer = ("first patches", str(atlas.path), atlas.digest, grid.title)
        patches: tuple[Pixels | None, ...] | None = subject.cache.get(all_of_layer)
        if patches is None:
            patches = atlas.first_patches(grid.title)
            size = sum(each.nbytes for each in patches if each is not None)
            subject.cache.put(all_of_layer, patches, size)
        side = int(atlas.options["patch"])
        sheet = patch_sheet([patches[channel] for channel in grid.order], side)
        subject.cache.put(key, sheet, len(sheet.png))
    return PatchTiles(grid, sheet, note)


def _answering(subject: Subject, atlas: Atlas, step: str, choice: str) -> list[int]:
    """Return the step's channels of a choice, the strongest first; empty for all."""
    if choice == EVERY_CHANNEL:
        return []
    count = sum(atlas.layers.values()) * atlas.top
    digest = subject.image.digest
    if choice != THIS_IMAGE:
        answers = atlas.channels_of_class(choice, count)
    elif any(each.digest == digest for each in atlas.images):
        answers = atlas.channels_of_image(digest, count)
    else:  # a link that asked for another image's
        answers = ()
    return list(dict.fromkeys(each.channel for each in answers if each.layer == step))


def _translator(
    subject: Subject, atlas: Atlas, label: Callable[[int, Sequence[str]], str]
) -> Callable[[str], str]:
    """Return the function that translates an option, with `label` for a class of known names.

    An atlas has its classes from folders. They are the model's, or those of the bundled drawings,
    where most names are the same; other classes have only their names.
    """
    sets = (subject.model.categories, BUNDLED["shapesnet"].categories)
    most = len(atlas.classes) / 2
    names = next((each for each in sets if len(set(atlas.classes) & set(each)) > most), ())
    counts = Counter(names)
    numbers = {name: at for at, name in enumerate(names) if counts[name] == 1}

    def translated(option: str) -> str:
        if option in numbers:
            return label(numbers[option], names)
        return say(option) if option in _TRANSLATED else option

    return translated


OF_CELLS = mark(
    "Each patch is its cell's own place on the image; by attention the cell sees more, up to all "
    "of the image."
)
"""Note where a patch is not the receptive field of its cell."""


class Patch(NamedTuple):
    """One of a channel's strongest activations, and its patch as a small picture.

    Attributes:
        activation: without the pixels of its patch.
        picture: the patch as a URL of its bytes; empty where it is lost.
    """

    activation: TopActivation
    picture: str

    @property
    def title(self) -> str:
        """Image, value and cell, for a tooltip and for screen readers."""
        row, column = self.activation.cell
        return say(
            "{image}: {excitation} at row {row}, column {column}",
            image=self.activation.image.name,
            excitation=number(self.activation.value),
            row=row,
            column=column,
        )


def answer_excites(
    subject: Subject, view: View, facts: Mapping[str, Any], _report: Report
) -> Answer:
    """Answer with the images that excite a channel most, each as its strongest patch.

    A patch links to a sample, or else by its rank to an image that the page looks up.

    Raises:
        NotThereError: the channel does not exist.
        HookVizError: the layer can't be recorded.
    """
    resolved = resolve(subject, view)
    channels, rows, columns = maps(subject, resolved).shape
    channel = asked_number(facts, "channel", channels, resolved.step)
    atlas, layer = subject.atlas, str(resolved.step)
    if atlas is None or layer not in atlas.layers:
        return Answer({"known": False, "patches": [], "error": ""})
    facts_of_channel = {
        "known": True,
        "among": subject.atlas_words,
        "label": say("What excites channel {channel} most, strongest first", channel=channel),
        "columns": TOP,
        "note": say(OF_CELLS) if layer in atlas.of_cells else "",
        "error": "",
    }
    try:
        patches = patches_of(subject.cache, atlas, layer, channel)
    except HookVizError as error:
        return Answer(facts_of_channel | {"patches": [], "error": str(error)})

    def leads(rank: int, best: TopActivation) -> dict[str, Any]:
        cell = str(Cell(*best.cell, rows, columns))
        sample = subject.image_names.get(best.image.digest)
        to = {"image": rank} if sample is None else {"sample": sample}
        return {**to, "cell": cell, "channel": channel}

    items = [
        {"title": each.title, "picture": each.picture, "leads": leads(rank, each.activation)}
        for rank, each in enumerate(patches)
    ]
    return Answer(facts_of_channel | {"patches": items})


def patches_of(cache: ByteCache, atlas: Atlas, layer: str, channel: int) -> tuple[Patch, ...]:
    """Return a channel's strongest activations, from the cache or read from the atlas.

    Raises:
        HookVizError: the patches can't be read any more.
    """
    key = ("excites", str(atlas.path), atlas.digest, layer, channel)
    patches: tuple[Patch, ...] | None = cache.get(key)
    if patches is None:
        top = atlas.top_activations(layer, channel)
        patches = tuple(
            Patch(
                replace(each, patch=None),
                "" if each.patch is None else data_url(encode_jpeg(each.patch, quality=90), "jpeg"),
            )
            for each in top
        )
        cache.put(key, patches, sum(len(each.picture) for each in patches))
    return patches
