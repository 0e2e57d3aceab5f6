"""Picking channels up: by pointer, by keys, by link; on a desk and on a phone."""

import re
from math import ceil

import pytest
import torch
from playwright.sync_api import Browser, Page, expect

from scripts.automatic_grid import automatic_grid
from scripts.browsing import tiles, wait_for_grid
from tests.e2e.screen import SHAPESNET, choose, new_context, read_number


def point(page: Page, channel: int, row: int = 5, column: int = 7) -> tuple[float, float]:
    """A whole pixel of a cell of a channel on the screen, in the bundled model's first layer.

    A browser's click has whole pixels, and a cell is hardly larger than one.
    """
    box = tiles(page).box(channel)
    return (
        ceil(box["x"] + column / 64 * box["width"]),
        ceil(box["y"] + row / 64 * box["height"]),
    )


def test_hover_reads_the_numbers_of_a_channel_and_the_value_under_the_pointer(
    page: Page, server: str, values: torch.Tensor
) -> None:
    page.goto(f"{server}/{SHAPESNET}")
    wait_for_grid(page)
    channel, row, column = 10, 5, 7
    page.mouse.move(*point(page, channel, row, column))
    line = page.locator("figure output")
    expect(line).to_contain_text(f"channel {channel} · ≈")
    spoken = page.get_by_role("slider", name="Channel").get_attribute("aria-valuetext") or ""
    numbers = spoken.replace("−", "-")
    shown = [float(text) for text in re.findall(r"(?:min|mean|max) (-?[\d.]+)", numbers)]
    exact = values[channel]
    expected = [exact.min().item(), exact.mean().item(), exact.max().item()]
    assert shown == pytest.approx(expected, rel=6e-3)
    said = line.inner_text().replace("−", "-")
    hover = re.search(r"≈ (\S+) at row (\d+), column (\d+)", said)
    assert hover is not None
    assert (int(hover[2]), int(hover[3])) == (row, column)
    grid = automatic_grid(values)
    low, high = grid.limits.low[channel], grid.limits.high[channel]
    clipped = exact[row, column].clamp(float(low), float(high)).item()
    step = float(high - low) / 253
    assert read_number(hover[1]) == pytest.approx(clipped, abs=step)


