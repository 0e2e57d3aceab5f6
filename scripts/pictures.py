"""Make the pictures of the README and of docs: screenshots of the real app in Chromium."""

import math
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal
from urllib.parse import urlencode

from PIL import Image
from playwright.sync_api import Browser, FloatRect

from hookviz.images.samples import samples
from hookviz.lenses.contract.lens import Lens
from hookviz.lenses.contract.running import list_lenses
from scripts.browsing import NO_CHROMIUM, browsing, chromium, wait_for_grid
from scripts.servers import serve

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"


@dataclass(frozen=True)
class Shot:
    """One screenshot: its file, the view's link, the screen, and what it waits for."""

    file: str
    query: str
    scheme: Literal["light", "dark"] = "light"
    width: int = 1440
    height: int = 900
    wait_for: str = ""
    is_lesson: bool = False
    is_map: bool = False


_LESSON = "lesson=convolution&step=3"

SHOTS = (
    Shot("screen.png", ""),
    Shot("screen.zh.png", "lang=zh-CN"),
    Shot("screen-dark.png", "sample=coffee&layer=features.3.squeeze&channel=5", "dark"),
    Shot("channel.png", "sample=rocket&layer=features.4.expand3x3&channel=12"),
    Shot("phone.png", "layer=features.11.squeeze&channel=21", width=390, height=844),
    Shot(
        "compare.png",
        urlencode(
            {
                "layer": "features.3.squeeze",
                "weights": "random",
                "compare": "Split",
                "channel": "3",
                "a": urlencode(
                    {
                        "sample": "cat",
                        "name": "Cat",
                        "model": "SqueezeNet (photographs)",
                        "weights": "pretrained",
                        "size": "",
                        "whole": "0",
                        "layer": "features.3.squeeze",
                        "step": "features.3.squeeze",
                    }
                ),
            }
        ),
    ),
    Shot("whole-network.png", "sample=cat&inside=/&why=285", "light", is_map=True),
    Shot(
        "atlas.png",
        "model=ShapesNet&sample=star&layer=stage3.second.conv&channel=9&patches=true",
        "dark",
    ),
    Shot(
        "what-it-looks-for.png",
        "layer=features.9.expand3x3&channel=5&made=256-0",
        "light",
        wait_for="img[alt$='step 256']",
    ),
    Shot(
        "walk.png",
        "model=ShapesNet&sample=flower&layer=stage1.second.conv&channel=12&origin=Walk",
        "dark",
    ),
    Shot("lesson.png", _LESSON, is_lesson=True),
    Shot("lesson.zh.png", f"{_LESSON}&lang=zh-CN", is_lesson=True),
)

_DRAWING = {"model": "ShapesNet", "sample": "flower"}
_PHOTOGRAPH = {"sample": "cat"}
QUERIES = {
    "grad-cam": _PHOTOGRAPH,
    "saliency": _PHOTOGRAPH,
    "occlusion": _PHOTOGRAPH,
    "integrated-gradients": _PHOTOGRAPH,
    "effective-receptive-field": {"sample": "cat", "layer": "features.7.expand3x3"},
    "gradients": {"model": "ShapesNet", "sample": "star"},
    "maximize": {
        "sample": "cat",
        "layer": "features.9.expand3x3",
        "maximize-of": "channels side by side",
        "maximize-channels": "0-17",
    },
    "dream": {"sample": "cat", "layer": "features.9.expand3x3"},
    "inversion": _PHOTOGRAPH,
    "embedding": _PHOTOGRAPH,
    "toaster": _PHOTOGRAPH,
    "attention": {"model": "ShapesViT (drawings)", "sample": "flower"},
}
"""What a lens is shown with; a drawing where nothing is said."""


def take(browser: Browser, address: str, shot: Shot) -> None:
    """Save one screenshot once its grid, or its lesson, is painted."""
    page = browser.new_page(
        viewport={"width": shot.width, "height": shot.height}, color_scheme=shot.scheme
    )
    page.goto(f"{address}/?{shot.query}")
    if shot.is_lesson:
        page.locator("[class*=st-key-hv-live-]").first.wait_for()
    elif shot.is_map:
        page.locator(".class-why .ways li").first.wait_for()
    else:
        wait_for_grid(page)
        page.locator(".why h4:not(:empty)").wait_for(state="attached")  # it may be another tab's
    if shot.wait_for:
        page.locator(shot.wait_for).wait_for(timeout=120_000)
    page.wait_for_timeout(2000)  # let the sidebar finish sliding, and the tree come
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


def take_live(path: str, address: str) -> None:
    """Save the stream, with a photograph that a hand seems to move before the camera."""
    with tempfile.TemporaryDirectory() as folder:
        film = Path(folder) / "film.y4m"
        with film.open("wb") as file:
            write_film(file, next(each.path for each in samples() if each.name == "cat"))
        camera = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")
        with browsing(path, *camera, f"--use-file-for-fake-video-capture={film}") as browser:
            page = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme="light")
            page.goto(f"{address}/?image=Live&layer=features.3.squeeze&channel=5")
            page.get_by_text(re.compile("frames/s")).wait_for()
            page.wait_for_timeout(12_000)  # until the strip of the last seconds is full
            page.mouse.move(720, 1)
            page.screenshot(path=FOLDER / "live.png")
            page.keyboard.press("m")
            page.locator(".live .moments li").nth(3).wait_for()
            page.screenshot(path=FOLDER / "mirror.png")
            page.close()
    print(FOLDER.name, "live.png", "mirror.png")


def write_film(file: BinaryIO, photograph: Path, frames: int = 90, side: int = 480) -> None:
    """Write a YUV4MPEG2 film, 30 frames a second, that goes round over a photograph."""
    wide, high = side * 4 // 3, side
    with Image.open(photograph) as picture:
        large = picture.convert("RGB").resize((wide * 5 // 4, high * 5 // 4))
    file.write(f"YUV4MPEG2 W{wide} H{high} F30:1 Ip A1:1 C420jpeg\n".encode())
    for frame in range(frames):
        turn = 2 * math.pi * frame / frames
        left, top = (1 + math.cos(turn)) * wide / 8, (1 + math.sin(turn)) * high / 8
        shown = large.crop((int(left), int(top), int(left) + wide, int(top) + high))
        light, blue, red = shown.convert("YCbCr").split()
        half = (wide // 2, high // 2)
        file.write(b"FRAME\n" + light.tobytes())
        file.write(blue.resize(half).tobytes() + red.resize(half).tobytes())


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
            if lens.slug != "segmentation":  # which asks for weights that are not in the box
                take_lens(browser, address, lens)
    with serve() as address:
        take_live(path, address)


if __name__ == "__main__":
    main()
