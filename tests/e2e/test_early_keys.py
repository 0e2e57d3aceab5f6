"""Keys that are pressed before the page is there are not lost."""

import re

from playwright.sync_api import Page, expect

from scripts.browsing import STAGE, wait_for_grid
from tests.e2e.screen import Questions, at_rest
from tests.e2e.test_layout import LINK, expect_picked, query_of


def open_early(page: Page, address: str) -> None:
    """Only as far as the page's first script."""
    page.goto(address, wait_until="commit")
    page.wait_for_function("() => window.hookviz")


def test_a_number_is_jumped_to_as_soon_as_the_grid_is_there(page: Page, server: str) -> None:
    open_early(page, f"{server}/?{LINK}")
    for key in ("/", "1", "1", "Enter"):
        page.keyboard.press(key)
    wait_for_grid(page)
    expect_picked(page, 11)


def test_enter_picks_where_arrows_led_and_n_leads_to_the_next_layer_once(
    page: Page, server: str
) -> None:
    open_early(page, f"{server}/?{LINK}")
    for key in ("ArrowRight", "ArrowRight", "Enter", "n"):
        page.keyboard.press(key)
    expect(page.get_by_role("combobox", name="Layer")).to_have_value(
        re.compile(r"· stage1\.second\.conv$")
    )
    wait_for_grid(page)
    at_rest(page)
    expect_picked(page, 2)
    assert query_of(page)["layer"] == ["stage1.second.conv"]


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
