"""The first page: what it says, where it opens, and how little stands around it."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from scripts.browsing import wait_for_grid
from tests.e2e.screen import at_rest, link_of, new_context, open_more
from tests.e2e.test_layout import expect_picked

EYES = {"layer": "features.11.squeeze", "channel": "21"}

# Buttons, links, lists and fields that are seen in the window. Tiles and the samples' pictures are
# what the page is about; the tree of layers is one list, and a list to choose from one control.
_CONTROLS = """() => {
  const all = [];
  const look = (root) => {
    for (const each of root.querySelectorAll("*")) {
      if (each.shadowRoot && !each.closest(".st-key-gallery")) look(each.shadowRoot);
      const kinds = "button, a[href], select, input, textarea, summary, label:has([type=radio])";
      if (!each.matches(kinds)) continue;
      if (each.matches("[tabindex='-1']:not([role=radio])")) continue;
      const isOfList = each.closest(".tree, .patches, [data-baseweb=select]");
      if (isOfList && !each.matches("input")) continue;
      const box = each.getBoundingClientRect();
      const isSeen = box.width > 1 && box.height > 1 && box.bottom > 0 && box.top < innerHeight
        && box.right > 0 && box.left < innerWidth
        && each.checkVisibility({opacityProperty: true, visibilityProperty: true});
      if (isSeen) all.push(each);
    }
  };
  look(document);
  return all.map((each) => `${each.tagName} ${each.ariaLabel ?? each.textContent}`.slice(0, 60));
}"""


def test_the_first_page_opens_on_the_cat_s_eyes(page: Page, server: str) -> None:
    page.goto(server)
    wait_for_grid(page)
    expect_picked(page, 21)
    assert link_of(page) == EYES
    expect(page.get_by_text("Look inside a network that sees.")).to_be_visible()
    expect(page.get_by_text("This channel answers to eyes.")).to_be_visible()
    expect(page.locator(".hv-classes .label").first).to_have_text("Egyptian cat")
    assert page.evaluate("history.length") == 2  # where it opens is no step back
    page.keyboard.press("Escape")
    expect(page.locator(".hv-picked")).to_be_hidden()
    page.reload()  # what is chosen stays, be it no channel
    wait_for_grid(page)
    at_rest(page)
    assert link_of(page) == {"layer": EYES["layer"]}
    expect(page.locator(".hv-picked")).to_be_hidden()
    page.get_by_role("radio", name="Coffee").click()
    page.wait_for_url("**sample=coffee**")
    at_rest(page)
    assert link_of(page)["layer"] == EYES["layer"]
    page.goto(f"{server}/?sample=coffee")
    wait_for_grid(page)
    expect(page.get_by_text("This channel answers to the cup.")).to_be_visible()


def test_a_link_that_says_something_is_not_overruled_and_a_shared_one_says_all(
    page: Page, browser: Browser, server: str
) -> None:
    page.goto(f"{server}/#layer=features.0")
    wait_for_grid(page)
    at_rest(page)
    assert link_of(page) == {"layer": "features.0"}
    expect(page.locator(".hv-picked")).to_be_hidden()
    page.goto(f"{server}/?sample=rocket")
    wait_for_grid(page)
    expect(page.get_by_text("This channel answers to the rocket.")).to_be_visible()
    link = open_more(page).locator("code").inner_text().strip()
    theirs = new_context(browser).new_page()
    theirs.goto(link)
    wait_for_grid(theirs)
    expect_picked(theirs, 96)
    assert link_of(theirs) == link_of(page)


def test_on_a_phone_it_opens_on_the_layer_and_leaves_the_tiles_to_be_seen(
    browser: Browser, server: str
) -> None:
    context = new_context(browser, viewport={"width": 390, "height": 844}, has_touch=True)
    page = context.new_page()
    page.goto(server)
    wait_for_grid(page)
    at_rest(page)
    assert link_of(page) == {"layer": EYES["layer"]}
    expect(page.get_by_text("Look inside a network that sees.")).to_be_in_viewport()
    expect(page.get_by_text("Tap a tile")).to_be_in_viewport()


@pytest.mark.promise
def test_what_is_chosen_of_the_view_stands_beside_its_button(page: Page, server: str) -> None:
    page.goto(server)
    wait_for_grid(page)
    view = page.get_by_role("button", name="View", exact=True)
    expect(page.locator(".view-row .chips button")).to_have_count(0)
    view.press("Enter")
    sort = page.get_by_role("combobox", name="Sort by")
    sort.select_option("mean")
    chip = page.get_by_role("button", name="sort: mean")
    expect(chip).to_be_visible()
    sort.press("Escape")  # and the channel that is picked stays
    expect(sort).to_be_hidden()
    expect(view).to_be_focused()
    expect_picked(page, 21)
    chip.press("Enter")
    expect(chip).to_have_count(0)
    expect(view).to_be_focused()
    assert link_of(page) == EYES


def test_few_controls_stand_around_it(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(server)
    wait_for_grid(page)
    at_rest(page)
    page.mouse.move(1200, 850)  # at rest, what comes with the pointer is not there
    beside = page.evaluate(_CONTROLS)
    page.keyboard.press("Escape")
    at_rest(page)
    without = page.evaluate(_CONTROLS)
    assert len([name for name in without if re.match("BUTTON (Present|Slides|.*More)", name)]) == 2
    assert len(beside) <= 30, beside  # with all of a channel
    assert len(without) <= 26, without
    page.keyboard.press("l")
    page.get_by_role("button", name="Add this view").click()
    page.keyboard.press("Escape")
    expect(page.locator(".corner .slides")).to_be_visible()  # there are some
