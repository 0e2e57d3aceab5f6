"""Show the tree of layers at the side of a lens or a stream, where no explorer asks for it."""

from collections.abc import Sequence

import streamlit as st

from hookviz.explorer.subject import Subject
from hookviz.explorer.tree import tree_of
from hookviz.types import LayerInfo
from hookviz.ui.components.navigator import navigator
from hookviz.ui.explorer.layer_choice import choose_layer


def show_tree(
    subject: Subject,
    layers: Sequence[LayerInfo],
    layer: LayerInfo,
    listed: str | None,
) -> None:
    """Show the layers by stage, or by block, `layer` marked.

    `listed` says which list of layers they are, where it is not a lens that offers them. It takes
    a while for a network that is seen first.
    """
    names = {each.name for each in layers}
    with st.sidebar:
        facts = tree_of(subject, layers, layer.name, of_all=listed == "maps")
        navigator(facts, lambda name: choose_layer(name, names, listed))
