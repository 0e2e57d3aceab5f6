"""Write the numbers of a window as they lie in it, as HTML."""

from html import escape

import numpy as np
from numpy.typing import NDArray

from hookviz.lessons.maps import Map
from hookviz.wording import number


def number_table(
    values: Map, title: str, *, taken: int = -1, gone: NDArray[np.bool_] | None = None
) -> str:
    """Return numbers ``(rows, columns)`` as a table with a title.

    Args:
        values: the numbers.
        title: what they are.
        taken: which of them stands out, counted row by row.
        gone: those that are struck through.
    """
    rows = []
    for row, line in enumerate(values):
        cells = ""
        for column, value in enumerate(line):
            is_gone = gone is not None and bool(gone[row, column])
            kind = "taken" if row * len(line) + column == taken else "gone" if is_gone else ""
            cells += f'<td class="{kind}">{number(float(value))}</td>'
        rows.append(f"<tr>{cells}</tr>")
    caption = f"<caption>{escape(title)}</caption>"
    return f'<table class="hv-weights">{caption}{"".join(rows)}</table>'
