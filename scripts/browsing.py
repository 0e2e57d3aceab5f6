"""Drive the real app in an installed Chromium, for tests, the benchmark and the pictures."""

import base64
import hashlib
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from playwright.sync_api import Browser, FloatRect, Locator, Page, expect, sync_playwright

NO_CHROMIUM = (
    "No Chromium on this machine. On Debian and Ubuntu: apt-get install chromium; "
    "elsewhere install Chromium or Google Chrome so that it is on the PATH."
)
PICTURE = "figure img.picture"
STAGE = "figure .stage"

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# It has no windows to begin with: a page costs it a third less than the whole browser.
_SHELL = "chromium-headless-shell"
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
_PATIENCE = 30.0  # seconds for what is on its way
# What is about to move has moved by then, however busy the browser is: it draws late, too.
_THREE_FRAMES = """() => new Promise((done) => {
  const draw = (left) => left ? requestAnimationFrame(() => draw(left - 1)) : done();
  draw(3);
})"""


@dataclass(frozen=True, slots=True)
class Tiles:
    """Layout of the grid's tiles on the screen, in CSS pixels.

    Attributes:
        columns: how many stand in a row.
        wide, high: the size of a tile.
        gap: what lies between two of them.
        left, top: where the first begins in the window.
        first: the position of the first tile in view, where they come in pages.
        page: how many are in view at once.
        count: how many there are.
    """

    columns: int
    wide: float
    high: float
    gap: float
    first: int
    page: int
    left: float
    top: float
    count: int

    def box(self, position: int) -> FloatRect:
        """Return the box of the tile at a position of the order, if on the page in view."""
        row, column = divmod(position - self.first, self.columns)
        return {
            "x": self.left + column * (self.wide + self.gap),
            "y": self.top + row * (self.high + self.gap),
            "width": self.wide,
            "height": self.high,
        }


def chromium(*, whole: bool = False) -> str | None:
    """Return the path of a Chromium, its headless shell first unless `whole`; None without."""
    names = _NAMES if whole else (_SHELL, *_NAMES)
    return next((path for name in names if (path := shutil.which(name))), None)


@contextmanager
def browsing(path: str, *flags: str) -> Iterator[Browser]:
    """Run a headless browser, with more flags if need be, for the time of the block."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*_FLAGS, *flags])
        try:
            yield browser
        finally:
            browser.close()


# The bytes of a picture's file in base64; none while it changes.
_READ = """async (image) => {
  const answer = await fetch(image.src).catch(() => null);
  const bytes = answer ? new Uint8Array(await answer.arrayBuffer()) : [];
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}"""


def picture_bytes(image: Locator) -> bytes:
    """Return the file of a picture on the screen."""
    return base64.b64decode(image.evaluate(_READ))


def grid_bytes(page: Page) -> bytes:
    """Return the PNG that the grid on the screen is painted from."""
    return picture_bytes(page.locator(PICTURE))


def wait_for_grid(page: Page, previous: bytes = b"") -> bytes:
    """Wait until a grid other than the last one is painted, and return its PNG.

    Raises:
        AssertionError: there was none within half a minute; it says what was on the page instead.
        TimeoutError: no other one was painted within half a minute.
    """
    expect(page.locator(PICTURE)).to_be_attached(timeout=1000 * _PATIENCE)
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        shown = grid_bytes(page)
        painted = page.locator(STAGE).get_attribute("data-painted")
        if shown != previous and painted == hashlib.blake2b(shown, digest_size=8).hexdigest():
            return shown
        page.wait_for_timeout(30)
    raise TimeoutError("no other grid was painted")


def settled_box(page: Page, what: Locator) -> FloatRect:
    """Return an element's box once nothing above it is still loading and moving it.

    Raises:
        TimeoutError: it never came to rest.
    """
    return settled_boxes(page, what)[0]


def settled_boxes(page: Page, *whats: Locator) -> list[FloatRect]:
    """Return several elements' boxes once none of them moves: to wait for each takes longer.

    Raises:
        TimeoutError: they never came to rest.
    """
    deadline, last = time.monotonic() + _PATIENCE, None
    while time.monotonic() < deadline:
        found = [what.bounding_box() for what in whats]
        boxes = [box for box in found if box is not None]
        loads = page.get_by_test_id("stSkeleton").count()
        if len(boxes) == len(whats) and boxes == last and not loads:
            return boxes
        last = boxes
        page.evaluate(_THREE_FRAMES)
    raise TimeoutError("it never came to rest")


def tiles(page: Page) -> Tiles:
    """Return how the tiles lie, once the grid has come to rest."""
    stage, picture = page.locator(STAGE), page.locator(PICTURE)
    deadline = time.monotonic() + _PATIENCE
    while picture.evaluate("shown => shown.dataset.key !== shown.dataset.wanted"):
        if time.monotonic() > deadline:
            raise TimeoutError("the grid's picture did not come")
        page.wait_for_timeout(30)
    box = settled_box(page, page.locator(f"{STAGE} canvas"))
    layout = json.loads(stage.get_attribute("data-layout") or "{}")
    last = int(stage.get_attribute("aria-valuemax") or 0)
    return Tiles(**layout, left=box["x"], top=box["y"], count=last + 1)


def tile_centre(page: Page, position: int) -> tuple[float, float]:
    """Return a tile's centre in the window; sorted by index its position is its channel."""
    box = tiles(page).box(position)
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


# The grid lives in a component's shadow root, which document.querySelector does not enter.
FIND_STAGE = """
[...document.querySelectorAll("*")]
  .map((element) => element.shadowRoot && element.shadowRoot.querySelector("figure .stage"))
  .find(Boolean)
"""
