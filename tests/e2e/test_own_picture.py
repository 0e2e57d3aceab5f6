"""What the picked channel looks for, drawn while one looks: stopped, kept, linked."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from scripts.browsing import picture_bytes, wait_for_grid
from tests.e2e.screen import SHAPESNET

LAYER, CHANNEL = "stage2.second.conv", 9
LINK = f"{SHAPESNET}&layer={LAYER}&channel={CHANNEL}"
STEPS = re.compile(r"made for channel \d+, step (\d+)$")


def picture(page: Page, steps: str = r"\d+", channel: int = CHANNEL) -> Locator:
    return page.get_by_role("img", name=re.compile(rf"made for channel {channel}, step {steps}$"))


def steps_done(page: Page) -> int:
    alt = STEPS.search(picture(page).get_attribute("alt") or "")
    assert alt is not None
    return int(alt[1])


def until_beyond(page: Page, steps: int) -> int:
    for _ in range(600):
        if (done := steps_done(page)) > steps:
            return done
        page.wait_for_timeout(50)
    raise AssertionError("it does not grow")


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=False)


def in_link(page: Page) -> str:
    return parse_qs(urlsplit(page.url).query).get("made", [""])[0]


@pytest.mark.sweep("by day a lens that grows: tests/e2e/test_growing.py")
def test_a_picture_grows_is_stopped_kept_linked_and_gone_on_with(page: Page, server: str) -> None:
    page.goto(f"{server}/{LINK}&made=2048-3")
    wait_for_grid(page)
    expect(picture(page)).to_be_visible(timeout=60_000)
    until_beyond(page, until_beyond(page, 1))
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


def test_the_link_makes_the_same_picture_for_somebody_else(page: Page, server: str) -> None:
    sources = set()
    for _ in range(2):
        page.context.clear_cookies()
        page.goto("about:blank")
        page.goto(f"{server}/{LINK}&made=12-5")
        expect(picture(page, "12")).to_be_visible(timeout=60_000)
        expect(button(page, "More steps")).to_be_visible(timeout=30_000)
        sources.add(picture_bytes(picture(page)))
    assert len(sources) == 1


@pytest.mark.sweep("by day by the link: the test above")
def test_the_button_begins_it_and_the_next_channel_has_its_own(page: Page, server: str) -> None:
    page.goto(f"{server}/{LINK}")
    wait_for_grid(page)
    expect(picture(page)).to_have_count(0)
    button(page, "What does the channel look for?").click()
    expect(picture(page, "256")).to_be_visible(timeout=60_000)
    button(page, "Random weights").click()
    heading = page.get_by_role("heading", name="What does the channel look for?")
    expect(heading).to_be_visible(timeout=30_000)
    expect(page.get_by_role("heading", name="With random weights")).to_be_visible(timeout=90_000)
    query = parse_qs(urlsplit(page.url).query)
    assert query["channel"] == [str(CHANNEL)]
    page.goto(f"{server}/{LINK.replace(str(CHANNEL), '10')}&made=8-0")
    expect(picture(page, "8", 10)).to_be_visible(timeout=60_000)
    button(page, "No picture").click()
    expect(picture(page, channel=10)).to_have_count(0)
    assert in_link(page) == ""
