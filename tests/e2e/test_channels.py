"""Picking channels up: by pointer, by keys, by link; on a desk and on a phone."""

import re
from math import ceil

import pytest
import torch
from playwright.sync_api import Page, expect

from scripts.automatic_grid import automatic_grid
from scripts.browsing import tiles, wait_for_grid
from tests.e2e.screen import SHAPESNET, choose, read_number


def point(page: Page, channel: int, row: int, column: int) -> tuple[float, float]:
    """A whole pixel of a cell of a channel on the screen, in the bundled model's first layer.

    A browser's click has whole pixels, and a cell is hardly larger than one.
    """
    box = tiles(page).box(channel)
    return (
        ceil(box["x"] + column / 64 * box["width"]),
        ceil(box["y"] + row / 64 * box["height"]),
    )


@pytest.mark.promise
def test_keys_move_the_cursor_and_pick(page: Page, server: str) -> None:
    page.goto(f"{server}/{SHAPESNET}")
    wait_for_grid(page)
    stage = page.get_by_role("slider", name="Channel")
    assert page.evaluate("document.activeElement === document.body")
    page.keyboard.press("ArrowRight")  # whatever has the focus
    expect(stage).to_have_attribute("aria-valuenow", "1")
    stage.focus()
    columns = tiles(page).columns
    moves = (("End", 31), ("ArrowUp", 31 - columns), ("ArrowLeft", 30 - columns), ("Home", 0))
    for key, place in moves:
        page.keyboard.press(key)
        expect(stage).to_have_attribute("aria-valuenow", str(place))
    page.keyboard.press("ArrowLeft")  # there is nothing to the left of the first
    expect(stage).to_have_attribute("aria-valuenow", "0")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=f"Channel {columns}")).to_be_visible()
    stage.focus()
    page.keyboard.press("/")
    page.keyboard.type("99")
    page.keyboard.press("Enter")
    expect(page.locator("figure output")).to_contain_text("no channel 99")
    page.get_by_role("textbox", name="channel").fill("30")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Channel 30")).to_be_visible()
    expect(stage).to_have_attribute("aria-valuetext", re.compile("channel 30.*selected"))


@pytest.mark.promise
def test_a_cell_is_read_and_picked_and_multiplied_out_and_the_link_keeps_it(
    page: Page, server: str, values: torch.Tensor
) -> None:
    page.goto(f"{server}/{SHAPESNET}&channel=99")  # of which there is none: the grid alone
    wait_for_grid(page)
    expect(page.get_by_text("Each tile is a channel")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_text(
        "stem.first.conv has no channel 99: its channels are 0 to 31."
    )
    channel, row, column = 9, 20, 33
    there = point(page, channel, row, column)
    page.mouse.move(*there)
    line = page.locator("figure output")
    expect(line).to_contain_text(f"channel {channel} · ≈")
    spoken = page.get_by_role("slider", name="Channel").get_attribute("aria-valuetext") or ""
    numbers = spoken.replace("−", "-")
    shown = [float(text) for text in re.findall(r"(?:min|mean|max) (-?[\d.]+)", numbers)]
    exact = values[channel]
    expected = [exact.min().item(), exact.mean().item(), exact.max().item()]
    assert shown == pytest.approx(expected, rel=6e-3)
    hover = re.search(r"≈ (\S+) at row (\d+), column (\d+)", line.inner_text())
    assert hover is not None
    assert (int(hover[2]), int(hover[3])) == (row, column)
    grid = automatic_grid(values)
    low, high = float(grid.limits.low[channel]), float(grid.limits.high[channel])
    clipped = exact[row, column].clamp(low, high).item()
    assert read_number(hover[1]) == pytest.approx(clipped, abs=(high - low) / 253)

    page.mouse.click(*there)
    heading = page.get_by_role("heading", name="Channel 9", exact=True)
    expect(heading).to_be_visible()
    expect(page).to_have_url(re.compile("channel=9&"))
    assert "cell=20%2C33" in page.url
    why, said = page.locator(".why h4"), page.locator(".why .sum")
    expect(why).to_contain_text("at row 20, column 33?")
    expect(said).to_contain_text("as the network computed")
    text = said.inner_text()
    computed = read_number(re.search(r"= (\S+), as the network", text)[1])  # type: ignore[index]
    assert computed == pytest.approx(exact[row, column].item(), rel=6e-3)
    expect(page.locator(".why .steps").get_by_text("BatchNorm2d")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("laid over the image"))).to_be_visible()
    page.get_by_role("radio", name="Numbers").click()
    expect(page.get_by_role("spinbutton", name="Row")).to_have_value("20")
    page.reload()
    expect(page.get_by_role("spinbutton", name="Column")).to_have_value("33")
    expect(said).to_have_text(text)
    page.get_by_role("spinbutton", name="Row").fill("21")
    page.keyboard.press("Enter")
    page.wait_for_url("**cell=21%2C33**")
    # a smaller map is looked at in the same place of the photograph
    choose(page, "Layer", "stage3.second.conv")
    expect(page.get_by_role("spinbutton", name="Row")).to_have_value("2")
    expect(why).to_contain_text("at row 2, column 4?")
    page.get_by_role("button", name="Close").click()
    expect(heading).to_have_count(0)
    assert "channel=" not in page.url


def test_what_a_cell_is_made_of_leads_upstream_and_the_trail_back_with_the_focus(
    page: Page, server: str
) -> None:
    page.goto(f"{server}/{SHAPESNET}&layer=stage2.second.conv&channel=5&cell=3,4")
    before = wait_for_grid(page)
    row = page.locator(".why button.row").first
    number = (re.search(r"in (\d+)", row.inner_text()) or [""])[1]
    row.focus()
    page.keyboard.press("Enter")
    upstream = wait_for_grid(page, before)
    expect(page.get_by_role("heading", name=f"Channel {number}", exact=True)).to_be_focused()
    page.get_by_role("button", name="channel 5 of stage2.second.conv").focus()
    page.keyboard.press("Enter")
    assert wait_for_grid(page, upstream) == before
    title = page.get_by_role("heading", name="Channel 5", exact=True)
    expect(title).to_be_focused()
    expect(page.get_by_role("button", name=re.compile(r"^channel \d+ of"))).to_have_count(0)

    page.get_by_role("radio", name="Kernel").click()
    strongest = page.get_by_role("button", name=re.compile(r"^input \d+")).first
    number = (re.search(r"input (\d+)", strongest.inner_text()) or [""])[1]
    strongest.click()
    assert wait_for_grid(page, before) == upstream
    expect(page.get_by_role("heading", name=f"Channel {number}", exact=True)).to_be_visible()
    page.go_back()
    wait_for_grid(page, upstream)
    choose(page, "Layer", "stem.first.conv")  # before which the image comes, and is no layer
    wait_for_grid(page, before)
    expect(strongest).to_be_disabled()
    expect(page.locator(".why button.row")).to_have_count(0)
    page.get_by_role("button", name="Close").focus()
    page.keyboard.press("Enter")
    expect(title).to_be_hidden()
    expect(page.locator("figure .stage")).to_be_focused()
