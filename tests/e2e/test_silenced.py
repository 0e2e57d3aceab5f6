"""From channels switched off in a lens to the network without them beside the whole one."""

import re

import pytest
import torch
from playwright.sync_api import Page, expect

import hookviz
from hookviz.images.samples import samples
from scripts.browsing import STAGE, wait_for_grid
from tests.e2e.screen import SHAPESNET, at_rest, choose, expect_caption, link_of, read_numbers

EDITED, WATCHED = "stage1.first.conv", "stage1.second.conv"
CHANNELS = [3, 13]


def difference() -> torch.Tensor:
    """What the watched layer has more with the channels' weights at 0, by plain PyTorch."""
    values = []
    for silent in (False, True):
        model = hookviz.load_model("shapesnet")
        network = model.network
        if silent:
            with torch.no_grad():
                network.get_submodule(EDITED).weight[CHANNELS] = 0  # type: ignore[operator]
        seen: list[torch.Tensor] = []
        network.get_submodule(WATCHED).register_forward_hook(
            lambda _module, _given, output, seen=seen: seen.append(output[0])
        )
        with torch.inference_mode():
            network(hookviz.capture(model, samples()[0].path, EDITED).input)
        values.append(seen[-1])
    return values[1] - values[0]


def test_an_ablation_is_b_in_the_explorer_and_in_the_link(page: Page, server: str) -> None:
    page.goto(f"{server}/{SHAPESNET}&lens=ablate&layer={EDITED}")
    page.get_by_role("textbox", name="Channels").fill("3, 13")
    page.get_by_role("textbox", name="Channels").press("Enter")
    expect(page.get_by_text(f"{EDITED}: channels 3, 13 switched off")).to_be_visible()
    page.get_by_role("button", name="Compare in the explorer").click()
    said = f"A Cat · ShapesNet · {WATCHED} B ShapesNet without 2 channels of {EDITED}"
    expect_caption(page, said)
    expect_caption(page, f"Silent: 2 channels of {EDITED} (3, 13)")
    query = link_of(page)
    assert query["silenced"] == f"{EDITED}:3,13"
    assert "lens" not in query

    group = page.get_by_role("radiogroup", name="What is shown of the two")
    group.get_by_text("Difference", exact=True).click()
    expect_caption(page, "B − A: red where B is higher, blue where A is.")
    choose(page, "Sort by", "change")
    at_rest(page)
    change = difference()
    most = int(change.double().abs().mean((1, 2)).argmax())
    stage = page.locator(STAGE)
    expect(stage).to_have_attribute("aria-valuetext", re.compile(f"^channel {most} "))
    numbers = read_numbers(stage.get_attribute("aria-valuetext") or "")[1:4]
    exact = change[most]
    expected = [exact.min().item(), exact.mean().item(), exact.max().item()]
    assert numbers == pytest.approx(expected, rel=6e-3, abs=1e-3)

    grid = wait_for_grid(page)
    page.reload()
    expect_caption(page, said)
    assert wait_for_grid(page) == grid

    page.get_by_role("button", name="Bring them back").click()
    expect(page.get_by_text("Silent:")).to_have_count(0)
    expect_caption(page, "A is what you look at")
    assert "silenced" not in link_of(page)
    page.go_back()
    expect_caption(page, said)
