"""Hold what a lens found: its panels and the numbers behind them."""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hookviz.drawing.panels import Panel
from hookviz.paths import write_whole
from hookviz.types import Model

NUMBERS = "values.npz"
"""The file of a result's numbers."""


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


def save_result(result: LensResult, folder: Path, model: Model) -> list[Path]:
    """Write every panel as a file into a folder, and the numbers as `NUMBERS`, the last.

    Args:
        result: what a lens found.
        folder: which is made.
        model: the model that was looked at.

    Returns:
        The paths of what was written.

    Raises:
        OSError: the system refuses it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for number, panel in enumerate(result.panels, 1):
        file = panel.file(f"{number}-{result.lens}", model)
        if file is not None:
            written.append(folder / file.name)
            written[-1].write_bytes(file.data)
    write_whole(folder / NUMBERS, result.npz())
    return [*written, folder / NUMBERS]
