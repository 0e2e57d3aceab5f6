"""What excites each channel in place of its map, and which channels answer to a class."""

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from hookviz.atlas.atlas import Atlas
from hookviz.drawing.chosen_channels import with_channels
from hookviz.drawing.grid import Grid
from hookviz.drawing.patch_sheet import PatchSheet, patch_sheet
from hookviz.types import Address, InputImage, Model, Pixels
from hookviz.ui.explorer.atlas_choice import shown_atlas
from hookviz.ui.serving.resources import session_cache

_SWITCH, _ANSWERS = "patches", "answers"
_EVERY, _THIS = "every channel", "those for this image"


def offer_patches(model: Model, image: InputImage, step: Address) -> None:
    """A switch to each channel's strongest patch, where an atlas has them, and whose to show."""
    atlas = shown_atlas(model)
    if atlas is None or str(step) not in atlas.layers:
        return
    on = st.toggle(
        "What excites each",
        key=_SWITCH,
        bind="query-params",
        help="In each tile the part of an image that excites its channel most",
    )
    if on:
        known = any(each.digest == image.digest for each in atlas.images)
        st.selectbox(
            "Which channels",
            [_EVERY, *([_THIS] if known else []), *atlas.classes],
            key=_ANSWERS,
            bind="query-params",
            label_visibility="collapsed",
            width=200,
            help="Only channels that have this image, or images of a class, among their strongest",
        )


def patch_tiles(
    model: Model, image: InputImage, grid: Grid, maps: NDArray[np.float32]
) -> tuple[Grid, PatchSheet | None]:
    """The grid with the channels that are asked for, and the strongest patch of each in its order.

    The grid as it is, and None, where maps are what is shown.

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
    channels = _answering(atlas, grid.title, image)
    if channels:
        grid = with_channels(grid, maps, channels)
    cache, key = session_cache(), ("first patches", str(atlas.path), atlas.digest, grid.title)
    patches: tuple[Pixels | None, ...] | None = cache.get(key)
    if patches is None:
        patches = atlas.first_patches(grid.title)
        cache.put(key, patches, sum(each.nbytes for each in patches if each is not None))
    side = int(atlas.options["patch"])
    return grid, patch_sheet([patches[channel] for channel in grid.order], side)


def _answering(atlas: Atlas, layer: str, image: InputImage) -> list[int]:
    """The layer's channels that answer to what is asked for, the strongest first; empty for all."""
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
        st.caption(f"No channel of this layer has {asked!r} among its strongest: these are all.")
    return channels
