import numpy as np
import pytest

import hookviz
from hookviz.drawing.panels import TablePanel
from hookviz.ui.components import panels
from hookviz.ui.components.panels import in_theme, is_on_board


def test_a_small_table_stands_among_pictures() -> None:
    for rows, columns, drawn in ((5, 4, True), (11, 4, False), (5, 5, False)):
        table = TablePanel("a", ("x",) * columns, ((1,) * columns,) * rows)
        assert is_on_board(table) is drawn


def test_in_the_dark_grids_are_dark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panels, "diverging", lambda: "berlin")
    monkeypatch.setattr(panels, "sequential", lambda: "inferno")
    values = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    for signed, scale, name in ((True, "symmetric", "berlin"), (False, "layer", "inferno")):
        grid = in_theme(hookviz.make_grid(values - 4 * signed, scale=scale))
        assert grid.colormap.name == name
        zero = grid.palette[len(grid.palette) // 2 if signed else 0, :3]
        assert zero.max() < 64
    chosen = hookviz.make_grid(values, colormap="cividis")
    assert in_theme(chosen) is chosen
