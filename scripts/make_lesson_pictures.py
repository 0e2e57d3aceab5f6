"""Make the small pictures in `assets/lessons/pictures`, which the list of lessons has.

    python -m scripts.make_lesson_pictures

Each is a part of a lesson's step as the app shows it, on a light page, 480 pixels wide.
"""

import io

from PIL import Image
from playwright.sync_api import FloatRect, Page

from hookviz.ui.lessons.catalog import lessons
from scripts.browsing import NO_CHROMIUM, browsing, chromium
from scripts.servers import ROOT, serve

FOLDER = ROOT / "assets" / "lessons" / "pictures"
_WIDE = 480  # pixels of a picture
_SHAPE = 2.0  # its width by its height, at least
_QUALITY = 85
_SETTLED_MS = 4000  # for animations and the browser's own painting


STEPS = {"image": 2, "convolution": 3, "reading-maps": 3}
"""Which step of a lesson its picture shows, if not the first: from the first picture in it on."""


def main() -> None:
    """Write a JPEG file for each lesson."""
    path = chromium()
    if path is None:
        raise SystemExit(NO_CHROMIUM)
    FOLDER.mkdir(exist_ok=True)
    with serve() as server, browsing(path) as browser:
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        for lesson in lessons():
            page.goto(f"{server}/?lesson={lesson.slug}&step={STEPS.get(lesson.slug, 1)}")
            picture = page.screenshot(clip=_part(page), scale="css")
            with Image.open(io.BytesIO(picture)) as image:
                high = round(_WIDE * image.height / image.width)
                small = image.convert("RGB").resize((_WIDE, high), Image.Resampling.LANCZOS)
                small.save(FOLDER / f"{lesson.slug}.jpg", quality=_QUALITY, optimize=True)


def _part(page: Page) -> FloatRect:
    """Return the part of the window that a picture shows, once the step is drawn."""
    live = page.locator("[class*='st-key-hv-live-']").first
    live.wait_for()
    picture = live.locator("img, canvas").first
    picture.wait_for()
    page.wait_for_timeout(_SETTLED_MS)
    whole, first = live.bounding_box(), picture.bounding_box()
    assert whole is not None
    assert first is not None
    top = first["y"]
    width = whole["x"] + whole["width"] - first["x"]
    height = min(width / _SHAPE, 900 - top, whole["y"] + whole["height"] - top)
    return {"x": first["x"], "y": top, "width": width, "height": height}


if __name__ == "__main__":
    main()
