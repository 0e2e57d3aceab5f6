"""The grid takes what room there is: on a laptop, and on a projector at 150 %."""

from itertools import pairwise

import pytest
from playwright.sync_api import Browser

from scripts.browsing import settled_box, tiles, wait_for_grid
from tests.e2e.screen import new_context
from tests.e2e.test_layout import expect_seen


@pytest.mark.sweep("by day at three sizes: tests/e2e/test_layout.py")
def test_the_grid_is_as_wide_as_its_place_and_fills_a_small_window(
    browser: Browser, server: str
) -> None:
    """A projector at 150 % leaves 960 × 600: the sidebar is folded, and rows keep to one line."""
    for width, height, scale in ((1440, 900, 1.0), (960, 600, 1.5)):
        context = new_context(
            browser, viewport={"width": width, "height": height}, device_scale_factor=scale
        )
        page = context.new_page()
        page.goto(f"{server}/?channel=3")
        wait_for_grid(page)
        lie, place = tiles(page), settled_box(page, page.locator("figure .window"))
        wide = lie.columns * (lie.wide + lie.gap) - lie.gap
        assert place["width"] - lie.columns <= wide <= place["width"]
        assert lie.top < 0.45 * height
        last = lie.box(lie.count - 1)
        assert last["y"] + last["height"] <= height
        assert wide * (last["y"] + last["height"] - lie.top) > 0.25 * width * height
        expect_seen(page, page.locator(".why h4"))
        marks = page.locator("figure .ticks span:visible").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect()).map(box => [box.left, box.right])"
        )
        marks.sort()
        assert all(one[1] < other[0] for one, other in pairwise(marks))
        context.close()
