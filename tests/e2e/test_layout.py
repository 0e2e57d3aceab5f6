"""What a click did is seen without scrolling: at a laptop, a projector and a phone.

Nothing here knows which network or which sample comes first, unless its link names them.
"""

import io
import re

import pytest
from PIL import Image
from playwright.sync_api import Browser, FloatRect, Locator, Page, expect

from scripts.browsing import Tiles, settled_box, settled_boxes, tile_centre, tiles, wait_for_grid
from tests.e2e.screen import SHAPESNET, at_rest, link_of, new_context, open_more, pixels, words_of
from tests.e2e.test_accessibility import serious

SIZES = {"laptop": (1440, 900), "projector": (1280, 720), "phone": (390, 844)}
BESIDE = pytest.mark.parametrize("sized", ["laptop"], indirect=True)
IN_A_SHEET = pytest.mark.parametrize("sized", ["phone"], indirect=True)
"""With the channel beside the grid, and in a sheet: how large either is changes no link."""
SHEET = 0.62  # of the phone's height, from below
PICKED_MAP = ".single .picture:visible"
LINK = "model=ShapesNet&sample=coffee&layer=stage1.first.conv"


@pytest.fixture(params=list(SIZES))
def sized(browser: Browser, request: pytest.FixtureRequest) -> Page:
    """A page of each size."""
    width, height = SIZES[request.param]
    context = new_context(
        browser, viewport={"width": width, "height": height}, has_touch=request.param == "phone"
    )
    context.set_default_timeout(30_000)
    return context.new_page()


def is_phone(page: Page) -> bool:
    return window(page)["width"] < 640


def window(page: Page) -> FloatRect:
    """The viewport."""
    size = page.viewport_size
    assert size is not None
    return {"x": 0, "y": 0, "width": size["width"], "height": size["height"]}


def lies_in(inner: FloatRect, outer: FloatRect) -> bool:
    """Whether all of one box is within the other, to a pixel."""
    return (
        inner["x"] >= outer["x"] - 1
        and inner["y"] >= outer["y"] - 1
        and inner["x"] + inner["width"] <= outer["x"] + outer["width"] + 1
        and inner["y"] + inner["height"] <= outer["y"] + outer["height"] + 1
    )


_UNCOVERED = """element => {
    const box = element.getBoundingClientRect();
    const at = [box.left + box.width / 2, box.top + box.height / 2];
    let top = document.elementFromPoint(...at);
    while (top?.shadowRoot?.elementFromPoint(...at)) {
        const inner = top.shadowRoot.elementFromPoint(...at);
        if (inner === top) break;
        top = inner;
    }
    return element.contains(top) || top.parentElement.contains(element);
}"""


def expect_seen(page: Page, *whats: Locator) -> None:
    """They are in the viewport, and nothing lies over them."""
    for what in whats:
        expect(what).to_be_visible()
    for what, box in zip(whats, settled_boxes(page, *whats), strict=True):
        assert lies_in(box, window(page)), (box, what)
        assert what.evaluate(_UNCOVERED), what


def right_of_layer_row(page: Page) -> float:
    """Where the row of the layer and what stands beside it ends, in CSS pixels."""
    right: float = page.locator(".layer-row > *").evaluate_all(
        "parts => Math.max(...parts.map((part) => part.getBoundingClientRect().right))"
    )
    return right


def expect_picked(page: Page, channel: int) -> None:
    """The channel's map and its sum are seen without scrolling, in the sheet on a phone."""
    expect(page.get_by_role("heading", name=f"Channel {channel}", exact=True)).to_be_visible()
    picture, why = page.locator(PICKED_MAP), page.locator(".why")
    title, row = why.locator("h4"), why.locator(".row").first
    expect(page.get_by_role("application")).to_have_accessible_name(
        re.compile(rf"^The map of channel {channel}:")
    )
    expect_seen(page, picture, title, row)
    assert pixels(picture)[..., 3].all()  # it is painted
    if is_phone(page):
        box, *inside = settled_boxes(page, page.locator(".inspector-place"), picture, title)
        height = window(page)["height"]
        assert box["height"] <= SHEET * height + 1
        assert box["y"] + box["height"] == pytest.approx(height, abs=1)
        assert all(lies_in(each, box) for each in inside)


