"""Driving the real app in an installed Chromium: for tests, the benchmark and the pictures."""

import base64
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

NO_CHROMIUM = (
    "No Chromium on this machine. On Debian and Ubuntu: apt-get install chromium; "
    "elsewhere install Chromium or Google Chrome so that it is on the PATH."
)
PICTURE = "figure img.picture"

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def chromium() -> str | None:
    """The path of an installed Chromium or Chrome; None where there is none."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)


@contextmanager
def browsing(path: str, *flags: str) -> Iterator[Browser]:
    """A headless browser, with more flags if need be, for the time of the block."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*_FLAGS, *flags])
        try:
            yield browser
        finally:
            browser.close()


def grid_bytes(page: Page) -> bytes:
    """The PNG of the grid on the screen."""
    source = page.locator(PICTURE).get_attribute("src") or ""
    return base64.b64decode(source.partition(",")[2])


def wait_for_grid(page: Page, previous: bytes = b"") -> bytes:
    """The grid's PNG once it is painted, and another one than before."""
    known = base64.b64encode(previous).decode() if previous else "nothing"
    page.locator(PICTURE).wait_for()
    page.wait_for_function(
        """([find, known]) => {
            const picture = eval(find);
            return picture && picture.naturalWidth > 0 && picture.src.split(",")[1] !== known;
        }""",
        arg=[FIND_PICTURE, known],
    )
    return grid_bytes(page)


# The grid lives in a component's shadow root, which document.querySelector does not enter.
FIND_PICTURE = """
[...document.querySelectorAll("*")]
  .map((element) => element.shadowRoot && element.shadowRoot.querySelector("figure img.picture"))
  .find(Boolean)
"""
