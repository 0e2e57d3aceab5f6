"""A table whose rows fold, by click and by key, so that a deep network is read from the outside."""

from functools import cache
from typing import Any

import streamlit as st

from hookviz.drawing.tree_panel import TreePanel
from hookviz.language.saying import localised, say
from hookviz.ui.components.files import script, source


@cache
def _component() -> Any:
    return st.components.v2.component("hookviz_tree", css=source("tree.css"), js=script("tree.js"))


def tree(panel: TreePanel, key: str) -> None:
    """Show the rows, those below the depth that is shown at first folded away."""
    _component()(
        key=key,
        data={
            "title": panel.title,
            "columns": list(map(say, panel.columns)),
            "rows": [
                [cell if isinstance(cell, str) else localised(f"{cell:,}") for cell in row]
                for row in panel.rows
            ],
            "numbers": [
                any(not isinstance(cell, str) for cell in column)
                for column in zip(*panel.rows, strict=True)
            ],
            "depths": list(panel.depths),
            "shown": panel.shown_depth,
        },
    )
