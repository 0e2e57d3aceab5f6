"""The recipes of docs/hooks.md run, one after the other, and each finds equal numbers."""

import copy
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import prune
from torchvision.models import resnet34

import hookviz
from tests.conftest import hook_count

PAGE = Path(__file__).parent.parent / "docs" / "hooks.md"
BLOCKS = re.findall(r"^## (.+?)\n|^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.S | re.M)


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


@pytest.mark.parametrize(
    ("build", "conv", "head"),
    [(lambda: resnet34(weights=None), "conv1", "fc"), (Own, "first", "last")],
    ids=["resnet34", "own"],
)
@pytest.mark.filterwarnings("ignore:Using a non-full backward hook")
def test_every_recipe_finds_what_plain_pytorch_finds(
    build: Callable[[], nn.Module], conv: str, head: str
) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = build().eval()
        images = torch.randn(2, 3, 48, 48)
        names: dict[str, Any] = {
            "network": network,
            "images": images,
            "conv": conv,
            "head": head,
            "torch": torch,
            "hookviz": hookviz,
            "copy": copy,
            "io": io,
            "prune": prune,
        }
        before = copy.deepcopy(network.state_dict())
        recipe, run = "", 0
        for heading, code in BLOCKS:
            recipe = heading or recipe
            if code:
                assert "assert " in code, recipe
                exec(compile(code, f"docs/hooks.md, {recipe}", "exec"), names)  # noqa: S102
                run += 1
                assert hook_count(network) == 0, recipe
    assert run >= 15
    for name, values in network.state_dict().items():
        assert torch.equal(values, before[name]), name


def test_every_recipe_that_was_promised_is_there() -> None:
    headings = {heading for heading, _ in BLOCKS if heading}
    assert headings == {
        *("Record", "Compare forward with hook", "Change inputs: the pre-hook"),
        *("Change an output", "Change parameters", "A tensor hook", "Gradients of a layer"),
        *("Clamp gradients", "Verbose", "A feature extractor", "Guided backward", "A NaN hunt"),
        *("Prune", "Watch training"),
    }
    text = PAGE.read_text("utf-8")
    assert "register_backward_hook" in text
    assert "its `grad_input` is `None`" in text
