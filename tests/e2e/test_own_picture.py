"""What the picked channel looks for, drawn while one looks: stopped, kept, linked."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from scripts.browsing import picture_bytes
from tests.e2e.screen import SHAPESNET

LAYER, CHANNEL = "stage2.second.conv", 9
LINK = f"{SHAPESNET}&layer={LAYER}&channel={CHANNEL}"


def picture(page: Page, steps: str = r"\d+") -> Locator:
    return page.get_by_role("img", name=re.compile(rf"made for channel {CHANNEL}, step {steps}$"))


def steps_done(page: Page) -> int:
    return int((picture(page).get_attribute("alt") or "").split()[-1])


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=False)


@pytest.mark.by_day
def test_the_link_makes_the_same_picture_for_somebody_else_who_begins_and_stops_others(
    page: Page, server: str
) -> None:
    sources = set()
    for _ in range(2):
        page.context.clear_cookies()
        page.goto("about:blank")
        page.goto(f"{server}/{LINK}&made=12-5")
        expect(picture(page, "12")).to_be_visible(timeout=60_000)
        expect(button(page, "More steps")).to_be_visible(timeout=30_000)
        sources.add(picture_bytes(picture(page)))
    assert len(sources) == 1
    button(page, "No picture").click()
    expect(picture(page)).to_have_count(0)
    expect(page).not_to_have_url(re.compile("made="))
    button(page, "What does the channel look for?").click()
    expect(picture(page)).to_be_visible(timeout=60_000)

    page.goto(f"{server}/{LINK}&made=2048-3")  # long enough to be stopped
    expect(picture(page)).to_be_visible(timeout=60_000)
    for _ in range(2):  # it grows
        expect(picture(page, str(steps_done(page)))).to_have_count(0)
    button(page, "Stop").click()
    expect(button(page, "More steps")).to_be_visible(timeout=30_000)
    kept = steps_done(page)
    assert 1 < kept < 2048
    expect(page).to_have_url(re.compile(rf"made={kept}-3\b"))
    source = picture_bytes(picture(page))
    button(page, "Another").click()  # another seed, and another picture
    expect(picture(page, "256")).to_be_visible(timeout=60_000)
    expect(page).to_have_url(re.compile(r"made=256-4\b"))
    page.go_back()
    expect(picture(page, str(kept))).to_be_visible(timeout=30_000)
    assert picture_bytes(picture(page)) == source  # the session has kept it
