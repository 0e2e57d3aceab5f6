"""Hold what a lens found: its panels and the numbers behind them."""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.panels import Panel


@dataclass(frozen=True, eq=False, slots=True)
class LensResult:
    """Result of one run of a lens: panels to show and the numbers behind them.

    Attributes:
        lens: its slug.
        panels: what to show, in this order.
        values: the numbers themselves by name.
        chosen: the parameters that it ran with, defaults filled in.
        seconds: how long it took.
    """

    lens: str
    panels: tuple[Panel, ...]
    values: Mapping[str, NDArray[Any]] = field(repr=False)
    chosen: Mapping[str, Any]
    seconds: float

    def npz(self) -> bytes:
        """Write the numbers as an NPZ file, which ``numpy.load`` reads."""
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **dict(self.values))
        return file.getvalue()

    def _repr_html_(self) -> str:
        """Return the panels as HTML, for a notebook."""
        return "".join(panel.html() for panel in self.panels)