@pytest.mark.promise
def test_a_click_picks_a_channel_up_and_the_link_keeps_it(
    page: Page, server: str, values: torch.Tensor
) -> None:
    page.goto(f"{server}/{SHAPESNET}")
    wait_for_grid(page)
    page.mouse.click(*point(page, 12))
    heading = page.get_by_role("heading", name="Channel 12")
    expect(heading).to_be_visible()
    assert "channel=12" in page.url
    page.get_by_role("radio", name="Numbers").click()
    numbers = page.locator(".hv-numbers:visible").inner_text().replace("−", "-")
    highest = float(re.search(r"maximum\s+(-?[\d.]+)", numbers)[1])  # type: ignore[index]
    assert highest == pytest.approx(values[12].max().item(), rel=6e-3)
    expect(page.get_by_role("img", name=re.compile("Histogram of 4,096 cells"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("laid over the image"))).to_be_visible()
    page.reload()
    expect(heading).to_be_visible()
    page.get_by_role("button", name="Close").click()
    expect(heading).to_have_count(0)
    assert "channel=" not in page.url


@pytest.mark.promise
def test_keys_move_the_cursor_and_pick(page: Page, server: str) -> None:
    page.goto(f"{server}/{SHAPESNET}")
    wait_for_grid(page)
    stage = page.get_by_role("slider", name="Channel")
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


def test_keys_that_are_not_the_grids_stay_the_browsers(page: Page, server: str) -> None:
    """After a click on a tile, from where Tab once led nowhere and F5 did nothing."""
    page.goto(f"{server}/{SHAPESNET}")
    wait_for_grid(page)
    page.mouse.click(*point(page, 12))
    expect(page.get_by_role("heading", name="Channel 12")).to_be_visible()
    stage = page.get_by_role("slider", name="Channel")
    expect(stage).to_be_focused()
    theirs = ("Tab", "Shift+Tab", "F5", "Escape", "PageDown", "Control+f", "Control+r", "a")
    for keys in theirs:
        prevented = stage.evaluate(
            """(stage, keys) => {
                const [key, modifier] = keys.split("+").reverse();
                const options = {key, bubbles: true, composed: true, cancelable: true};
                options.ctrlKey = modifier === "Control";
                options.shiftKey = modifier === "Shift";
                return !stage.dispatchEvent(new KeyboardEvent("keydown", options));
            }""",
            keys,
        )
        assert not prevented, keys
    page.keyboard.press("Tab")
    expect(stage).not_to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(stage).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(stage).not_to_be_focused()


@pytest.mark.promise
def test_a_tap_works_on_a_phone(browser: Browser, server: str) -> None:
    context = new_context(browser, viewport={"width": 390, "height": 844}, has_touch=True)
    opened = context.new_page()
    opened.goto(f"{server}/{SHAPESNET}")
    wait_for_grid(opened)
    opened.touchscreen.tap(*point(opened, 3))
    expect(opened.get_by_role("heading", name="Channel 3")).to_be_visible()
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()


@pytest.mark.sweep("by day without a browser: tests/ui/explorer/test_inspector.py")
def test_a_link_to_no_channel_shows_the_grid_alone(page: Page, server: str) -> None:
    """Other ways to write none are tried without a browser, in ui/explorer/test_inspector.py."""
    page.goto(f"{server}/{SHAPESNET}&channel=99")
    wait_for_grid(page)
    expect(page.get_by_text("Each tile is a channel")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.promise
def test_a_cell_is_multiplied_out_and_the_link_keeps_it(
    page: Page, server: str, values: torch.Tensor
) -> None:
    page.goto(f"{server}/{SHAPESNET}")
    wait_for_grid(page)
    page.mouse.click(*point(page, 9, 20, 33))
    why, said = page.locator(".why h4"), page.locator(".why .sum")
    expect(why).to_contain_text("at row 20, column 33?")
    expect(said).to_contain_text("as the network computed")
    text = said.inner_text().replace("−", "-")
    computed = read_number(re.search(r"= (\S+), as the network", text)[1])  # type: ignore[index]
    assert computed == pytest.approx(values[9, 20, 33].item(), rel=6e-3)
    expect(page.locator(".why .steps").get_by_text("BatchNorm2d")).to_be_visible()
    assert "cell=20%2C33" in page.url
    page.get_by_role("radio", name="Numbers").click()
    expect(page.get_by_role("spinbutton", name="Row")).to_have_value("20")
    expect(page.get_by_role("spinbutton", name="Column")).to_have_value("33")
    page.reload()
    expect(page.get_by_role("spinbutton", name="Column")).to_have_value("33")
    expect(said).to_have_text(text.replace("-", "−"))
    page.get_by_role("spinbutton", name="Row").fill("21")
    page.keyboard.press("Enter")
    page.wait_for_url("**cell=21%2C33**")
    # a smaller map is looked at in the same place of the photograph
    choose(page, "Layer", "stage3.second.conv")
    expect(page.get_by_role("spinbutton", name="Row")).to_have_value("2")
    expect(why).to_contain_text("at row 2, column 4?")
    expect(said).to_contain_text("as the network computed")
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.sweep("by day a row of the sum leads there: the last test here")
def test_a_strong_input_leads_to_that_channel_of_the_layer_before(page: Page, server: str) -> None:
    page.goto(f"{server}/{SHAPESNET}&layer=stage2.second.conv&channel=5&origin=Kernel")
    before = wait_for_grid(page)
    link = page.get_by_role("button", name=re.compile(r"^input \d+")).first
    number = (re.search(r"input (\d+)", link.inner_text()) or [""])[1]
    link.click()
    wait_for_grid(page, before)
    expect(page.get_by_role("heading", name=f"Channel {number}")).to_be_visible()
    assert "layer=stage2.first.conv" in page.url
    page.goto(
        f"{server}/{SHAPESNET}&channel=5&origin=Kernel"
    )  # the image comes before the first layer, and is no layer
    wait_for_grid(page)
    expect(page.get_by_role("button", name=re.compile(r"^input \d+")).first).to_be_disabled()


def test_a_row_of_the_sum_leads_upstream_and_the_trail_leads_back(page: Page, server: str) -> None:
    page.goto(f"{server}/{SHAPESNET}&layer=stage2.second.conv&channel=5&cell=3,4")
    before = wait_for_grid(page)
    row = page.locator(".why button.row").first
    number = (re.search(r"in (\d+)", row.inner_text()) or [""])[1]
    row.click()
    upstream = wait_for_grid(page, before)
    expect(page.get_by_role("heading", name=f"Channel {number}", exact=True)).to_be_visible()
    expect(page.get_by_role("combobox", name="Layer")).to_have_value("5 · stage2.first.conv")
    page.get_by_role("button", name="channel 5 of stage2.second.conv").click()
    assert wait_for_grid(page, upstream) == before
    expect(page.get_by_role("heading", name="Channel 5", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name=re.compile(r"^channel \d+ of"))).to_have_count(0)
    page.goto(
        f"{server}/{SHAPESNET}&channel=5"
    )  # the image comes before the first layer, and is no layer
    wait_for_grid(page)
    expect(page.locator(".why .row").first).to_be_visible()
    expect(page.locator(".why button.row")).to_have_count(0)
