"""Offer the grid, its figure and its activations as files to download."""

from collections.abc import Sequence
from functools import partial

from hookviz.capturing.export import npz
from hookviz.drawing.pair import Pair
from hookviz.language.saying import say
from hookviz.ui.explorer.file_menu import File, file_menu
from hookviz.ui.explorer.scene import ExplorerScene, drawn_now
from hookviz.ui.menu import Menu


def download_menu(scene: ExplorerScene) -> Menu:
    """Return a menu of the grid, the figure for print and the numbers, made when asked for."""
    return file_menu(say("Download"), partial(_files, scene))


def _files(scene: ExplorerScene) -> Sequence[File]:
    drawn = drawn_now(scene)
    grid, capture = drawn.own, drawn.capture
    stem = f"{capture.model}-{grid.title}"
    figure = partial(grid.figure_bytes, title=f"{scene.choice.spec.title} · {grid.title}")
    return (
        *(_files_of_pair(drawn.compared.pair, stem) if drawn.compared is not None else ()),
        File(say("Grid as PNG"), grid.png, f"{stem}.png", "image/png"),
        File(say("Figure as PNG"), partial(figure, "png"), f"{stem}-figure.png", "image/png"),
        File(say("Figure as PDF"), partial(figure, "pdf"), f"{stem}-figure.pdf", "application/pdf"),
        File(
            say("Activations as NPZ"),
            partial(npz, capture),
            f"{stem}.npz",
            "application/octet-stream",
        ),
    )


def _files_of_pair(pair: Pair, stem: str) -> Sequence[File]:
    """Return the files of what is compared, as drawn on one scale."""
    grids = {"A": pair.a, "B": pair.b, "B − A": pair.difference}
    return tuple(
        File(
            say("{name} as PNG", name=name),
            grid.png,
            f"{stem}-{name.replace(' − ', '-')}.png",
            "image/png",
        )
        for name, grid in grids.items()
        if grid is not None
    )
