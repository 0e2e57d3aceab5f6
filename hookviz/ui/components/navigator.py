"""Show the network's layers as a tree, with small pictures and facts, to find and pick one."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from hookviz.ui.components.files import component, packed


def navigator(tree: Mapping[str, Any], on_pick: Callable[[str], None]) -> None:
    """Show a tree of layers; `on_pick` gets the name of the one that a person picks.

    Args:
        tree: by `hookviz.explorer.tree.tree_of`.
        on_pick: gets what the browser sent, any text.
    """

    def picked() -> None:
        name = st.session_state["navigator"].get("picked")
        if isinstance(name, str):
            on_pick(name)

    component("navigator")(key="navigator", data=packed(tree), on_picked_change=picked)
