"""Show a table whose rows fold, by click and key, so that a deep network is read from outside."""

from hookviz.drawing.panels import TreePanel
from hookviz.language.saying import localised, say
from hookviz.ui.components.files import component


def tree(panel: TreePanel, key: str) -> None:
    """Show the rows, those below the depth that is shown at first folded away."""
    component("tree")(
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
