"""What axe, a checker of accessibility, finds on the page."""

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, ViewportSize, expect

from hookviz.lenses.contract.running import find_lens
from scripts.browsing import wait_for_grid
from tests.e2e.screen import choose
from tests.e2e.test_history import settle as at_rest
from tests.e2e.test_lenses import settle

ORIGINS = ("Kernel", "Walk", "Numbers")
LENSES = ("ablate", "grad-cam", "embedding", "trace", "verify")


@pytest.fixture(params=["light", "dark"])
def themed(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page in each theme, which the server chooses colours by when it is loaded."""
    size: ViewportSize = {"width": 1440, "height": 900}
    context = browser.new_context(viewport=size, color_scheme=request.param)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("width", [1440, 390])
def test_axe_finds_nothing_serious(themed: Page, server: str, width: int) -> None:
    page = themed
    page.set_viewport_size({"width": width, "height": 900})
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


def test_axe_finds_nothing_serious_in_lenses(themed: Page, server: str) -> None:
    page = themed
    page.goto(f"{server}/?{urlencode({'lens': LENSES[0]})}")
    for lens in map(find_lens, LENSES):
        if lens.slug != LENSES[0]:
            choose(page, "Look at", f"{lens.question} · {lens.title}")
        page.get_by_role("heading", name=lens.question, exact=True).wait_for()
        settle(page)
        assert serious(page) == [], lens.slug


def serious(page: Page) -> list[tuple[str, list[str]]]:
    """What axe finds that is serious or worse: its rule, and the elements."""
    at_rest(page)  # what is left of the run before is pale
    page.wait_for_timeout(500)  # colours fade in
    found = Axe().run(page).response["violations"]
    return [
        (violation["id"], [node["html"] for node in violation["nodes"]])
        for violation in found
        if violation["impact"] in ("serious", "critical")
    ]
