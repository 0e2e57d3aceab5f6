"""The grid, its figure and its activations as files to download."""

from functools import partial

from hookviz.capturing.export import npz
from hookviz.drawing.grid import Grid
from hookviz.types import Capture, Model
from hookviz.ui.explorer.file_menu import File, file_menu


def show_downloads(grid: Grid, capture: Capture, model: Model) -> None:
    """The grid, the figure for print and the numbers themselves, made when asked for."""
    stem = f"{model.name}-{grid.title}"
    figure = partial(grid.figure_bytes, title=f"{model.title} · {grid.title}")
    file_menu(
        "Download",
        (
            File("Grid as PNG", grid.png, f"{stem}.png", "image/png"),
            File("Figure as PNG", partial(figure, "png"), f"{stem}-figure.png", "image/png"),
            File("Figure as PDF", partial(figure, "pdf"), f"{stem}-figure.pdf", "application/pdf"),
            File(
                "Activations as NPZ",
                partial(npz, capture),
                f"{stem}.npz",
                "application/octet-stream",
            ),
        ),
    )
