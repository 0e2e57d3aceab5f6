"""Words that are explained where they stand, and hints that go away."""

from playwright.sync_api import Page, expect

from hookviz.explorer.glossary import WORDS
from scripts.browsing import settled_box, tile_centre, wait_for_grid
from tests.e2e.screen import at_rest
from tests.e2e.test_accessibility import serious
from tests.e2e.test_layout import LINK, expect_picked, lies_in, window

EXPLAINED = (
    (".hv-picked", "receptive field", "what the cell sees"),
    (".why", "batch norm", "BatchNorm2d"),
    ("[data-testid=stMain]", "multiply-adds", "multiply-adds"),
)


def test_a_word_is_explained_by_pointer_and_by_key(page: Page, server: str) -> None:
    page.goto(f"{server}/?{LINK}&channel=3")
    wait_for_grid(page)
    tip = page.locator(".hv-tip")
    for section, word, written in EXPLAINED:
        marked = page.locator(f"{section} .hv-term", has_text=written).first
        expect(tip).to_be_hidden()
        settled_box(page, marked)
        marked.hover()
        expect(tip).to_have_text(WORDS[word])
        expect(tip).to_be_visible()
        box = tip.bounding_box()
        assert box is not None
        assert lies_in(box, window(page))
        page.keyboard.press("Escape")
        expect(tip).to_be_hidden()
        expect_picked(page, 3)  # what Escape took away is the tip alone
        page.mouse.move(2, 2)
        marked.focus()
        expect(tip).to_have_text(WORDS[word])
        expect(marked).to_have_accessible_description(WORDS[word])
        if word == "batch norm":  # each explanation is of the same parts
            assert serious(page) == []
        marked.blur()


def test_hints_go_away_for_good_once_a_tile_was_picked(page: Page, server: str) -> None:
    page.goto(f"{server}/?{LINK}")
    wait_for_grid(page)
    hint = page.get_by_text("Your own photograph")
    expect(hint).to_be_visible()
    page.mouse.click(*tile_centre(page, 3))
    expect_picked(page, 3)
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_text("Each tile is a channel")).to_be_visible()
    expect(hint).to_be_hidden()
    page.reload()
    wait_for_grid(page)
    expect(page.get_by_text("Each tile is a channel")).to_be_visible()
    expect(hint).to_be_hidden()


def test_nothing_jumps_on_the_way_to_the_next_layer(page: Page, server: str) -> None:
    """By the browser's own measure of it, in both directions, with a channel picked up."""
    page.goto(f"{server}/?{LINK}&channel=7")
    before = wait_for_grid(page)
    expect_picked(page, 7)
    at_rest(page)
    page.evaluate(
        """() => {
            window.shifts = 0;
            new PerformanceObserver((list) => {
                for (const shift of list.getEntries()) window.shifts += shift.value;
            }).observe({ type: "layout-shift" });
        }"""
    )
    page.locator("body").press("n")
    after = wait_for_grid(page, before)
    at_rest(page)
    page.locator("body").press("p")
    assert wait_for_grid(page, after) == before
    at_rest(page)
    assert page.evaluate("window.shifts") < 0.02
