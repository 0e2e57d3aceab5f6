"""The notebooks in `examples` run from a fresh checkout, and are kept without their outputs."""

import ast
from pathlib import Path
from typing import Any

import pytest

from scripts import hooks_notebook
from tests.loops import in_a_loop_of_its_own

EXAMPLES = Path(__file__).parent.parent / "examples"


def read(path: Path) -> Any:
    import nbformat  # noqa: PLC0415

    return nbformat.reads(path.read_text("utf-8"), as_version=4)  # type: ignore[no-untyped-call]


def code_cells(book: Any) -> list[Any]:
    return [cell for cell in book.cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_no_output_is_kept(path: Path) -> None:
    cells = code_cells(read(path))
    assert all(not cell.outputs and cell.execution_count is None for cell in cells)


WIDGET = "application/vnd.jupyter.widget-view+json"


NAMES = ("first_look.ipynb", "look_while_it_trains.ipynb", "picture_to_figure.ipynb")


@pytest.fixture(scope="module")
def ran() -> dict[str, list[Any]]:
    """The code cells of notebooks that were run one after the other in a kernel.

    It forgets all names between them, and so what one needs of another is missing.
    """
    import nbformat  # noqa: PLC0415
    from nbclient import NotebookClient  # noqa: PLC0415

    books = {name: read(EXAMPLES / name) for name in NAMES}
    whole = nbformat.v4.new_notebook()  # type: ignore[no-untyped-call]
    for book in books.values():
        forget = nbformat.v4.new_code_cell("%reset -f")  # type: ignore[no-untyped-call]
        whole.cells += [forget, *book.cells]
    client = NotebookClient(
        whole, timeout=120, kernel_name="python3", resources={"metadata": {"path": EXAMPLES}}
    )
    in_a_loop_of_its_own(client.async_execute())
    return {name: code_cells(book) for name, book in books.items()}


def test_the_first_look_shows_pictures_and_tables(ran: dict[str, list[Any]]) -> None:
    shown = [
        set(output.data) - {"text/plain"}
        for cell in ran["first_look.ipynb"]
        for output in cell.outputs
        if output.output_type in ("execute_result", "display_data")
    ]
    assert shown == [
        {"image/png"},  # of the capture, and its explorer
        {WIDGET},
        set(),
        {"image/png"},
        {"image/png"},
        {"text/html"},
    ]


def texts(cells: list[Any]) -> list[str]:
    """What cells wrote or returned, as text."""
    outputs = [output for cell in cells for output in cell.outputs]
    return [each.text if "text" in each else each.data.get("text/plain", "") for each in outputs]


def test_every_recipe_of_the_page_on_hooks_is_in_its_notebook() -> None:
    """Its cells are run in test_hooks_page.py, where no kernel has to start."""
    assert hooks_notebook.NOTEBOOK.read_text("utf-8") == hooks_notebook.notebook(), (
        "python -m scripts.hooks_notebook writes it anew"
    )
    first, *recipes = (ast.parse(cell.source) for cell in code_cells(read(hooks_notebook.NOTEBOOK)))
    assert isinstance(first.body[-1], ast.Assign)  # and so it shows nothing
    assert {type(recipe.body[-1]) for recipe in recipes} == {ast.Assert}


def test_a_network_is_looked_into_while_it_trains(ran: dict[str, list[Any]]) -> None:
    cells = ran["look_while_it_trains.ipynb"]
    [[first, widget], told, *_] = [cell.outputs for cell in cells[1:]]
    assert "image/png" in first.data
    assert WIDGET in widget.data
    epochs = "".join(each.text for each in told).splitlines()
    moved = {line.rpartition(" ")[2] for line in epochs}  # each time
    assert len(moved) == len(epochs) == 8
    losses = [float(line.split("loss ")[1].split(",")[0]) for line in epochs]
    assert losses[-1] < 0.3 < losses[0]
    assert texts(cells)[-2] == "True"  # as a plain hook has it


def test_a_picture_becomes_a_figure(ran: dict[str, list[Any]]) -> None:
    cells = ran["picture_to_figure.ipynb"]
    shown, widget, chosen, page, file, own = (each for cell in cells for each in cell.outputs)
    assert "image/png" in shown.data
    assert WIDGET in widget.data
    assert "'channel': '5'" in chosen.data["text/plain"]
    assert file.text == "True\n"
    assert "image/png" in page.data
    assert "image/png" in own.data
