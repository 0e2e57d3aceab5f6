"""A lens's answer is seen without scrolling; pictures that are compared have one crop and scale."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from hookviz.lenses.contract.running import list_lenses
from scripts.browsing import settled_box, settled_boxes
from tests.e2e.screen import at_rest, new_context
from tests.e2e.test_layout import SIZES, lies_in, window
from tests.e2e.test_lenses import opened
from tests.every_lens import SLUGS_OF_ANY

SLUGS = SLUGS_OF_ANY
LENSES = {lens.slug: lens for lens in list_lenses()}
BY_DAY = {
    "laptop": ("inputs",),
    "projector": ("grad-cam", "ablate", "across-images", "gradient-flow", "kernels", "summary"),
    "phone": ("occlusion", "gradients", "responds-here", "trace"),
}
"""Lenses with all kinds of panels; by night all at the size that has least room beside."""
MANY_SMALL = {"across-images", "embedding"}
"""Whose answer is many small pictures: rows of them, of which a phone has room for the first."""
CASES = [(size, slug) for size, slugs in BY_DAY.items() for slug in slugs] + [
    pytest.param("projector", slug, marks=pytest.mark.sweep("by day one with such panels"))
    for slug in SLUGS
    if slug not in BY_DAY["projector"]
]
# Headings on which something lies that follows them.
COVERED = """all => all.filter((heading) => {
  let part = heading;
  while (!part.nextElementSibling) part = part.parentElement;
  const next = part.nextElementSibling.getBoundingClientRect();
  return next.height > 0 && next.top < heading.getBoundingClientRect().bottom - 1;
}).map((heading) => heading.textContent)"""


@pytest.fixture(scope="module")
def sizes(browser: Browser) -> Iterator[dict[str, Page]]:
    """A page of each size."""
    contexts = {
        size: new_context(
            browser, viewport={"width": width, "height": height}, has_touch=size == "phone"
        )
        for size, (width, height) in SIZES.items()
    }
    yield {size: context.new_page() for size, context in contexts.items()}
    for context in contexts.values():
        context.close()


def first_answer(page: Page) -> Locator:
    """What comes first of what is no sentence: a panel that is drawn, maps, pictures or a table."""
    answers = page.locator('[class*="st-key-hv-answer-"]')
    shown = (
        *(".panel", "ul[aria-label] > li", "[data-testid=stImage]"),
        *(".hv-tree", "[data-testid=stDataFrame]"),
    )
    return answers.locator(", ".join(shown)).first


@pytest.mark.parametrize(("size", "slug"), CASES)
def test_the_answer_is_seen_without_scrolling(
    sizes: dict[str, Page], server: str, size: str, slug: str
) -> None:
    page = sizes[size]
    opened(page, server, LENSES[slug])
    at_rest(page)
    first = first_answer(page)
    box, settings = settled_box(page, first), page.locator(".st-key-hv-settings")
    assert lies_in(box, window(page)), box
    assert box["width"] > (100 if slug in MANY_SMALL else 140)
    assert box["height"] > 60
    assert page.locator('[class*="st-key-hv-answer-"] h3').evaluate_all(COVERED) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= window(page)["width"]
    if settings.count():
        assert settled_box(page, settings)["height"] < 90  # one row


def test_pictures_that_are_compared_have_one_crop_and_scale_and_fade_together(
    sizes: dict[str, Page], server: str
) -> None:
    page = sizes["projector"]
    link = {"grad-cam-beside": "another class"}
    opened(page, server, LENSES["grad-cam"], sample="star", **link)
    panels = page.locator(".panels[data-laid] > .panel")
    maps = panels.filter(has=page.get_by_role("slider", name=re.compile("^Opacity")))
    expect(maps).to_have_count(3)
    expect(maps.nth(0).get_by_role("heading")).to_have_text(re.compile("^Grad-CAM · star$"))
    expect(maps.nth(1).get_by_role("heading")).to_have_text(re.compile("^Grad-CAM · (?!star)"))
    both = settled_boxes(page, *(maps.nth(at).locator(".body") for at in range(2)))
    assert all(lies_in(box, window(page)) for box in both)
    assert both[0] | {"x": 0} == both[1] | {"x": 0}
    assert both[0]["x"] != both[1]["x"]
    maps.nth(0).get_by_role("slider").fill("20")
    shape = "all => new Set(all.map((each) => each.naturalWidth / each.naturalHeight)).size"
    for each in maps.all():
        expect(each.locator(".picture:not(.lower)")).to_have_css("opacity", "0.2")
        assert each.locator(".picture").evaluate_all(shape) == 1
