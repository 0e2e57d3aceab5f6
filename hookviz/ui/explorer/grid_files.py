"""The grid, its figure and its activations as files to download."""

from functools import partial

from hookviz.capturing.export import npz
from hookviz.types import Capture, Model
from hookviz.ui.explorer.channels import Drawing
from hookviz.ui.explorer.file_menu import File, file_menu


def show_downloads(drawing: Drawing, capture: Capture, model: Model) -> None:
    """The grid, the figure for print and the numbers themselves, made when asked for."""
    layer = drawing.grid.title
    stem, title = f"{model.name}-{layer}", f"{model.title} · {layer}"

    def picture() -> bytes:
        return drawing.grid.png()

    def figure(kind: str) -> bytes:
        return drawing.grid.figure_bytes(kind, title=title)

    file_menu(
        "Download",
        (
            File("Grid as PNG", picture, f"{stem}.png", "image/png"),
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
