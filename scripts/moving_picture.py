"""Film the README's moving picture: a visitor picks channels, goes deeper, sees the whole network.

The real app in Chromium, once in each language: a frame for each thing that is done, and the
pointer drawn where it is.
"""

import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageDraw
from playwright.sync_api import Browser, Page

from scripts.browsing import (
    NO_CHROMIUM,
    browsing,
    chromium,
    settled_box,
    tile_centre,
    wait_for_grid,
)
from scripts.servers import serve

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"
FILES = {"moving.webp": "en", "moving.zh.webp": "zh-CN"}

_WIDE, _HIGH = 1280, 800
_SHOWN = (960, 600)  # pixels of the film
_GLIDE = 4  # frames on the way of the pointer
_POINTER = ((0, 0), (0, 22), (5, 17), (9, 26), (13, 24), (9, 16), (16, 16))


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture of the film, and the milliseconds that it stays."""

    picture: Image.Image
    stays: int


class Visitor:
    """Moves the pointer and clicks as a person does, and films it."""

    def __init__(self, page: Page) -> None:
        """Begin with the pointer at the window's middle."""
        self.page, self.frames = page, list[Frame]()
        self._at = (_WIDE / 2, _HIGH / 2)

    def film(self, stays: int) -> None:
        """Keep what is in the window now."""
        self.page.mouse.move(*self._at)
        with Image.open(io.BytesIO(self.page.screenshot())) as shot:
            picture = shot.convert("RGB")
        x, y = self._at
        ImageDraw.Draw(picture).polygon(
            [(x + right, y + down) for right, down in _POINTER], fill="black", outline="white"
        )
        self.frames.append(Frame(picture.resize(_SHOWN, Image.Resampling.LANCZOS), stays))

    def click(self, x: float, y: float, stays: int) -> None:
        """Glide to a place, click it, and stay with what comes of it."""
        begun = self._at
        for step in range(1, _GLIDE + 1):
            share = step / _GLIDE
            self._at = (begun[0] + share * (x - begun[0]), begun[1] + share * (y - begun[1]))
            self.film(60)
        self.page.mouse.click(x, y)
        self.page.wait_for_timeout(700)
        self.film(stays)

    def press(self, key: str, stays: int) -> None:
        """Press a key, and stay with what comes of it."""
        self.page.keyboard.press(key)
        self.page.wait_for_timeout(700)
        self.film(stays)


def play(browser: Browser, address: str, language: str) -> Iterator[Frame]:
    """Yield the frames of a visit in a language."""
    page = browser.new_page(viewport={"width": _WIDE, "height": _HIGH}, color_scheme="light")
    page.goto(f"{address}/?sample=cat&channel=16&lang={language}")
    wait_for_grid(page)
    page.wait_for_timeout(3000)  # let the sidebar finish sliding, and the tree come
    visitor = Visitor(page)
    visitor.film(1200)
    for position in (5, 27, 12):
        visitor.click(*tile_centre(page, position), 800)
    for _ in range(4):
        visitor.press("n", 800)
    whole = settled_box(page, page.locator(".seen-as [role=radio]").last)
    visitor.click(whole["x"] + whole["width"] / 2, whole["y"] + whole["height"] / 2, 2500)
    page.close()
    yield from visitor.frames


def main() -> None:
    """Film every visit."""
    path = chromium()
    if path is None:
        sys.exit(NO_CHROMIUM)
    with serve() as address, browsing(path) as browser:
        for file, language in FILES.items():
            first, *others = play(browser, address, language)
            first.picture.save(
                FOLDER / file,
                save_all=True,
                append_images=[each.picture for each in others],
                duration=[each.stays for each in (first, *others)],
                loop=0,
                quality=80,
                method=6,
            )
            print(FOLDER.name, file)


if __name__ == "__main__":
    main()
