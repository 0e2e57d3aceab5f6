"""How long a person waits: from a server's start to the first grid, and from layer to layer."""

import statistics
import time
from collections.abc import Iterator

from playwright.sync_api import Browser, Page

from scripts.browsing import FIND_PICTURE, NO_CHROMIUM, browsing, chromium, wait_for_grid
from scripts.servers import serve

_SWITCHES = 9

# Clicks "Next" and resolves with the milliseconds until another picture has been painted.
_SWITCH = """(find) => new Promise((resolve) => {
  const before = eval(find).src;
  const next = [...document.querySelectorAll("button")].find((b) => b.innerText.includes("Next"));
  const started = performance.now();
  next.click();
  const look = () => {
    const picture = eval(find);
    if (picture && picture.src !== before && picture.complete)
      requestAnimationFrame(() => resolve(performance.now() - started));
    else requestAnimationFrame(look);
  };
  look();
})"""

# Clicks a channel of the grid and resolves with the milliseconds until its inspector is painted.
_PICK = """([find, channel]) => new Promise((resolve) => {
  const picture = eval(find);
  const box = picture.getBoundingClientRect();
  const at = { clientX: box.left + box.width * (channel + 0.5) / 8, clientY: box.top + 20 };
  const started = performance.now();
  picture.parentElement.dispatchEvent(new MouseEvent("click", at));
  const look = () => {
    const headings = [...document.querySelectorAll("h3")].map((heading) => heading.innerText);
    const shown = headings.includes(`Channel ${channel}`);
    if (shown) requestAnimationFrame(() => resolve(performance.now() - started));
    else requestAnimationFrame(look);
  };
  look();
})"""


def measure_screen() -> Iterator[tuple[str, float, str]]:
    """What was measured, its seconds, and the aim."""
    path = chromium()
    if path is None:
        print(NO_CHROMIUM)
        return
    with browsing(path) as browser:
        launched = time.perf_counter()
        with serve() as address:
            ready = time.perf_counter()
            _open(browser, address)
            shown = time.perf_counter()
            yield "from launching the server to the first grid", shown - launched, ""
            yield "from a freshly started server to the first grid", shown - ready, "< 3"
            started = time.perf_counter()
            _open(browser, address)
            yield "first grid of the next visitor", time.perf_counter() - started, ""
            small = f"{address}/?model=ShapesNet"
            yield "next layer, ShapesNet", _switches(_open(browser, small)), "< 0.2"
            page = _open(browser, small)
            yield "from a click to the inspector with its cell", _picks(page), "< 0.2"
            page = _open(browser, f"{address}/?model=ResNet-34&weights=random")
            yield "next layer, ResNet-34", _switches(page), "< 0.2"


def _open(browser: Browser, address: str) -> Page:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(address)
    wait_for_grid(page)
    return page


def _switches(page: Page) -> float:
    """Median seconds from a click on the next layer to its grid painted."""
    taken: list[float] = []
    for _ in range(_SWITCHES):
        page.wait_for_timeout(400)  # a person looks before clicking on
        taken.append(float(page.evaluate(_SWITCH, FIND_PICTURE)) / 1000)
    return statistics.median(taken)


def _picks(page: Page) -> float:
    """Median seconds from a click on a channel of the first row to its inspector painted."""
    taken: list[float] = []
    for channel in range(8):  # ShapesNet's first layer has eight in a row
        page.wait_for_timeout(400)
        taken.append(float(page.evaluate(_PICK, [FIND_PICTURE, channel])) / 1000)
    return statistics.median(taken[1:])  # the first one builds what the later ones keep
