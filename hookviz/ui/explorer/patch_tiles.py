"""Show what excites each channel in place of its map, and which channels answer to a class."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz.atlas.atlas import Atlas
from hookviz.drawing.chosen_channels import with_channels
from hookviz.drawing.grid import Grid
from hookviz.drawing.patch_sheet import PatchSheet, patch_sheet
from hookviz.language.naming import class_label, listed_label
from hookviz.language.saying import mark, say
from hookviz.models.bundled import BUNDLED
from hookviz.types import Address, InputImage, Model, Pixels
from hookviz.ui.explorer.atlas_choice import shown_atlas
from hookviz.ui.linked_choice import linked_choice
from hookviz.ui.serving.resources import session_cache

_SWITCH, _ANSWERS = "patches", "answers"
_EVERY, _THIS = mark("every channel"), mark("those for this image")
_SAID = (_EVERY, _THIS, mark("photograph"))  # the last of the atlases in the box, beside drawings


def offer_patches(model: Model, image: InputImage, step: Address) -> None:
    """Show a switch to each channel's strongest patch, where an atlas has them, and for which."""
    atlas = shown_atlas(model)
    if atlas is None or str(step) not in atlas.layers:
        return
    on = st.toggle(
        say("What excites each"),
        key=_SWITCH,
        bind="query-params",
        help=say("In each tile the part of an image that excites its channel most"),
    )
    if on:
        known = any(each.digest == image.digest for each in atlas.images)
        linked_choice(
            st.selectbox,
            say("Which channels"),
            [_EVERY, *([_THIS] if known else []), *atlas.classes],
            _ANSWERS,
            first=_EVERY,
            shown=_said_of(model, atlas, listed_label),
            label_visibility="collapsed",
            width=200,
            help=say(
                "Only channels that have this image, or images of a class, among their strongest"
            ),
        )


def patch_tiles(
    model: Model, image: InputImage, grid: Grid, maps: NDArray[np.float32]
) -> tuple[Grid, PatchSheet | None]:
    """Return the grid of the channels asked for, and the strongest patch of each in its order.

    Where maps are shown, returns the grid as it is, and None.

    Args:
        model: whose channels they are.
        image: the one that is looked at.
        grid: of the maps.
        maps: what the layer put out, ``(C, H, W)``.

    Raises:
        HookVizError: the atlas can't be read any more.
    """
    atlas = shown_atlas(model)
    if atlas is None or grid.title not in atlas.layers or not st.session_state.get(_SWITCH):
        return grid, None
    channels = _answering(model, atlas, grid.title, image)
    if channels:
        grid = with_channels(grid, maps, channels)
    cache, key = session_cache(), ("first patches", str(atlas.path), atlas.digest, grid.title)
    patches: tuple[Pixels | None, ...] | None = cache.get(key)
    if patches is None:
        patches = atlas.first_patches(grid.title)
        cache.put(key, patches, sum(each.nbytes for each in patches if each is not None))
    side = int(atlas.options["patch"])
    return grid, patch_sheet([patches[channel] for channel in grid.order], side)


def _answering(model: Model, atlas: Atlas, layer: str, image: InputImage) -> list[int]:
    """Return the layer's channels that answer to the choice, the strongest first; empty for all."""
    asked = st.session_state.get(_ANSWERS, _EVERY)
    count = sum(atlas.layers.values()) * atlas.top
    if asked == _THIS:
        answers = atlas.channels_of_image(image.digest, count)
    elif asked in atlas.classes:
        answers = atlas.channels_of_class(asked, count)
    else:
        return []
    channels = list(dict.fromkeys(each.channel for each in answers if each.layer == layer))
    if not channels:
        st.caption(
            say(
                "No channel of this layer has {class_name!r} among its strongest: these are all.",
                class_name=_said_of(model, atlas, class_label)(asked),
            )
        )
    return channels


def _said_of(
    model: Model, atlas: Atlas, label: Callable[[int, Sequence[str]], str]
) -> Callable[[str], str]:
    """Return how an option is said, with `label` for a class by its number among its names.

    An atlas has its classes from folders. They are the model's, or those of the drawings in the
    box, where most of them are called so; else nothing is known of them but their names.
    """
    sets = (model.categories, BUNDLED["shapesnet"].categories)
    most = len(atlas.classes) / 2
    names = next((each for each in sets if len(set(atlas.classes) & set(each)) > most), ())
    counts = Counter(names)
    numbers = {name: at for at, name in enumerate(names) if counts[name] == 1}

    def said(option: str) -> str:
        if option in numbers:
            return label(numbers[option], names)
        return say(option) if option in _SAID else option

    return said
