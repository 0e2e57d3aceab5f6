"""What axe, a checker of accessibility, finds on the page."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, ViewportSize, expect

from hookviz.lenses.contract.running import find_lens, list_lenses
from scripts.browsing import wait_for_grid
from tests.e2e.screen import at_rest, look_through, new_context
from tests.e2e.test_lenses import settle
from tests.every_way import EVERY_WAY

ORIGINS = ("Kernel", "Sum", "Step through the convolution", "Numbers")
LENSES = ("ablate", "grad-cam", "embedding", "trace", "verify")


# A projector shows what a desk does, a phone is held in the dark; by night all with all.
WAYS = [("light", 1440), ("dark", 390)] + ([("light", 390), ("dark", 1440)] if EVERY_WAY else [])


@contextmanager
def themed(browser: Browser, scheme: str, width: int = 1440) -> Iterator[Page]:
    """A page in a theme, which the server chooses colours by when it is loaded."""
    size: ViewportSize = {"width": width, "height": 900}
    context = new_context(browser, viewport=size, color_scheme=scheme)
    yield context.new_page()
    context.close()


@pytest.fixture(params=WAYS, ids=lambda theme_and_size: f"{theme_and_size[0]}-{theme_and_size[1]}")
def somewhere(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    with themed(browser, *request.param) as page:
        yield page


@pytest.mark.promise
def test_axe_finds_nothing_serious(somewhere: Page, server: str) -> None:
    page = somewhere
    page.goto(f"{server}/?channel=3&origin={ORIGINS[0]}")
    wait_for_grid(page)
    page.get_by_role("heading", name="Channel 3").wait_for()
    for origin in ORIGINS:
        chosen = page.get_by_role("radio", name=origin)
        if not chosen.is_checked():
            chosen.click()
        expect(chosen).to_be_checked()
        page.mouse.move(2, 2)  # as after a link: nothing is pointed at
        at_rest(page)
        assert serious(page) == [], origin


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_lenses(browser: Browser, server: str, scheme: str) -> None:
    """Each lens in a theme, by turns."""
    slugs = LENSES if EVERY_WAY else LENSES[scheme == "dark" :: 2]
    with themed(browser, scheme) as page:
        page.goto(f"{server}/?{urlencode({'lens': slugs[0]})}")
        for lens in map(find_lens, slugs):
            if lens.slug != slugs[0]:
                look_through(page, lens.question)
            page.get_by_role("heading", name=lens.question, exact=True).wait_for()
            settle(page)
            assert serious(page) == [], lens.slug


def test_axe_finds_nothing_serious_on_the_page_of_all_questions(
    somewhere: Page, server: str
) -> None:
    page = somewhere
    assert page.viewport_size is not None
    tall = {**page.viewport_size, "height": 5000}  # a card has its picture once it is seen
    page.set_viewport_size(tall)  # type: ignore[arg-type]
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
    at_rest(page)  # what is left of the run before is pale, and colours fade in
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(_AXE.axe_script)
    violations = page.evaluate(_VIOLATIONS)
    return [(rule, elements) for rule, elements in violations]
