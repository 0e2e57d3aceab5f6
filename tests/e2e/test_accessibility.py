"""What axe, a checker of accessibility, finds on the page."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser

from scripts.browsing import wait_for_grid


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("origin", ["One cell", "Kernel", "Walk"])
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
    page.wait_for_timeout(500)  # colours fade in
    found = Axe().run(page).response["violations"]
    serious = [
        (violation["id"], [node["html"] for node in violation["nodes"]])
        for violation in found
        if violation["impact"] in ("serious", "critical")
    ]
    assert serious == []
    context.close()
