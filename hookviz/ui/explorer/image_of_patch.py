"""Lead to the image of a patch that excites a channel, as the page alone can."""

from collections.abc import Callable, Mapping
from functools import cache

import streamlit as st

from hookviz.atlas.atlas import Atlas
from hookviz.errors import HookVizError
from hookviz.images import reading
from hookviz.images.samples import samples
from hookviz.language.saying import say
from hookviz.machine.memory import MEGABYTE
from hookviz.settings import settings
from hookviz.types import ActivationKey
from hookviz.ui.explorer.atlas_choice import own_file
from hookviz.ui.link import update_link
from hookviz.ui.recent_images import queue_for_next_run
from hookviz.ui.state import plain


@cache
def sample_names() -> Mapping[str, str]:
    """Return the names of the samples, by the digests of their pixels."""
    return {reading.read(each.path).digest: each.name for each in samples()}


def look_at(
    atlas: Atlas | None,
    step: Callable[[], ActivationKey],
    channel: int,
    rank: int,
    link: Mapping[str, str],
) -> None:
    """Go to the image of one of a channel's patches, in a callback; one step for Back.

    Args:
        atlas: that has the patch; None where it has gone.
        step: returns whose output it is.
        channel: whose patch.
        rank: of the patch, 0 for the strongest.
        link: channel and cell, as a link has them.
    """
    try:
        top = atlas.top_activations(str(step()), channel) if atlas is not None else ()
    except HookVizError as error:
        st.toast(plain(str(error)), duration="long")
        return
    if atlas is None or not 0 <= rank < len(top):
        return
    best = top[rank]
    image, path, own = best.image, atlas.picture(best.image), own_file(atlas.digest, best.image)
    if path is None and own is not None:
        queue_for_next_run(image.name, own, image.digest)
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
    update_link(**link)
