"""The kernel's walk over its input: from the chosen cell, over the real maps, with real sums."""

import re

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from playwright.sync_api import Page, expect

import hookviz
from hookviz.explaining.layers.layer_call import explain_cell
from hookviz.explaining.layers.layer_recorder import record_layer_call
from hookviz.explaining.layers.ranking import strongest_by_contribution
from hookviz.images.samples import samples
from scripts.browsing import wait_for_grid
from tests.e2e.screen import SHAPESNET, read_number

LAYER = "stem.first.conv"


def _products(page: Page) -> NDArray[np.float64]:
    """What the walk multiplies at this step, to three digits."""
    titles = page.locator("table.products td").evaluate_all("cells => cells.map(one => one.title)")
    return np.array([read_number(title) for title in titles])


@pytest.mark.moving
def test_the_walk_starts_at_the_cell_and_its_sums_are_the_values(
    page: Page, server: str, values: torch.Tensor, model: hookviz.Model
) -> None:
    page.goto(f"{server}/{SHAPESNET}&channel=9&cell=62,60,64,64&origin=Walk")
    wait_for_grid(page)
    call = record_layer_call(model, samples()[0].path, "stem.first.conv")
    says = page.locator(".walk .says")
    of_input = page.locator(".walk .input-says")
    expect(of_input).to_contain_text(re.compile(r"input \d"))  # after the grid, and its own answer
    input_channel = int(re.findall(r"input (\d+)", of_input.inner_text())[0])
    for column in (60, 61, 62):
        expect(says).to_contain_text(f"row 62, column {column}:")
        shown = read_number(says.inner_text().rpartition("= ")[2])
        assert shown == pytest.approx(values[9, 62, column].item(), rel=6e-3)
        cell = explain_cell(call, 9, 62, column)
        exact = (cell.kernel * cell.patch)[input_channel].ravel()
        np.testing.assert_allclose(_products(page), exact, rtol=6e-3, atol=1e-9)
        page.get_by_title("One step on").click()
    page.get_by_label("Speed").fill("60")
    page.get_by_role("button", name="Play").click()
    expect(says).to_contain_text("row 63, column 63:", timeout=30_000)
    expect(page.get_by_role("button", name="Play")).to_be_visible()  # it has come to its end
    page.get_by_label("Step of the walk").fill("2")
    expect(says).to_contain_text("row 0, column 2:")


def test_who_wants_no_motion_gets_the_steps_alone_over_the_strongest_input(
    page: Page, server: str, model: hookviz.Model
) -> None:
    page.goto(f"{server}/{SHAPESNET}&channel=9&cell=20,33&origin=Walk&layer=stage1.first.conv")
    wait_for_grid(page)
    call = record_layer_call(model, samples()[0].path, "stage1.first.conv")
    said = page.locator(".walk .input-says")
    input_channel = int(re.findall(r"input (\d+)", said.inner_text())[0])
    assert input_channel == strongest_by_contribution(call, 9)[0][0]
    expect(page.locator("table.kernel td")).to_have_count(9)
    weights = page.locator("table.kernel td").evaluate_all("cells => cells.map(one => one.title)")
    kernel = np.array([read_number(text) for text in weights]).reshape(3, 3)
    np.testing.assert_allclose(kernel, call.kernel[9, input_channel].numpy(), rtol=6e-3, atol=1e-9)
    expect(page.get_by_role("button", name="Play")).to_have_count(0)
