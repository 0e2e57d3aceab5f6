"""Measure how long a person waits: for the first grid, another layer, and a click's sum."""

import statistics
import time
from collections.abc import Iterator

from playwright.sync_api import Browser, Page

from scripts.browsing import FIND_STAGE, NO_CHROMIUM, browsing, chromium, tiles, wait_for_grid
from scripts.servers import serve

_SWITCHES = 9

_FIND = f"const find = () => {FIND_STAGE.strip()};"

# Presses a key and resolves with the milliseconds until another picture has been painted.
_SWITCH = """(key) => new Promise((resolve) => {
  FIND
  const before = find().dataset.painted;
  const started = performance.now();
  const code = "Key" + key.toUpperCase();
  document.body.dispatchEvent(
    new KeyboardEvent("keydown", { key, code, keyCode: code.charCodeAt(3), bubbles: true }),
  );
  const look = () => {
    const painted = find()?.dataset.painted; // no stage while the next layer's is made
    if (painted && painted !== before)
      requestAnimationFrame(() => resolve(performance.now() - started));
    else requestAnimationFrame(look);
  };
  look();
})""".replace("FIND", _FIND)

# Clicks a tile and resolves with the milliseconds until its map and its sum are on the screen.
_PICK = """([channel, x, y]) => new Promise((resolve) => {
  FIND
  const roots = () => [...document.querySelectorAll("*")].map((e) => e.shadowRoot).filter(Boolean);
  const sum = () => roots().map((root) => root.querySelector(".why h4")).find(Boolean)?.textContent;
  const before = sum();
  const started = performance.now();
  find().dispatchEvent(new MouseEvent("click", { clientX: x, clientY: y }));
  const look = () => {
    const map = roots().some((root) =>
      root.querySelector(`.single [aria-label^="The map of channel ${channel}:"]`));
    if (map && sum() && sum() !== before)
      requestAnimationFrame(() => resolve(performance.now() - started));
    else requestAnimationFrame(look);
  };
  look();
})""".replace("FIND", _FIND)

# Clicks another cell of the large map and resolves with the milliseconds until its value is read
# out and its frame is there, on the map and on the photograph.
_CELL = """([x, y]) => new Promise((resolve) => {
  const roots = [...document.querySelectorAll("*")].map((e) => e.shadowRoot).filter(Boolean);
  const root = roots.find((each) => each.querySelector(".hv-picked"));
  const [stage, frame, value] = [".stage", ".selected", "output"].map(
    (name) => root.querySelector(`.map-b .single ${name}`));
  const seen = root.querySelector(".photograph-place .sees");
  const state = () => [frame.style.cssText, seen.style.cssText, value.textContent];
  const before = state();
  const started = performance.now();
  const box = stage.getBoundingClientRect();
  const at = { clientX: box.left + x * box.width, clientY: box.top + y * box.width };
  stage.dispatchEvent(new MouseEvent("click", at));
  const look = () => {
    if (state().every((each, index) => each !== before[index]))
      requestAnimationFrame(() => resolve(performance.now() - started));
    else requestAnimationFrame(look);
  };
  look();
})"""


def measure_screen() -> Iterator[tuple[str, float, str]]:
    """Return what was measured, its seconds, and the aim."""
    path = chromium()
    if path is None:
        print(NO_CHROMIUM)
        return
    with browsing(path) as browser:
        launched = time.perf_counter()
        with serve() as address:
            ready = time.perf_counter()
            page = _open(browser, address)
            shown = time.perf_counter()
            yield "from launching the server to the first grid", shown - launched, ""
            yield "from a freshly started server to the first grid", shown - ready, "< 3"
            started = time.perf_counter()
            _open(browser, address)
            yield "first grid of the next visitor", time.perf_counter() - started, ""
            yield "N and P, bundled model", _switches(page), "< 0.08"
            page = _open(browser, address)
            yield "from a click to the map and the sum", _picks(page), "< 0.10"
            yield "another cell's value and frame", _cells(page), "< 0.03"
            yield "N and P with a channel picked", _switches(page), "< 0.08"
            page = _open(browser, f"{address}/?model=ResNet-34&weights=random")
            yield "N and P, ResNet-34", _switches(page), "< 0.08"


def main() -> None:
    """Print a line for each."""
    for what, seconds, aim in measure_screen():
        print(f"{what:50} {seconds:6.3f} s  {aim}", flush=True)


def _open(browser: Browser, address: str) -> Page:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(address)
    wait_for_grid(page)
    return page


def _switches(page: Page) -> float:
    """Return the median seconds from N or P to the neighbour's grid painted."""
    taken: list[float] = []
    for key in ("npn" * _SWITCHES)[:_SWITCHES]:
        page.wait_for_timeout(400)  # a person looks before pressing on
        taken.append(float(page.evaluate(_SWITCH, key)) / 1000)
    return statistics.median(taken)


def _picks(page: Page) -> float:
    """Return the median seconds from a click on a tile to its map and its sum."""
    lie, taken = tiles(page), list[float]()
    for channel in range(9):
        box = lie.box(channel)
        page.wait_for_timeout(400)
        found = page.evaluate(_PICK, [channel, box["x"] + 9.0, box["y"] + 20.0])
        taken.append(float(found) / 1000)
    return statistics.median(taken[1:])  # the first one builds what the later ones keep


def _cells(page: Page) -> float:
    """Return the median seconds from a click on another cell to its value and frame."""
    taken: list[float] = []
    for step in range(1, 10):
        page.wait_for_timeout(400)
        taken.append(float(page.evaluate(_CELL, [step / 11, 0.4 + step / 30])) / 1000)
    return statistics.median(taken)


if __name__ == "__main__":
    main()
