"""Make the README's pictures: screenshots of the real app in Chromium."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser

from scripts.browsing import NO_CHROMIUM, browsing, chromium, wait_for_grid
from scripts.servers import serve

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"


@dataclass(frozen=True)
class Shot:
    """One screenshot: its file, the view's link, and the screen."""

    file: str
    query: str
    scheme: Literal["light", "dark"] = "light"
    width: int = 1440
    height: int = 900


SHOTS = (
    Shot("screen.png", ""),
    Shot("screen-dark.png", "sample=coffee&layer=stage1.first.conv&scale=symmetric", "dark"),
    Shot("channel.png", "channel=12&cell=20,33", "light", 1440, 2150),
    Shot("phone.png", "sample=flower", "light", 390, 844),
)


def take(browser: Browser, address: str, shot: Shot) -> None:
    """Save one screenshot once its grid is painted."""
    page = browser.new_page(
        viewport={"width": shot.width, "height": shot.height}, color_scheme=shot.scheme
    )
    page.goto(f"{address}/?{shot.query}")
    wait_for_grid(page)
    page.wait_for_timeout(1000)  # let the sidebar finish sliding
    page.screenshot(path=FOLDER / shot.file)
    page.close()
    print(FOLDER.name, shot.file)


def main() -> None:
    """Take every shot."""
    path = chromium()
    if path is None:
        sys.exit(NO_CHROMIUM)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with serve() as address, browsing(path) as browser:
        for shot in SHOTS:
            take(browser, address, shot)


if __name__ == "__main__":
    main()
