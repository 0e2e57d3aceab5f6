"""Show what excites the picked channel: the strongest patches of an atlas, which lead to images."""

from functools import cache

import streamlit as st

from hookviz.atlas.answers import TopActivation
from hookviz.atlas.atlas import Atlas
from hookviz.drawing.pictures import encode_jpeg
from hookviz.errors import HookVizError
from hookviz.images import reading
from hookviz.images.samples import samples
from hookviz.language.saying import say
from hookviz.markup import data_url
from hookviz.settings import MEGABYTE, settings
from hookviz.types import Activation, Model
from hookviz.ui.components.patches import Patch, show_patches
from hookviz.ui.explorer.atlas_choice import own_file, shown_atlas
from hookviz.ui.explorer.atlas_menu import show_atlas_line
from hookviz.ui.recent_images import queue_for_next_run
from hookviz.ui.serving.resources import session_cache
from hookviz.ui.state import (
    Cell,
    ModelChoice,
    choose,
    choose_cell,
    choose_sample,
    plain,
)
from hookviz.wording import number


def show_top_activations(
    model: Model, choice: ModelChoice, activation: Activation, channel: int, *, is_conv: bool
) -> None:
    """Show the images that excite the channel most, as the patch that its strongest cell sees.

    A click leads to the image with the channel and that cell. Where no atlas has the layer, a menu
    offers to make one of one's own images, if `is_conv` says that it would have the layer.
    """
    atlas, layer = shown_atlas(model), str(activation.address)
    known = atlas is not None and layer in atlas.layers
    if known or is_conv:
        show_atlas_line(model, choice)
    if atlas is None or not known:
        return
    try:
        top = atlas.top_activations(layer, channel)
    except HookVizError as error:
        st.caption(plain(str(error)))
        return
    if not top:
        return
    rows, columns = (int(side) for side in activation.values.shape[1:])
    show_patches(
        "excitations",
        say("What excites channel {channel} most, strongest first", channel=channel),
        patches_of(atlas, top, (layer, channel)),
        lambda rank: _look_at(atlas, top[rank], channel, (rows, columns)),
    )


def patches_of(
    atlas: Atlas, top: tuple[TopActivation, ...], of: tuple[str, int]
) -> tuple[Patch, ...]:
    """Return the patches as small pictures, from the session's cache; a lost one has its title."""
    cache, key = session_cache(), ("patches", str(atlas.path), atlas.digest, *of)
    kept: tuple[Patch, ...] | None = cache.get(key)
    if kept is None:
        kept = tuple(Patch(_title(each), _url(each)) for each in top)
        cache.put(key, kept, sum(len(each.picture) for each in kept))
    return kept


def _title(best: TopActivation) -> str:
    row, column = best.cell
    return say(
        "{image}: {excitation} at row {row}, column {column}",
        image=best.image.name,
        excitation=number(best.value),
        row=row,
        column=column,
    )


def _url(best: TopActivation) -> str:
    if best.patch is None:
        return ""
    return data_url(encode_jpeg(best.patch, quality=90), "jpeg")


def _look_at(atlas: Atlas, best: TopActivation, channel: int, size: Cell) -> None:
    """Go to the image of a patch, in a callback; one step for the browser's Back."""
    image, path = best.image, atlas.picture(best.image)
    sample, own = _samples().get(image.digest), own_file(atlas.digest, image)
    if sample is not None:
        choose(image="Samples")
        choose_sample(sample)
    elif path is None and own is not None:
        queue_for_next_run(image.name, own, image.digest)
        choose(image="Upload")
    elif path is None or path.stat().st_size > settings().upload_mb * MEGABYTE:
        st.toast(
            plain(
                say("{image} is not here any more; its patch is all there is.", image=image.name)
            ),
            duration="long",
        )
        return
    else:
        queue_for_next_run(image.name, path.read_bytes(), image.digest)
        choose(image="Upload")
    choose_cell(best.cell, size, channel)


@cache
def _samples() -> dict[str, str]:
    """Return the names of the samples, by the digests of their pixels."""
    return {reading.read(each.path).digest: each.name for each in samples()}
