"""Write the recipes of docs/hooks.md as a notebook: ``python -m scripts.hooks_notebook``.

What the page says is a cell of text, and every block of code one to run.
"""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "hooks.md"
NOTEBOOK = ROOT / "examples" / "hook_recipes.ipynb"

_GIVEN = """\
import copy
import io
import os
from pathlib import Path

import torch
from torch.nn.utils import prune
from torchvision.models import resnet34

if not Path("hookviz").is_dir():
    os.chdir("..")  # to the checkout

import hookviz

torch.manual_seed(0)
network = resnet34(weights=None).eval()  # or any other network of your own
images = torch.randn(2, 3, 48, 48)  # (N, C, H, W)
conv, head = "conv1", "fc"  # its first layer and its last"""


def notebook() -> str:
    """Return the notebook's file."""
    page = PAGE.read_text("utf-8").replace("](pictures/", "](../docs/pictures/")
    parts = re.split(r"^```python\n(.*?)^```\n", page, flags=re.S | re.M)
    cells = [_cell("markdown", 0, parts[0]), _cell("code", 1, _GIVEN)]
    cells += [
        _cell("code" if at % 2 else "markdown", at + 1, part)
        for at, part in enumerate(parts[1:], 1)
        if part.strip()
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    book = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(book, ensure_ascii=False, indent=1) + "\n"


def _cell(kind: str, number: int, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "cell_type": kind,
        "id": f"cell-{number}",
        "metadata": {},
        "source": text.strip("\n").splitlines(keepends=True),
    }
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


if __name__ == "__main__":
    NOTEBOOK.write_text(notebook(), "utf-8")
