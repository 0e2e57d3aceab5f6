"""What axe, a checker of accessibility, finds on the page."""

from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, ViewportSize, expect

from hookviz.lenses.contract.running import find_lens, list_lenses
from scripts.browsing import wait_for_grid
from tests.e2e.screen import at_rest, look_through, new_context
from tests.e2e.test_lenses import settle

# A projector shows what a desk does, a phone is held in the dark; what is looked at takes turns.
WAYS: dict[Literal["light", "dark"], tuple[int, tuple[str, ...], tuple[str, ...]]] = {
    "light": (1440, ("Kernel", "Step through the convolution"), ("ablate", "trace")),
    "dark": (390, ("Numbers", "Sum"), ("grad-cam", "embedding", "verify")),
}


@pytest.mark.promise
@pytest.mark.parametrize("scheme", WAYS)
def test_axe_finds_nothing_serious(
    browser: Browser, server: str, scheme: Literal["light", "dark"]
) -> None:
    width, origins, slugs = WAYS[scheme]
    context = new_context(browser, viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    page.goto(f"{server}/?channel=3&origin={origins[0]}")
    wait_for_grid(page)
    page.get_by_role("heading", name="Channel 3").wait_for()
    for origin in origins:
        chosen = page.get_by_role("radio", name=origin)
        if not chosen.is_checked():
            chosen.click()
        expect(chosen).to_be_checked()
        page.mouse.move(2, 2)  # as after a link: nothing is pointed at
        assert serious(page) == [], origin
    page.goto(f"{server}/?lens={slugs[0]}")
    for lens in map(find_lens, slugs):
        if lens.slug != slugs[0]:
            look_through(page, lens.question)
        page.get_by_role("heading", name=lens.question, exact=True).wait_for()
        settle(page)
        assert serious(page) == [], lens.slug


def test_axe_finds_nothing_serious_on_the_page_of_all_questions(
    browser: Browser, server: str
) -> None:
    tall: ViewportSize = {"width": 390, "height": 5000}  # a card has its picture once it is seen
    context = new_context(browser, viewport=tall, color_scheme="dark")
    page = context.new_page()
    page.goto(f"{server}/?lens=all")
    expect(page.locator(".card[data-shown]")).to_have_count(len(list_lenses()), timeout=60_000)
    page.mouse.move(2, 2)
    assert serious(page) == []
    page.get_by_role("searchbox").fill("no such words")
    expect(page.get_by_text("No question has these words.")).to_be_visible()
    assert serious(page) == []


_AXE = Axe()
# All that axe knows of a page is megabytes; this is what is asked for.
_VIOLATIONS = """async () => (await axe.run({resultTypes: ["violations"]})).violations
  .filter(({impact}) => impact === "serious" || impact === "critical")
  .map(({id, nodes}) => [id, nodes.map(({html}) => html)])"""


def serious(page: Page) -> list[tuple[str, list[str]]]:
    """What axe finds that is serious or worse: its rule, and the elements."""
    page.mouse.move(0, 0)  # a hint that comes or goes is pale for a moment
    at_rest(page)  # what is left of the run before is pale, and colours fade in
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(_AXE.axe_script)
    violations = page.evaluate(_VIOLATIONS)
    return [(rule, elements) for rule, elements in violations]
