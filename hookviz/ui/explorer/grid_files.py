"""Offer the figure first, which people put into a paper, then the grid and its activations."""

from collections.abc import Sequence
from functools import partial

from hookviz.capturing.export import npz
from hookviz.drawing.pair import Pair
from hookviz.explorer.rendering import RenderedGrid
from hookviz.language.saying import say
from hookviz.ui.explorer.file_menu import File, offer
from hookviz.ui.explorer.page_file import offer_page
from hookviz.ui.explorer.scene import ExplorerScene, drawn_now
from hookviz.ui.menu import Menu


def download_menu(scene: ExplorerScene) -> Menu:
    """Return a menu of figure, grid, numbers and page, each made when it is asked for."""
    label = say("Download")
    return Menu(label, "download", f"menu-{label}", partial(_fill, scene))


def _fill(scene: ExplorerScene) -> None:
    drawn = drawn_now(scene)
    offer(_files(scene, drawn))
    offer_page(scene, drawn.resolved.layers)


def _files(scene: ExplorerScene, drawn: RenderedGrid) -> Sequence[File]:
    grid, capture = drawn.own, drawn.capture
    stem = f"{capture.model}-{grid.title}"
    figure = partial(grid.figure_bytes, title=f"{scene.choice.spec.title} · {grid.title}")
    return (
        File(say("Figure as PNG"), partial(figure, "png"), f"{stem}-figure.png", "image/png"),
        File(say("Figure as PDF"), partial(figure, "pdf"), f"{stem}-figure.pdf", "application/pdf"),
        File(say("Grid as PNG"), grid.png, f"{stem}.png", "image/png"),
        *(_files_of_pair(drawn.compared.pair, stem) if drawn.compared is not None else ()),
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
