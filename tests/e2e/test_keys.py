"""Keys of the browser stay its own, on all that listens to keys; ours work from everywhere."""

import re
from collections.abc import Sequence

import pytest
from playwright.sync_api import Page, expect

from scripts.browsing import STAGE, settled_boxes, wait_for_grid
from tests.e2e.screen import SHAPESNET, at_rest, link_of, open_view
from tests.e2e.test_layout import expect_picked
from tests.e2e.test_live import LIVE, expect_live

BROWSERS = ("PageDown", "F5", "Control+r", "Control+f", "Control+c", "Alt+ArrowLeft")
"""Keys of the browser that nothing of the page may keep from it."""

# What has the focus, in whatever shadow it lies; and the last key as it was when all had heard it.
_WATCH = """
window.hvFocused = () => {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return at;
};
addEventListener("keydown", (event) => { window.hvKey = event; }, true);
"""

# Where keys are listened to: a page, and what of it has the focus; "" for nothing.
PLACES: dict[str, tuple[str, Sequence[str]]] = {
    "explorer": (
        "&channel=3",
        (
            *("", "figure .stage", ".single .stage", ".layer-row .layers", ".steps [tabindex='0']"),
            *("nav input[type=search]", "nav button[aria-current='true']", ".why .row"),
        ),
    ),
    "tree": ("&lens=trace", ("", ".hv-tree [tabindex='0']")),
    "region": ("&lens=responds-here", (".region .stage", ".region [tabindex='0'][role=radio]")),
    "lesson": ("&lesson=image&step=2", ("", ".hv-step-title", ".stage", ".answers button")),
    "kernel": ("&lesson=convolution&step=3", (".numbers input", ".numbers .more")),
    "gallery": ("&image=Samples", ("[role=radiogroup] [data-name][tabindex='0']",)),
}


def focus(page: Page, selector: str) -> None:
    """Put the focus on the first of what is seen there; on nothing for an empty selector."""
    if selector:
        page.locator(selector).locator("visible=true").first.focus()
    else:
        page.evaluate("window.hvFocused()?.blur()")


def taken(page: Page, key: str) -> bool:
    """Press a key; whether the page kept it from the browser."""
    page.evaluate("window.hvKey = null")
    page.keyboard.press(key)
    return bool(page.evaluate("window.hvKey.defaultPrevented"))


@pytest.mark.parametrize("place", PLACES)
def test_the_browsers_keys_are_the_browsers_and_tab_leads_on(
    page: Page, server: str, place: str
) -> None:
    query, parts = PLACES[place]
    page.add_init_script(_WATCH)
    page.goto(f"{server}/{SHAPESNET}{query}")
    for selector in parts:
        if selector:
            page.locator(selector).locator("visible=true").first.wait_for(state="attached")
    at_rest(page)
    _look(page, parts)


def _look(page: Page, parts: Sequence[str]) -> None:
    for selector in parts:
        focus(page, selector)
        assert [key for key in BROWSERS if taken(page, key)] == [], selector
        for key in ("Tab", "Shift+Tab"):
            focus(page, selector)
            page.evaluate("window.hvBefore = window.hvFocused()")
            assert not taken(page, key), selector
            moved = page.evaluate("window.hvFocused() !== window.hvBefore")
            assert moved or not selector, (selector, key)  # before the first is the browser's own


def test_the_browsers_keys_over_a_stream(page: Page, server: str) -> None:
    page.add_init_script(_WATCH)
    page.goto(f"{server}/{LIVE}&channel=3")
    expect_live(page)
    _look(page, ("", ".live .stage"))
    focus(page, "")
    assert taken(page, "Escape")  # the channel is put down
    expect(page).not_to_have_url(re.compile("channel="))
    assert not taken(page, "Escape")
    pick_again(page)
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Back to live")).to_be_visible()


def test_the_presenters_keys_are_told_from_the_browsers(page: Page, server: str) -> None:
    page.add_init_script(_WATCH)
    page.goto(f"{server}/{SHAPESNET}&present=1&channel=3")
    wait_for_grid(page)
    at_rest(page)
    page.get_by_role("toolbar", name="Presenting").wait_for()
    for selector in ("", STAGE, ".bar .later"):
        focus(page, selector)
        assert [key for key in BROWSERS[1:] if taken(page, key)] == [], selector
        assert not taken(page, "Tab"), selector
    assert "layer" not in link_of(page)


def test_escape_puts_a_channel_down_and_keys_work_after_a_menu(page: Page, server: str) -> None:
    page.add_init_script(_WATCH)
    page.goto(f"{server}/{SHAPESNET}&channel=3")
    wait_for_grid(page)
    at_rest(page)
    page.locator(".single .stage").focus()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Channel 3")).to_be_hidden()
    expect(page.locator(STAGE)).to_be_focused()
    assert "channel" not in link_of(page)
    assert not taken(page, "Escape")  # there is nothing to close

    pick_again(page)
    for key in ("/", "1", "1", "Enter"):
        page.keyboard.press(key)
    expect_picked(page, 11)
    page.get_by_role("button", name="Close").focus()
    for key in ("/", "7", "Enter"):
        page.keyboard.press(key)
    expect_picked(page, 7)
    open_view(page)
    order = page.get_by_role("combobox", name="Sort by")
    order.click()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("sort="))
    page.keyboard.press("n")
    expect(page).to_have_url(re.compile("layer=stage1.first.conv"))


def pick_again(page: Page) -> None:
    """Pick in a list at the side, by the pointer, what is chosen there already."""
    page.get_by_role("combobox", name="Model", exact=True).click()
    page.get_by_role("option", selected=True).click()
    page.wait_for_function("() => window.hvFocused() === document.body")


def test_tab_scrolls_no_part_of_the_header(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 720, "height": 450})
    page.goto(f"{server}/{SHAPESNET}")
    at_rest(page)
    last = page.locator(".hv-classes a").last
    last.focus()
    classes = page.locator(".hv-classes")
    assert classes.evaluate("each => each.scrollTop") == 0
    [around, focused] = settled_boxes(page, classes, last)
    assert focused["y"] + focused["height"] <= around["y"] + around["height"]  # it is seen
