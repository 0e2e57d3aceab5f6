"""Words that are explained where they stand, and hints that go away."""

from playwright.sync_api import Page, expect

from hookviz.explorer.glossary import WORDS
from scripts.browsing import settled_box, wait_for_grid
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
        marked.scroll_into_view_if_needed()  # scrolling takes a tip away
        settled_box(page, marked)
        marked.hover()
        expect(tip).to_have_text(WORDS[word])
        expect(tip).to_be_visible()
        assert lies_in(settled_box(page, tip), window(page))
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
