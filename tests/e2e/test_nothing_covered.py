"""Nothing lies over what is to be read: no buttons in the corners, and no number on a number."""

import numpy as np
from playwright.sync_api import Browser, Page, expect

import hookviz
from hookviz.images.samples import samples
from scripts.browsing import tiles, wait_for_grid
from tests.e2e.screen import at_rest, new_context, pixels
from tests.e2e.test_layout import LINK, expect_seen

# What a finger or a pointer would meet of Streamlit's own in the upper corners.
FLOATING = """ours => {
  const met = [];
  for (let y = 5; y < 80; y += 10)
    for (let x = ours.getBoundingClientRect().left + 5; x < innerWidth; x += 10)
      if (!ours.contains(document.elementFromPoint(x, y))) met.push([x, y]);
  return met;
}"""


def scroll(page: Page, by: int) -> None:
    """Scroll the page to there, once it is tall enough."""
    main = page.get_by_test_id("stMain")
    page.wait_for_function(
        "([main, by]) => main.scrollHeight - main.clientHeight >= by",
        arg=[main.element_handle(), by],
    )
    main.evaluate("(main, by) => { main.scrollTop = by; }", by)


def test_the_buttons_of_the_corner_go_with_its_row(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 600})
    page.goto(f"{server}/?{LINK}&channel=3")
    wait_for_grid(page)
    corner = page.locator(".corner").get_by_role("button")
    expect_seen(page, *corner.all())
    scroll(page, 120)
    at_rest(page)
    heading = page.get_by_role("heading", name="Channel 3", exact=True)
    buttons = [page.get_by_role("button", name=name) for name in ("Ask or save", "Close")]
    expect_seen(page, heading, *buttons)
    for button in corner.all():
        expect(button).not_to_be_in_viewport()


def test_what_opens_the_sidebar_lies_over_nothing_that_is_scrolled(
    browser: Browser, server: str
) -> None:
    context = new_context(browser, viewport={"width": 390, "height": 844}, has_touch=True)
    page = context.new_page()
    page.goto(f"{server}/?{LINK}&channel=3")  # with a sheet, above which all can be scrolled
    wait_for_grid(page)
    at_rest(page)
    opens = page.get_by_test_id("stExpandSidebarButton")
    scroll(page, 0)
    expect(opens).to_be_visible()
    scroll(page, 200)
    expect(opens).to_be_hidden()
    assert page.get_by_test_id("stMain").evaluate(FLOATING) == []
    scroll(page, 0)
    expect(opens).to_be_visible()


def test_a_picked_tile_has_its_number_once(page: Page, server: str, model: hookviz.Model) -> None:
    """On an even map the ground of a number is even: another one under it would be seen."""
    star = next(sample for sample in samples() if sample.name == "star")
    layer = "stage1.first.conv"
    values = hookviz.capture(model, star.path, layer)[layer].values
    corner = values[:, 2:8, 2:8]  # without what padding makes of the edge
    channel = int((corner.amax((1, 2)) - corner.amin((1, 2))).argmin())
    page.goto(f"{server}/?model=ShapesNet&sample=star&layer={layer}&channel={channel}")
    wait_for_grid(page)
    at_rest(page)
    lie = tiles(page)
    box = lie.box(channel)
    left, top = round(box["x"] - lie.left), round(box["y"] - lie.top)
    painted = pixels(page.locator("figure .stage canvas"))[..., :3].astype(int)
    ground = painted[top + 6 : top + 18, left + 5 : left + 8]  # at the left of its first digit
    assert ground.max() < 130  # it is a ground, darker than the map
    assert np.ptp(ground, axis=(0, 1)).max() <= 8
