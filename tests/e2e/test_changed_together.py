"""What one click does in two parts of the page is answered in both."""

from playwright.sync_api import Page, expect

from scripts.browsing import wait_for_grid
from tests.e2e.screen import SHAPESNET, at_rest

_CLICK = """element => {
  for (const kind of ["pointerdown", "mousedown", "pointerup", "mouseup"]) {
    element.dispatchEvent(new MouseEvent(kind, { bubbles: true, composed: true }));
  }
  element.click();
}"""


def test_a_click_that_closes_a_menu_is_drawn_too(page: Page, server: str) -> None:
    """A busy browser comes to both within one task."""
    page.goto(f"{server}/{SHAPESNET}")
    before = wait_for_grid(page)
    at_rest(page)
    page.get_by_role("button", name="Share", exact=True).click()
    expect(page.get_by_test_id("stPopoverBody")).to_be_visible()
    at_rest(page)
    page.get_by_test_id("stSidebar").get_by_role("radio", name="random").evaluate(_CLICK)
    expect(page.get_by_test_id("stPopoverBody")).to_have_count(0)
    page.wait_for_url("**weights=random**")
    at_rest(page)
    assert wait_for_grid(page) != before
