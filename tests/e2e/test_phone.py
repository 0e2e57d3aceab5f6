"""A phone: pages of six columns, a swipe for the layer, and a sheet that does not fight with it."""

import pytest
from playwright.sync_api import Browser, Page, expect

from scripts.browsing import settled_box, settled_boxes, tiles, wait_for_grid
from tests.e2e.screen import Questions, at_rest, link_of, new_context, open_channel_menu
from tests.e2e.test_layout import LINK, expect_picked


@pytest.fixture
def phone(browser: Browser) -> Page:
    context = new_context(browser, viewport={"width": 390, "height": 844}, has_touch=True)
    context.set_default_timeout(30_000)
    return context.new_page()


def swipe(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """One finger from one point of the window to another."""
    touch = page.context.new_cdp_session(page)
    for kind, share in (("touchStart", 0.0), ("touchMove", 0.5), ("touchMove", 1.0)):
        x, y = (one + share * (other - one) for one, other in zip(start, end, strict=True))
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def expect_above_sheet(page: Page, channel: int) -> None:
    """Wait until the sheet is open and all is drawn: the channel's tile is seen above it."""
    sheet = page.locator(".inspector-place.picked")
    expect(sheet).to_be_visible()
    at_rest(page)
    over, tile = settled_box(page, sheet), tiles(page).box(channel)
    assert tile["y"] >= 0
    assert tile["y"] + tile["height"] <= over["y"]


def test_the_tiles_come_in_pages_that_fit(phone: Page, server: str) -> None:
    phone.goto(server)
    wait_for_grid(phone)
    expect(phone.get_by_text("Tap a tile")).to_be_visible()
    for name in ("More", "View"):
        expect(phone.get_by_role("button", name=name, exact=True)).to_be_in_viewport(ratio=1)
    sidebar = phone.get_by_test_id("stSidebar")
    expect(sidebar).to_have_attribute("data-collapsed", "true")
    expect(sidebar).to_have_css("visibility", "hidden")  # and so without tab stops
    lie = tiles(phone)
    assert lie.columns == 6
    assert lie.page < lie.count
    assert lie.page % 6 == 0
    later = phone.get_by_role("button", name="Next page")
    box = settled_box(phone, later)
    assert box["y"] + box["height"] <= 844
    expect(phone.get_by_role("button", name="Previous page")).to_be_disabled()
    expect(phone.get_by_text(f"1–{lie.page} of {lie.count}")).to_be_visible()
    later.click()
    second = tiles(phone)
    assert second.first == lie.page
    channel = lie.page + 7
    tile = second.box(channel)
    phone.touchscreen.tap(tile["x"] + 20, tile["y"] + 20)
    expect_picked(phone, channel)
    expect_above_sheet(phone, channel)
    phone.reload()  # and its page is the one in view
    wait_for_grid(phone)
    third = tiles(phone)  # more fit on a page once the hints are gone
    assert third.first <= channel < third.first + third.page


def test_a_link_shows_its_tile_above_the_sheet_and_a_question_leads_to_the_top(
    phone: Page, server: str
) -> None:
    phone.goto(f"{server}/?{LINK}&channel=30")
    wait_for_grid(phone)
    expect_above_sheet(phone, 30)
    main = phone.get_by_test_id("stMain")
    assert main.evaluate("element => element.scrollTop") > 0
    before = tiles(phone).box(30)["y"]
    phone.mouse.move(200, 150)
    phone.mouse.wheel(0, -1000)  # whoever scrolls on stays there, also where the page grows
    phone.set_viewport_size({"width": 360, "height": 844})
    at_rest(phone)
    assert tiles(phone).box(30)["y"] > before + 200
    phone.evaluate(  # as it is at the click: the page becomes shorter later, and may end above
        "document.querySelector('[data-testid=stMain]').addEventListener('click',"
        " (event) => { window.hvTop = event.currentTarget.scrollTop; })"
    )
    phone.mouse.wheel(0, 1000)
    open_channel_menu(phone)
    phone.get_by_role("button", name="Which class needs it?").click()
    expect(phone.get_by_role("heading", name="Which channels does a class need?")).to_be_visible()
    at_rest(phone)
    assert phone.evaluate("window.hvTop") == 0
    assert main.evaluate("element => element.scrollTop") == 0


# Controls that a finger has, smaller than 24 by 24 pixels; a label makes its field larger.
_SMALL = """() => {
  const small = [];
  const look = (root) => {
    for (const each of root.querySelectorAll("*")) {
      if (each.shadowRoot) look(each.shadowRoot);
      if (!each.matches("button, a[href], select, input, summary")) continue;
      const around = each.matches("input") && each.closest("label, [data-baseweb=select]");
      const {width, height} = (around || each).getBoundingClientRect();
      const isSeen = width > 1 && height > 1 && each.checkVisibility({visibilityProperty: true});
      if (!isSeen || Math.min(width, height) >= 24) continue;
      small.push(`${each.ariaLabel ?? each.textContent} ${width} ${height}`);
    }
  };
  look(document);
  return small;
}"""


def test_what_a_finger_touches_is_large_enough(phone: Page, server: str) -> None:
    for view in ("", "?model=ShapesNet&layer=stem.first.conv&channel=2", "?lens=kernels"):
        phone.goto(f"{server}/{view}")
        at_rest(phone)
        assert phone.evaluate(_SMALL) == [], view


def test_the_sidebar_closes_over_the_page_that_it_leads_to(phone: Page, server: str) -> None:
    phone.goto(server)
    at_rest(phone)
    phone.get_by_test_id("stExpandSidebarButton").click()
    sidebar = phone.get_by_test_id("stSidebar")
    sidebar.get_by_role("button", name="Learn").click()
    expect(sidebar).to_have_attribute("data-collapsed", "true")
    title = phone.get_by_role("heading", name="Lessons").first
    opens = phone.get_by_test_id("stExpandSidebarButton")
    [title_box, opens_box] = settled_boxes(phone, title, opens)
    assert opens_box["x"] + opens_box["width"] <= title_box["x"]  # and lies over no title


def test_a_swipe_changes_the_layer_and_a_scroll_does_not(phone: Page, server: str) -> None:
    phone.goto(f"{server}/?{LINK}")
    before = wait_for_grid(phone)
    box = tiles(phone).box(8)
    x, y = box["x"], box["y"]
    swipe(phone, (x + 100, y), (x + 110, y - 150))
    phone.wait_for_timeout(500)
    assert link_of(phone)["layer"] == "stage1.first.conv"
    box = tiles(phone).box(8)  # the page has moved on
    x, y = box["x"], box["y"]
    swipe(phone, (x + 150, y), (x + 20, y + 10))
    after = wait_for_grid(phone, before)
    assert link_of(phone)["layer"] == "stage1.second.conv"
    box = tiles(phone).box(8)
    swipe(phone, (box["x"] + 20, box["y"]), (box["x"] + 150, box["y"] + 10))
    assert wait_for_grid(phone, after) == before
    assert "channel" not in link_of(phone)  # no tap on the way


def test_the_sheet_closes_while_another_layer_is_on_its_way(phone: Page, server: str) -> None:
    questions = Questions(phone)
    phone.goto(f"{server}/?{LINK}&channel=3")
    wait_for_grid(phone)
    sheet = phone.locator(".inspector-place.picked")
    expect(sheet).to_be_visible()
    held = questions.hold("tiles")
    phone.keyboard.press("n")
    phone.wait_for_function("() => window.hvQuestions > 0")
    phone.get_by_role("button", name="Close").click()
    expect(sheet).to_have_count(0)
    for route in held:
        route.continue_()
