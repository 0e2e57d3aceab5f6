"""Show patches of images in a row; a click leads to the image that one is of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st

from hookviz.atlas.top_k import TOP
from hookviz.ui.components.files import component, packed


@dataclass(frozen=True, slots=True)
class Patch:
    """Part of an image.

    Attributes:
        title: what it is of, for the pointer and for who can't see it.
        picture: what it looks like, as a URL.
    """

    title: str
    picture: str


def show_patches(
    key: str, label: str, patches: Sequence[Patch], on_pick: Callable[[int], None]
) -> None:
    """Show the patches; `on_pick` gets the place of the one that is clicked, from 0.

    Args:
        key: of the component in Streamlit's state.
        label: what the group is called to those who do not see it.
        patches: in the order in which they stand.
        on_pick: called before the next run of the page.
    """

    def picked() -> None:
        match st.session_state[key].get("picked"):
            case int(position) if 0 <= position < len(patches):
                on_pick(position)

    items = [{"title": each.title, "picture": each.picture} for each in patches]
    data = packed({"label": label, "items": items, "columns": TOP})
    component("patches")(key=key, data=data, on_picked_change=picked)
