"""Picking channels up: by pointer, by keys, by link; on a desk and on a phone."""

import re

import pytest
import torch
from playwright.sync_api import Browser, FloatRect, Page, expect

import hookviz
from hookviz.images.samples import samples
from scripts.browsing import wait_for_grid
from tests.e2e.screen import choose


@pytest.fixture(scope="module")
def values() -> torch.Tensor:
    model = hookviz.load_model("shapesnet")
    cap = hookviz.capture(model, samples()[0].path, "stem.first.conv")
    return cap["stem.first.conv"].values


def settled_box(page: Page) -> FloatRect:
    """Where the grid is, once nothing above it is still loading and moving it."""
    picture, last = page.locator("figure img.picture"), None
    for _ in range(40):
        box = picture.bounding_box()
        if box is not None and box == last:
            return box
        last = box
        page.wait_for_timeout(250)
    return pytest.fail("the grid never came to rest")


def point(page: Page, channel: int, row: int = 5, column: int = 7) -> tuple[float, float]:
    """The middle of a cell of a channel on the screen, in the bundled model's first layer."""
    geometry = hookviz.make_grid(torch.zeros(32, 64, 64)).geometry
    left, top, _, _ = geometry.box(channel)
    box = settled_box(page)
    x = left + (column + 0.5) * geometry.magnification
    y = top + (row + 0.5) * geometry.magnification
    return (
        box["x"] + x / geometry.width * box["width"],
        box["y"] + y / geometry.height * box["height"],
    )


def test_hover_reads_the_numbers_of_a_channel_and_the_value_under_the_pointer(
    page: Page, server: str, values: torch.Tensor
) -> None:
    page.goto(f"{server}/?model=ShapesNet")
    wait_for_grid(page)
    channel, row, column = 10, 5, 7
    page.mouse.move(*point(page, channel, row, column))
    line = page.locator("figure output")
    expect(line).to_contain_text(f"channel {channel} ·")
    said = line.inner_text().replace("−", "-")
    shown = [float(text) for text in re.findall(r"(?:min|mean|max) (-?[\d.]+)", said)]
    exact = values[channel]
    expected = [exact.min().item(), exact.mean().item(), exact.max().item()]
    assert shown == pytest.approx(expected, rel=6e-3)
    place = re.search(r"≈ (-?[\d.e-]+) at row (\d+), column (\d+)", said)
    assert place is not None
    assert (int(place[2]), int(place[3])) == (row, column)
    grid = hookviz.make_grid(values, scale="percentile")
    low, high = grid.limits.low[channel], grid.limits.high[channel]
    clipped = exact[row, column].clamp(float(low), float(high)).item()
    step = float(high - low) / 253
    assert float(place[1]) == pytest.approx(clipped, abs=step)


