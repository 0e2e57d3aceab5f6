"""Answer what excites a channel most: the strongest patches of an atlas, and where they lead."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from hookviz.atlas.atlas import Atlas, TopActivation
from hookviz.atlas.tally import TOP
from hookviz.capturing.cache import ByteCache
from hookviz.drawing.pictures import encode_jpeg
from hookviz.errors import HookVizError
from hookviz.explorer.asked import asked_number
from hookviz.explorer.layers import maps, resolve
from hookviz.explorer.question import Answer, Report
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import Cell, View
from hookviz.language.saying import mark, say
from hookviz.markup import data_url
from hookviz.wording import number

OF_CELLS = mark(
    "Each patch is its cell's own place on the image; by attention the cell sees more, up to all "
    "of the image."
)
"""Said where the patches are not what their cells see."""


class Patch(NamedTuple):
    """One of a channel's strongest activations, and its patch as a small picture.

    Attributes:
        of: the activation, without the pixels of its patch.
        picture: the patch as a URL of its bytes; empty where it is lost.
    """

    of: TopActivation
    picture: str

    @property
    def title(self) -> str:
        """What it is of, for the pointer and for who can't see it."""
        row, column = self.of.cell
        return say(
            "{image}: {excitation} at row {row}, column {column}",
            image=self.of.image.name,
            excitation=number(self.of.value),
            row=row,
            column=column,
        )


def answer_excites(
    subject: Subject, view: View, facts: Mapping[str, Any], _report: Report
) -> Answer:
    """Answer which images excite a channel most, each as the patch that its strongest cell sees.

    A patch leads to a sample, or else by its rank to an image that the page looks for.

    Raises:
        NotThereError: there is no such channel.
        HookVizError: the layer can't be recorded.
    """
    looked = resolve(subject, view)
    channels, rows, columns = maps(subject, looked).shape
    channel = asked_number(facts, "channel", channels, looked.step)
    atlas, layer = subject.atlas, str(looked.step)
    if atlas is None or layer not in atlas.layers:
        return Answer({"known": False, "patches": [], "error": ""})
    said = {
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
        return Answer(said | {"patches": [], "error": str(error)})

    def leads(rank: int, best: TopActivation) -> dict[str, Any]:
        cell = str(Cell(*best.cell, rows, columns))
        sample = subject.image_names.get(best.image.digest)
        to = {"image": rank} if sample is None else {"sample": sample}
        return {**to, "cell": cell, "channel": channel}

    items = [
        {"title": each.title, "picture": each.picture, "leads": leads(rank, each.of)}
        for rank, each in enumerate(patches)
    ]
    return Answer(said | {"patches": items})


def patches_of(cache: ByteCache, atlas: Atlas, layer: str, channel: int) -> tuple[Patch, ...]:
    """Return a channel's strongest activations, from the cache or read from the atlas.

    Raises:
        HookVizError: the patches can't be read any more.
    """
    key = ("excites", str(atlas.path), atlas.digest, layer, channel)
    kept: tuple[Patch, ...] | None = cache.get(key)
    if kept is None:
        top = atlas.top_activations(layer, channel)
        kept = tuple(Patch(replace(each, patch=None), _url(each)) for each in top)
        cache.put(key, kept, sum(len(each.picture) for each in kept))
    return kept


def _url(best: TopActivation) -> str:
    if best.patch is None:
        return ""
    return data_url(encode_jpeg(best.patch, quality=90), "jpeg")
