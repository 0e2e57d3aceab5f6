"""Reading and operating the page as a person does."""

import base64
import io
import re

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from scripts.browsing import grid_bytes

SHAPESNET = "?model=ShapesNet"
"""The link to the network whose layers and numbers a test knows by name."""


def grid_pixels(page: Page) -> Image.Image:
    """The grid on the screen as RGBA pixels."""
    return Image.open(io.BytesIO(grid_bytes(page))).convert("RGBA")


def pixels(canvas: Locator) -> NDArray[np.uint8]:
    """What a canvas is painted with as RGBA ``(H, W, 4)``, in its own pixels."""
    url = str(canvas.evaluate("element => element.toDataURL()"))
    with Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))) as painted:
        return np.asarray(painted.convert("RGBA"))


def choose(page: Page, label: str, option: str) -> None:
    """Pick an option of a select box by typing it, as a person would; layers have a number too."""
    box = page.get_by_role("combobox", name=label, exact=True)
    box.click()
    box.fill(option)
    page.get_by_role("option", name=re.compile(rf"^(\d+ · )?{re.escape(option)}$")).click()


def expect_caption(page: Page, text: str) -> None:
    """Wait for a line of small text that contains `text`."""
    expect(page.get_by_text(re.compile(re.escape(text))).first).to_be_visible()
