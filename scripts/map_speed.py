"""Measure the map of a whole network: its first picture, its frames under a hand, the tab's memory.

``python -m scripts.map_speed`` drags the map in Chromium without a GPU, at three depths: the whole
network, inside of a block, and so near that all channels of a layer are seen.
"""

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from playwright.sync_api import Browser, Page

from scripts.browsing import NO_CHROMIUM, browsing, chromium, wait_for_grid
from scripts.servers import serve

NETWORKS = {  # a block to be inside of, and a layer to be near
    "ResNet-50": ("layer3", "layer1.0.conv3"),
    "DenseNet-121": ("features.denseblock3", "features.denseblock2.denselayer3.conv1"),
}
_STEPS = 240  # of a hand, at about as many a second as a mouse sends

# Chooses the map and resolves with the milliseconds until something is painted on it.
_OPEN = """() => new Promise((resolve) => {
  const roots = () => [...document.querySelectorAll("*")].map((e) => e.shadowRoot).filter(Boolean);
  const find = (selector) => roots().map((root) => root.querySelector(selector)).find(Boolean);
  const started = performance.now();
  find(".seen-as button:last-child").click();
  const look = () => {
    const canvas = find(".whole canvas");
    if (canvas?.width) {
      const row = [0, Math.round(canvas.height / 2), canvas.width, 1];
      const { data } = canvas.getContext("2d").getImageData(...row);
      if (data.some((level) => level > 0)) return resolve(performance.now() - started);
    }
    requestAnimationFrame(look);
  };
  look();
})"""
_RECORD = """() => {
  window.hvFrames = [];
  const note = (now) => {
    if (!window.hvFrames) return;
    window.hvFrames.push(now);
    requestAnimationFrame(note);
  };
  requestAnimationFrame(note);
}"""
_RECORDED = "() => { const seen = window.hvFrames; window.hvFrames = null; return seen; }"


def main() -> None:
    """Print a row of the table for each network."""
    path = chromium()
    if path is None:
        print(NO_CHROMIUM)
        return
    print("| network | first picture s | depth | frame p50 ms | p95 ms | over 1/30 s | tab MB |")
    print("|---|---:|---|---:|---:|---:|---:|")
    with serve() as address:
        for name, (block, layer) in NETWORKS.items():
            link = f"{address}/?model={name}&weights=random&sample=cat"
            with browsing(path) as browser:
                page = browser.new_page(viewport={"width": 1440, "height": 900})
                page.goto(link)
                wait_for_grid(page)
                first = float(page.evaluate(_OPEN)) / 1000
            for inside in ("/", block, layer):
                with browsing(path) as browser:  # whose only tab it is
                    print(f"| {name} | {first:.2f} | {_row(browser, link, inside)} |", flush=True)


def _row(browser: Browser, link: str, inside: str) -> str:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"{link}&inside={inside}")
    page.locator(".map-stage").wait_for()
    page.wait_for_timeout(4000)  # what is near has come
    frames = _dragged(page)
    late = sum(each > 1000 / 30 for each in frames) / len(frames)
    p95 = statistics.quantiles(frames, n=20)[-1]
    depth = "whole network" if inside == "/" else inside
    return (
        f"{depth} | {statistics.median(frames):.1f} | {p95:.1f} "
        f"| {late:.1%} | {_tab_bytes(browser) / 1e6:.0f}"
    )


def _dragged(page: Page) -> Sequence[float]:
    """Return the milliseconds of each frame while a hand moves the map round and round."""
    box = page.locator(".map-stage").bounding_box()
    assert box is not None
    across, down = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(across, down)
    page.mouse.down()
    page.evaluate(_RECORD)
    for step in range(_STEPS):
        turn = 2 * math.pi * step / 60
        page.mouse.move(across + 120 * math.sin(turn), down + 80 * (math.cos(turn) - 1))
    seen: list[float] = page.evaluate(_RECORDED)
    page.mouse.up()
    return [later - earlier for earlier, later in pairwise(seen)]


def _tab_bytes(browser: Browser) -> int:
    """Return the memory of the largest tab, with its share of what is shared."""
    session = browser.new_browser_cdp_session()
    told = session.send("SystemInfo.getProcessInfo")["processInfo"]
    session.detach()
    return max(_proportional(each["id"]) for each in told if each["type"] == "renderer")


def _proportional(process: int) -> int:
    lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


if __name__ == "__main__":
    main()
