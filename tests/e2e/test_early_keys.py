"""Keys that are pressed before the page is there are not lost."""

import re

from playwright.sync_api import Page, expect

from scripts.browsing import STAGE, wait_for_grid
from tests.e2e.screen import Questions, at_rest, link_of
from tests.e2e.test_layout import LINK, expect_picked


def test_keys_pressed_before_the_page_is_there_are_followed_in_order(
    page: Page, server: str
) -> None:
    def open_early() -> None:
        """Only as far as the page's first script."""
        page.goto(f"{server}/?{LINK}", wait_until="commit")
        page.wait_for_function("() => window.hookviz")

    open_early()
    for key in ("/", "1", "1", "Enter"):
        page.keyboard.press(key)
    wait_for_grid(page)
    expect_picked(page, 11)
    open_early()
    for key in ("ArrowRight", "ArrowRight", "Enter", "n"):
        page.keyboard.press(key)
    expect(page.get_by_role("combobox", name="Layer")).to_have_value(
        re.compile(r"· stage1\.second\.conv$")
    )
    wait_for_grid(page)
    at_rest(page)
    expect_picked(page, 2)
    assert link_of(page)["layer"] == "stage1.second.conv"


def test_keys_between_the_tiles_and_the_layers_are_taken_once_both_are_there(
    page: Page, server: str
) -> None:
    questions = Questions(page)
    held = questions.hold("layers")
    page.goto(f"{server}/?{LINK}")
    wait_for_grid(page)
    for key in ("ArrowRight", "n"):
        page.keyboard.press(key)
    for route in held:
        route.continue_()
    questions.act = None
    expect(page.get_by_role("combobox", name="Layer")).to_have_value(
        re.compile(r"· stage1\.second\.conv$")
    )
    at_rest(page)
    expect(page.locator(STAGE)).to_have_attribute("aria-valuenow", "1")