def test_a_click_picks_a_channel_up_and_the_link_keeps_it(
    page: Page, server: str, values: torch.Tensor
) -> None:
    page.goto(f"{server}/?model=ShapesNet")
    wait_for_grid(page)
    page.mouse.click(*point(page, 12))
    heading = page.get_by_role("heading", name="Channel 12")
    expect(heading).to_be_visible()
    assert "channel=12" in page.url
    numbers = page.locator(".hv-numbers").inner_text().replace("−", "-")
    highest = float(re.search(r"maximum\s+(-?[\d.]+)", numbers)[1])  # type: ignore[index]
    assert highest == pytest.approx(values[12].max().item(), rel=6e-3)
    expect(page.get_by_role("img", name=re.compile("Histogram of 4,096 cells"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("laid over the image"))).to_be_visible()
    page.reload()
    expect(heading).to_be_visible()
    page.get_by_role("button", name="Close").click()
    expect(heading).to_have_count(0)
    assert "channel=" not in page.url


def test_keys_move_the_cursor_and_pick(page: Page, server: str) -> None:
    page.goto(f"{server}/?model=ShapesNet")
    wait_for_grid(page)
    stage = page.get_by_role("slider", name="Channel")
    stage.focus()
    for key, place in (("End", 31), ("ArrowUp", 23), ("ArrowLeft", 22), ("Home", 0)):
        page.keyboard.press(key)
        expect(stage).to_have_attribute("aria-valuenow", str(place))
    page.keyboard.press("ArrowLeft")  # there is nothing to the left of the first
    expect(stage).to_have_attribute("aria-valuenow", "0")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Channel 8")).to_be_visible()
    stage.focus()
    page.keyboard.press("/")
    page.keyboard.type("99")
    page.keyboard.press("Enter")
    expect(page.locator("figure output")).to_contain_text("no channel 99")
    page.locator("figure input").fill("30")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Channel 30")).to_be_visible()
    expect(stage).to_have_attribute("aria-valuetext", re.compile("channel 30.*selected"))


def test_a_tap_works_on_a_phone(browser: Browser, server: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True)
    opened = context.new_page()
    opened.goto(f"{server}/?model=ShapesNet")
    wait_for_grid(opened)
    opened.touchscreen.tap(*point(opened, 3))
    expect(opened.get_by_role("heading", name="Channel 3")).to_be_visible()
    assert opened.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()


@pytest.mark.parametrize("channel", ["99", "-1", "x", "²", "1e3", "9" * 40])
def test_a_link_to_no_channel_shows_the_grid_alone(page: Page, server: str, channel: str) -> None:
    page.goto(f"{server}/?model=ShapesNet&channel={channel}")
    wait_for_grid(page)
    expect(page.get_by_text("Click a channel")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_cell_is_multiplied_out_and_the_link_keeps_it(
    page: Page, server: str, values: torch.Tensor
) -> None:
    page.goto(f"{server}/?model=ShapesNet")
    wait_for_grid(page)
    page.mouse.click(*point(page, 9, 20, 33))
    said = page.get_by_text("The network computed")
    expect(said).to_be_visible()
    expect(page.get_by_role("spinbutton", name="Row")).to_have_value("20")
    expect(page.get_by_role("spinbutton", name="Column")).to_have_value("33")
    text = said.inner_text().replace("−", "-")
    computed = float(re.search(r"The network computed (-?[\d.e-]+\d)", text)[1])  # type: ignore[index]
    assert computed == pytest.approx(values[9, 20, 33].item(), rel=6e-3)
    assert "which the sum gives too" in text
    expect(page.get_by_text("BatchNorm2d").first).to_be_visible()
    assert "cell=20%2C33" in page.url
    page.reload()
    expect(page.get_by_role("spinbutton", name="Column")).to_have_value("33")
    expect(page.get_by_text("The network computed")).to_have_text(said.inner_text())
    page.get_by_role("spinbutton", name="Row").fill("21")
    page.keyboard.press("Enter")
    page.wait_for_url("**cell=21%2C33**")
    # a smaller map has no such cell: the nearest one is taken
    choose(page, "Layer", "stage3.second.conv")
    expect(page.get_by_role("spinbutton", name="Row")).to_have_value("7")
    expect(page.get_by_text("which the sum gives too")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_strong_input_leads_to_that_channel_of_the_layer_before(page: Page, server: str) -> None:
    page.goto(f"{server}/?model=ShapesNet&layer=stage2.second.conv&channel=5&origin=Kernel")
    before = wait_for_grid(page)
    link = page.get_by_role("button", name=re.compile(r"^input \d+")).first
    number = (re.search(r"input (\d+)", link.inner_text()) or [""])[1]
    link.click()
    wait_for_grid(page, before)
    expect(page.get_by_role("heading", name=f"Channel {number}")).to_be_visible()
    assert "layer=stage2.first.conv" in page.url
    page.goto(
        f"{server}/?model=ShapesNet&channel=5&origin=Kernel"
    )  # the image comes before the first layer, and is no layer
    wait_for_grid(page)
    expect(page.get_by_role("button", name=re.compile(r"^input \d+")).first).to_be_disabled()
