"""What axe, a checker of accessibility, finds on the page."""

from urllib.parse import urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from hookviz.lenses.contract.running import find_lens
from scripts.browsing import wait_for_grid
from tests.e2e.test_lenses import settle


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("origin", ["Kernel", "Walk", "Numbers"])
def test_axe_finds_nothing_serious(
    browser: Browser, server: str, scheme: str, width: int, origin: str
) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    page.goto(f"{server}/?channel=3&origin={origin}")
    wait_for_grid(page)
    page.get_by_role("heading", name="Channel 3").wait_for()
    assert serious(page) == []
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("slug", ["ablate", "grad-cam", "embedding", "trace", "verify"])
def test_axe_finds_nothing_serious_in_lenses(
    browser: Browser, server: str, scheme: str, slug: str
) -> None:
    context = browser.new_context(
        viewport={"width": 1440, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    lens = find_lens(slug)
    page.goto(f"{server}/?{urlencode({'lens': lens.slug})}")
    settle(page)
    assert serious(page) == []
    context.close()


def serious(page: Page) -> list[tuple[str, list[str]]]:
    """What axe finds that is serious or worse: its rule, and the elements."""
    page.wait_for_timeout(500)  # colours fade in
    found = Axe().run(page).response["violations"]
    return [
        (violation["id"], [node["html"] for node in violation["nodes"]])
        for violation in found
        if violation["impact"] in ("serious", "critical")
    ]
