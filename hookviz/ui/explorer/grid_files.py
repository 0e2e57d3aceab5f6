"""The grid, its figure and its activations as files to download."""

from collections.abc import Sequence
from functools import partial

from hookviz.capturing.export import npz
from hookviz.types import Model
from hookviz.ui.explorer.channels import Drawing
from hookviz.ui.explorer.file_menu import File, file_menu
from hookviz.ui.explorer.menu import Menu


def download_menu(drawing: Drawing, model: Model) -> Menu:
    """The grid, the figure for print and the numbers themselves, made when asked for."""
    return file_menu("Download", partial(_files, drawing, model.name, model.title))


def _files(drawing: Drawing, name: str, title: str) -> Sequence[File]:
    grid = drawing.grid
    if grid is None:
        return ()
    stem = f"{name}-{grid.title}"
    figure = partial(grid.figure_bytes, title=f"{title} · {grid.title}")
    return (
        File("Grid as PNG", grid.png, f"{stem}.png", "image/png"),
        File("Figure as PNG", partial(figure, "png"), f"{stem}-figure.png", "image/png"),
        File("Figure as PDF", partial(figure, "pdf"), f"{stem}-figure.pdf", "application/pdf"),
        File(
            "Activations as NPZ",
            partial(npz, drawing.capture),
            f"{stem}.npz",
            "application/octet-stream",
        ),
    )
