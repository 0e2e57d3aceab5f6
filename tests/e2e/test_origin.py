"""The ways of looking at where a map comes from: what is chosen is seen where it is chosen."""

from playwright.sync_api import Page, expect

from scripts.browsing import wait_for_grid
from tests.e2e.screen import at_rest
from tests.e2e.test_layout import LINK, sized

__all__ = ["sized"]

BEGINS = {
    "Kernel": ".kernel-view .drawn",
    "Step through the convolution": ".walk canvas.input",
    "Numbers": ".hv-histogram",
    "Sum": ".why .row >> nth=1",
}
"""Each way, by what has to be seen of it: its picture, or more than one row of the sum."""
# Of the page, and of the place beside the tiles or, on a phone, the sheet.
SCROLLED = """() => {
  const main = document.querySelector("[data-testid=stMain]");
  const isExplorer = (each) => each.shadowRoot?.querySelector(".inspector-place");
  const root = [...document.querySelectorAll("*")].find(isExplorer).shadowRoot;
  return [window.scrollY, main.scrollTop, root.querySelector(".inspector-place").scrollTop];
}"""

TO_THE_TOP = """choice => {
  choice.scrollIntoView({block: "start"});
  choice.closest(".inspector-place").scrollTop -= 60; // below what stays at the sheet's top
}"""


def choose_each(page: Page) -> None:
    """Choose every way, and find it in the window, with all as far scrolled as before."""
    before = page.evaluate(SCROLLED)
    for name, begins in BEGINS.items():
        page.get_by_role("radio", name=name).click()
        assert page.evaluate(SCROLLED) == before, name  # at once, and when the answer is there
        at_rest(page)
        expect(page.get_by_role("radio", name=name)).to_be_checked()
        expect(page.locator(".choice")).to_be_in_viewport(ratio=1)
        expect(page.locator(begins)).to_be_in_viewport(ratio=0.75)
        assert page.evaluate(SCROLLED) == before, name


def test_what_is_chosen_is_seen_and_nothing_is_scrolled(sized: Page, server: str) -> None:
    page = sized
    page.goto(f"{server}/?{LINK}&channel=7")
    wait_for_grid(page)
    at_rest(page)
    assert page.evaluate(SCROLLED)[-1] == 0  # of the page a phone may have shown the tile already
    choose_each(page)
    # As far down as the longest of them lets one scroll: a shorter one would take that away.
    page.get_by_role("radio", name="Step through the convolution").click()
    page.locator(".walk canvas.input").wait_for()
    at_rest(page)
    page.locator(".choice").evaluate(TO_THE_TOP)
    is_in_sight = "walk => walk.getBoundingClientRect().bottom <= innerHeight"
    assert page.evaluate(SCROLLED)[-1] > 0 or page.locator(".walk").evaluate(is_in_sight)
    choose_each(page)
    # A layer without a sum has its numbers, and nothing to choose.
    page.goto(f"{server}/?model=ShapesNet&layers=maps&layer=stage1&channel=7&origin=Kernel")
    wait_for_grid(page)
    expect(page.locator(".why .info")).to_be_visible()
    expect(page.locator(".hv-histogram")).to_be_in_viewport(ratio=0.9)
    expect(page.get_by_role("radiogroup", name="More about this channel")).to_be_hidden()