def pick(page: Page, position: int) -> None:
    """Point at a tile, from the top of the page, as a person does; on a phone with a finger."""
    if page.locator(".hv-picked").is_visible() and is_phone(page):
        page.get_by_role("button", name="Close").click()
        expect(page.locator(".hv-picked")).to_be_hidden()
    while position >= (lie := tiles(page)).first + lie.page:
        page.get_by_role("button", name="Next page").click()
    x, y = tile_centre(page, position)
    if y > window(page)["height"] - 5:
        page.mouse.move(x, 300)
        page.mouse.wheel(0, y - 400)
        page.wait_for_timeout(300)
        x, y = tile_centre(page, position)
    if is_phone(page):
        page.touchscreen.tap(x, y)
    else:
        page.mouse.click(x, y)
    expect(page.get_by_role("slider", name="Channel")).to_have_attribute(
        "aria-valuetext", re.compile(rf"^channel {position} .*selected$")
    )


def frame_colours(page: Page, lie: Tiles, position: int) -> set[tuple[int, ...]]:
    """The colours along the middle of a tile's upper edge, where the frame of the chosen one is."""
    scale = float(page.evaluate("devicePixelRatio"))
    painted = pixels(page.locator("figure .stage canvas"))
    box = lie.box(position)
    y = round((box["y"] - lie.top) * scale)
    x = round((box["x"] - lie.left + 0.55 * lie.wide) * scale)
    return {tuple(colour) for colour in painted[y : y + 5, x : x + 5].reshape(-1, 4).tolist()}


BLACK, WHITE = (0, 0, 0, 255), (255, 255, 255, 255)


