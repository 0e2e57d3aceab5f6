"""Make the pictures of the README and of docs: screenshots of the real app in Chromium."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

from playwright.sync_api import Browser, FloatRect

from hookviz.lenses.contract.lens import Lens
from hookviz.lenses.contract.running import list_lenses
from scripts.browsing import NO_CHROMIUM, browsing, chromium, wait_for_grid
from scripts.servers import serve

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"


@dataclass(frozen=True)
class Shot:
    """One screenshot: its file, the view's link, the screen, and what is scrolled into view."""

    file: str
    query: str
    scheme: Literal["light", "dark"] = "light"
    width: int = 1440
    height: int = 900
    scroll_to: str = ""


SHOTS = (
    Shot("screen.png", "channel=16&cell=48,36,111,111"),
    Shot("screen-dark.png", "sample=coffee&layer=features.3.squeeze&channel=5", "dark"),
    Shot("channel.png", "sample=rocket&layer=features.4.expand3x3&channel=12"),
    Shot("phone.png", "channel=16&cell=48,36,111,111", width=390, height=844),
    Shot(
        "walk.png",
        "model=ShapesNet&sample=flower&layer=stage1.second.conv&channel=12&origin=Walk",
        "dark",
        scroll_to=".walk .says",
    ),
)

_DRAWING = {"model": "ShapesNet", "sample": "flower"}
_PHOTOGRAPH = {"sample": "cat"}
QUERIES = {
    "grad-cam": _PHOTOGRAPH,
    "saliency": _PHOTOGRAPH,
    "gradients": {"model": "ShapesNet", "sample": "star"},
    "embedding": _PHOTOGRAPH,
}
"""What a lens is shown with; a drawing where nothing is said."""


def take(browser: Browser, address: str, shot: Shot) -> None:
    """Save one screenshot once its grid is painted."""
    page = browser.new_page(
        viewport={"width": shot.width, "height": shot.height}, color_scheme=shot.scheme
    )
    page.goto(f"{address}/?{shot.query}")
    wait_for_grid(page)
    page.locator(".why h4").wait_for()
    page.wait_for_timeout(2000)  # let the sidebar finish sliding, and the tree come
    if shot.scroll_to:
        page.locator(shot.scroll_to).scroll_into_view_if_needed()
    page.mouse.move(shot.width / 2, 1)  # from wherever a cursor would be painted
    page.screenshot(path=FOLDER / shot.file)
    page.close()
    print(FOLDER.name, shot.file)


def take_lens(browser: Browser, address: str, lens: Lens) -> None:
    """Save what a lens shows, without the sidebar, once it has run."""
    page = browser.new_page(viewport={"width": 1440, "height": 1000}, color_scheme="light")
    query = {"lens": lens.slug, **QUERIES.get(lens.slug, _DRAWING)}
    page.goto(f"{address}/?{urlencode(query)}")
    page.get_by_text(re.compile(r"^took ")).wait_for(timeout=180_000)
    page.wait_for_timeout(1500)
    box = page.get_by_test_id("stMainBlockContainer").bounding_box()
    assert box is not None
    clip: FloatRect = {"x": box["x"], "y": 0, "width": box["width"], "height": 1000}
    page.screenshot(path=FOLDER / f"lens-{lens.slug}.png", clip=clip)
    page.close()
    print(FOLDER.name, f"lens-{lens.slug}.png")


def main() -> None:
    """Take every shot."""
    path = chromium()
    if path is None:
        sys.exit(NO_CHROMIUM)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with serve() as address, browsing(path) as browser:
        for shot in SHOTS:
            take(browser, address, shot)
        for lens in list_lenses():
            take_lens(browser, address, lens)


if __name__ == "__main__":
    main()
