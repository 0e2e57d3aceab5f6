"""The notebooks in `examples` run from a fresh checkout, and are kept without their outputs."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.conftest import in_a_loop_of_its_own

EXAMPLES = Path(__file__).parent.parent / "examples"


def read(path: Path) -> Any:
    return nbformat.reads(path.read_text("utf-8"), as_version=4)  # type: ignore[no-untyped-call]


def code_cells(book: Any) -> list[Any]:
    return [cell for cell in book.cells if cell.cell_type == "code"]


def test_there_is_one() -> None:
    assert (EXAMPLES / "first_look.ipynb").is_file()


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_no_output_is_kept(path: Path) -> None:
    cells = code_cells(read(path))
    assert all(not cell.outputs and cell.execution_count is None for cell in cells)


def test_the_first_look_shows_pictures_and_tables() -> None:
    book = read(EXAMPLES / "first_look.ipynb")
    client = NotebookClient(
        book, timeout=120, kernel_name="python3", resources={"metadata": {"path": EXAMPLES}}
    )
    in_a_loop_of_its_own(client.async_execute())
    shown = [
        set(output.data)
        for cell in code_cells(book)
        for output in cell.outputs
        if output.output_type == "execute_result"
    ]
    assert [each - {"text/plain"} for each in shown] == [
        {"text/html"},
        set(),
        {"image/png"},
        {"image/png"},
        {"text/html"},
    ]