@pytest.mark.promise
def test_the_first_look_is_whole_and_a_click_is_answered_in_view(sized: Page, server: str) -> None:
    page = sized
    page.goto(server)
    wait_for_grid(page)
    expect_whole_and_clean(page)
    expect_seen(page, page.locator("figure .scale img"), page.locator("figure output"))
    count = tiles(page).count
    projector = page.viewport_size == {"width": 1280, "height": 720}  # where few rows are in view
    for channel in (count - 1,) if projector else (0, count // 2, count - 1):
        pick(page, channel)
        expect_picked(page, channel)
        page.mouse.move(2, 2)  # away from the tiles, so that no cursor is painted
        page.wait_for_timeout(100)
        lie = tiles(page)
        assert {BLACK, WHITE} <= frame_colours(page, lie, channel)
        assert not {BLACK, WHITE} <= frame_colours(page, lie, channel - 1 if channel else 1)


# How many classes are seen; none where a name among them is cut.
WHOLE_CLASSES = """row => {
  const top = (each) => each.getBoundingClientRect().top;
  const { bottom } = row.getBoundingClientRect();
  const seen = [...row.children].filter((each) => each.offsetParent && top(each) < bottom);
  const isWhole = (each) => each.scrollWidth <= each.clientWidth;
  return seen.every((each) => isWhole(each) && isWhole(each.firstElementChild)) ? seen.length : 0;
}"""


def expect_whole_and_clean(page: Page) -> None:
    """Nothing is cut off, all that tells what this is can be seen, and axe is content."""
    canvas, column = page.locator("figure .stage canvas"), page.locator("figure .window")
    inner, outer = settled_boxes(page, canvas, column)
    assert inner["width"] <= outer["width"]
    assert column.evaluate("box => box.scrollWidth <= box.clientWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= window(page)["width"]
    assert right_of_layer_row(page) <= window(page)["width"]
    says = ("Each tile is a channel", "Your own photograph")
    if not is_phone(page):
        says = ("Look inside a network that sees.", "This channel answers to eyes.")
    expect_seen(
        page,
        *map(page.get_by_text, says),
        page.locator(".hv-classes .class").first,
        page.get_by_role("combobox", name="Layer"),
    )
    assert page.locator(".hv-classes").evaluate(WHOLE_CLASSES) >= 2
    if not is_phone(page):
        lie = tiles(page)
        assert lie.box(lie.count - 1)["y"] < window(page)["height"]
    assert serious(page) == []


@IN_A_SHEET
def test_back_leads_to_what_was_seen_before(sized: Page, server: str) -> None:
    page = sized
    page.goto(f"{server}/?{LINK.replace('&layer', '#layer')}")
    wait_for_grid(page)
    pick(page, 3)
    expect_picked(page, 3)
    first, title = link_of(page), page.locator(".why h4").inner_text()
    asked = page.evaluate("hvLine.asked")
    pick(page, 4)
    expect_picked(page, 4)
    page.go_back()
    expect(page.locator(".hv-picked")).to_be_hidden()  # it was closed in between
    page.go_back()
    expect_picked(page, 3)
    assert link_of(page) == first
    expect(page.locator(".why h4")).to_have_text(title)
    page.go_back()
    expect(page.get_by_text("Each tile is a channel")).to_be_visible()
    page.go_forward()
    expect_picked(page, 3)
    assert page.evaluate("hvLine.asked") == asked  # none of it ran the page


@pytest.mark.promise
@BESIDE
def test_a_reload_and_a_shared_link_show_the_same(
    sized: Page, browser: Browser, server: str
) -> None:
    page = sized
    page.goto(f"{server}/?{LINK}")
    wait_for_grid(page)
    hint = page.get_by_text("Your own photograph")
    expect(hint).to_be_visible()
    box = tiles(page).box(5)
    page.mouse.click(box["x"] + 0.3 * box["width"], box["y"] + 0.7 * box["height"])
    expect_picked(page, 5)
    seen, grid = what_is_seen(page), wait_for_grid(page)
    page.reload()
    assert wait_for_grid(page) == grid
    expect_picked(page, 5)
    assert what_is_seen(page) == seen
    link = open_more(page).locator("code").inner_text().strip()
    assert link_of(page) == words_of(link)
    other = new_context(browser, viewport={"width": 1440, "height": 900})
    theirs = other.new_page()
    theirs.goto(link)
    assert wait_for_grid(theirs) == grid
    expect_picked(theirs, 5)
    assert what_is_seen(theirs) == seen
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_text("Each tile is a channel")).to_be_visible()
    expect(hint).to_be_hidden()  # for good, once a tile was picked


def what_is_seen(page: Page) -> dict[str, str | None]:
    """Model, layer, channel and cell, as the page says them."""
    return {
        "model": page.locator("[data-testid=stSidebar] input[aria-label='Model']").input_value(),
        "layer": page.get_by_role("combobox", name="Layer").input_value(),
        "channel": page.get_by_role("slider", name="Channel").get_attribute("aria-valuetext"),
        "sum": page.locator(".why .sum").inner_text(),
        "cell": page.locator(".why h4").inner_text(),
        "sample": page.locator(".st-key-hv-header img").get_attribute("alt"),
    }


_SHIFTS = """() => {
  window.shifts = 0;
  new PerformanceObserver((list) => {
    for (const shift of list.getEntries()) window.shifts += shift.value;
  }).observe({ type: "layout-shift" });
}"""


@pytest.mark.parametrize("sized", ["phone", "laptop"], indirect=True)
def test_n_and_p_keep_the_channel_in_view_and_nothing_jumps(sized: Page, server: str) -> None:
    """By the browser's own measure of it, in both directions."""
    page = sized
    page.goto(f"{server}/?{LINK}&channel=7&cell=20,33,64,64")
    before = wait_for_grid(page)
    expect_picked(page, 7)
    at_rest(page)
    map_box = settled_box(page, page.locator(PICKED_MAP))
    page.evaluate(_SHIFTS)
    page.locator("body").press("n")
    after = wait_for_grid(page, before)
    expect_picked(page, 7)
    assert link_of(page)["layer"] == "stage1.second.conv"
    assert link_of(page)["cell"] == "20,33,64,64"
    assert settled_box(page, page.locator(PICKED_MAP)) == map_box
    at_rest(page)
    page.locator("body").press("p")
    assert wait_for_grid(page, after) == before
    expect_picked(page, 7)
    at_rest(page)
    assert page.evaluate("window.shifts") < 0.02


def test_rows_keep_to_one_line_on_a_projector_at_150_percent(browser: Browser, server: str) -> None:
    """It leaves 960 × 600: the sidebar is folded, and the tiles are as wide as their place."""
    context = new_context(browser, viewport={"width": 960, "height": 600}, device_scale_factor=1.5)
    page = context.new_page()
    page.goto(f"{server}/?{LINK}&channel=3")
    wait_for_grid(page)
    lie, place = tiles(page), settled_box(page, page.locator("figure .window"))
    wide = lie.columns * (lie.wide + lie.gap) - lie.gap
    assert place["width"] - lie.columns <= wide <= place["width"]
    assert lie.top < 0.45 * 600
    assert lies_in(lie.box(lie.count - 1), window(page))
    expect_seen(page, page.locator(".why h4"))


def test_tiles_end_somewhere_and_menus_take_tips_away(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(f"{server}/?{LINK}&channel=3&after=ReLU&scale=layer&colours=gray_r")
    wait_for_grid(page)
    lie = tiles(page)
    scale = float(page.evaluate("devicePixelRatio"))
    painted = pixels(page.locator("figure .stage canvas"))[..., :3].astype(int)
    box = lie.box(9)
    left, top = round((box["x"] - lie.left) * scale), round((box["y"] - lie.top) * scale)
    edge = painted[top + 20 : top + 40, left]
    assert (edge < 230).all()  # by day a map of zeros is as white as the page
    more = page.get_by_role("button", name="More", exact=True)
    more.hover()
    expect(page.get_by_test_id("stTooltipContent")).to_be_visible()
    more.click()
    expect(page.get_by_test_id("stPopoverBody")).to_be_visible()
    expect(page.get_by_test_id("stTooltipContent").filter(visible=True)).to_have_count(0)


def colours_of(what: Locator) -> int:
    """How many colours there are on a part of the page, as a person sees it."""
    with Image.open(io.BytesIO(what.screenshot())) as picture:
        return len(picture.convert("RGB").getcolors(1 << 20) or ())


def test_with_a_persons_own_few_colours_bars_and_choices_are_seen(
    browser: Browser, server: str
) -> None:
    """As Windows does in high contrast: backgrounds and shadows go, unless told to stay."""
    context = new_context(browser, viewport={"width": 1280, "height": 720}, forced_colors="active")
    page = context.new_page()
    page.goto(server)
    wait_for_grid(page)
    at_rest(page)
    for bar in (".hv-classes .track", ".why .bar"):
        assert colours_of(page.locator(bar).first) > 1, bar
    for group in (".steps", ".origin"):
        chosen, other = (
            page.locator(f"{group} {each}").first
            for each in (
                "*:is([aria-checked=true], label:has(:checked))",
                "*:is([aria-checked=false], label:not(:has(:checked)):has(input))",
            )
        )
        grounds = [
            each.evaluate("each => getComputedStyle(each).forcedColorAdjust")
            for each in (chosen, other)
        ]
        assert grounds == ["none", "auto"], group
    assert colours_of(page.locator(".seen-as .icon").first) > 1
    picked = page.locator(".single .selected").first
    assert picked.evaluate("each => getComputedStyle(each).boxShadow") != "none"
    page.goto(f"{server}/{SHAPESNET}&lens=channels-that-matter")
    at_rest(page)
    assert colours_of(page.locator("figure .plot .area").first) > 2
