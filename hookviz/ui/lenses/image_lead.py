"""From an image in a lens to that image on the page, where the session has a way to it."""

from collections.abc import Callable
from functools import cache, partial

import streamlit as st

from hookviz.images import reading
from hookviz.images.samples import samples
from hookviz.ui.recent_images import recent_images
from hookviz.ui.state import choose, choose_sample, choose_upload


def lead_to_image(digest: str, shown: str) -> Callable[[], None] | None:
    """What looks at the image of that digest; None where it is neither a sample nor a recent one.

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
    _choose_origin("Upload")
    choose_upload(name)


def _look_at_sample(name: str) -> None:
    _choose_origin("Samples")
    choose_sample(name)


def _choose_origin(origin: str) -> None:
    """Have the sidebar offer such images, where it offers others."""
    if st.session_state.get("image") != origin:
        choose(image=origin)


@cache
def _samples() -> dict[str, str]:
    """The samples' names by their digests."""
    return {reading.read(sample.path).digest: sample.name for sample in samples()}
