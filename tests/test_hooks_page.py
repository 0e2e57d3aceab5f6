"""The recipes of docs/hooks.md and docs/cookbook.md run in order, and each finds equal numbers.

Those on hooks run on a small network here; tests/test_notebooks.py checks their notebook. The
cookbook's first block makes what its recipes need.
"""

import copy
import io
import os
import re
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune

import hookviz
from scripts import hooks_notebook
from tests.networks import hook_count

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "hooks.md"
CHINESE = ROOT / "docs" / "hooks.zh.md"
COOKBOOK = ROOT / "docs" / "cookbook.md"


def blocks(page: Path = PAGE) -> list[tuple[str, str]]:
    """Headings and programs of a page, one after the other."""
    text = page.read_text("utf-8")
    return re.findall(r"^###? (.+?)\n|^```python\n(.*?)^```", text, re.S | re.M)


class Own(nn.Module):
    """In place, with a shortcut, and a layer that runs twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.act = nn.ReLU(inplace=True)
        self.again = nn.Conv2d(8, 8, 3, padding=1)
        self.last = nn.Linear(8, 5)

    def forward(self, images: Tensor) -> Tensor:
        values = self.act(self.first(images))
        values = values + self.again(self.act(self.again(values)))
        scores: Tensor = self.last(values.mean((2, 3)))
        return scores


def names_of_ones_own() -> dict[str, Any]:
    torch.manual_seed(0)
    network, images = Own().eval(), torch.randn(2, 3, 48, 48)
    namespace = {"network": network, "images": images, "conv": "first", "head": "last"}
    return namespace | {"torch": torch, "hookviz": hookviz, "copy": copy, "io": io, "prune": prune}


def names_of_the_cookbook() -> dict[str, Any]:
    names: dict[str, Any] = {}
    os.chdir(ROOT)
    exec(next(code for _, code in blocks(COOKBOOK) if code), names)  # noqa: S102
    return names


@pytest.mark.parametrize(
    ("page", "given"),
    [
        (PAGE, names_of_ones_own),
        (COOKBOOK, names_of_the_cookbook),
    ],
)
@pytest.mark.filterwarnings("ignore:Using a non-full backward hook")
def test_every_recipe_finds_what_plain_pytorch_finds(
    page: Path,
    given: Callable[[], dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(ROOT / "examples")  # where the notebook runs; it goes to the checkout
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with torch.random.fork_rng(devices=[]):
        names = given()
        before = copy.deepcopy(names["network"].state_dict())
        recipe, run = "", 0
        for heading, code in blocks(page):
            recipe = heading or recipe
            if code and ("transformers" not in code or find_spec("transformers")):
                assert "assert " in code, recipe
                exec(compile(code, f"{page.name}, {recipe}", "exec"), names)  # noqa: S102
                run += 1
                assert hook_count(names["network"]) == 0, recipe
    assert run >= 15
    for name, values in names["network"].state_dict().items():
        assert torch.equal(values, before[name]), name


def test_every_recipe_is_there_with_its_program() -> None:
    text = COOKBOOK.read_text("utf-8")
    recipes = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    assert len(recipes) >= 30
    assert all(recipe.count("```python") == 1 for recipe in recipes)
    headings = {heading for heading, _ in blocks() if heading}
    assert headings == {
        *("Record", "Compare forward with hook", "Change inputs: the pre-hook"),
        *("Change an output", "Change parameters", "A tensor hook", "Gradients of a layer"),
        *("Clamp gradients", "Verbose", "A feature extractor", "Guided backward", "A NaN hunt"),
        *("Prune", "Watch training", "Why hooks, and which", "Freeze a pass"),
    }
    text = PAGE.read_text("utf-8")
    assert "register_backward_hook" in text
    assert "its `grad_input` is `None`" in text


@pytest.mark.parametrize("file", [PAGE, CHINESE, hooks_notebook.NOTEBOOK])
def test_the_pictures_are_where_a_page_and_the_notebook_look_for_them(file: Path) -> None:
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", file.read_text("utf-8"))
    assert pictures
    assert all((file.parent / picture).is_file() for picture in pictures)


def test_the_page_on_comparing_runs_and_its_words_on_few_images_are_true(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    programs = [code for _, code in blocks(ROOT / "docs" / "compare.md") if code]
    assert len(programs) >= 6
    names: dict[str, Any] = {}
    for program in programs:
        exec(program, names)  # noqa: S102
    assert names["alike"].note
