"""A lens that grows: seen while it runs, stopped, kept, and gone on with."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from scripts.servers import Server
from tests.e2e.screen import at_rest, choose, without_errors

_LATE = 5  # rows that a run can still paint while it is being ended
LINK = "?model=ShapesNet&lens=growing"

# Whether the picture was gone, or another element, at any frame that the browser drew.
WATCH = """() => {
  const roots = [...document.querySelectorAll("*")].flatMap((each) => each.shadowRoot ?? []);
  const board = roots.find((root) => root.querySelector(".panels"));
  const find = () => board.isConnected && board.querySelector('img[alt$="rows are painted"]');
  window.first = find();
  window.tops = [];
  const look = () => {
    const image = find();
    window.tops.push(image === window.first ? image.getBoundingClientRect().top : null);
    requestAnimationFrame(look);
  };
  look();
}"""


@pytest.fixture(autouse=True)
def quiet(probed: Server) -> Iterator[None]:
    with without_errors(probed):
        yield


def rows(page: Page) -> int:
    """How many rows of the picture are painted."""
    alt = page.get_by_role("img", name=re.compile("rows are painted$")).get_attribute("alt")
    return int((alt or "").split()[0])


def until_beyond(page: Page, count: int) -> int:
    for _ in range(400):
        if (seen := rows(page)) > count:
            return seen
        page.wait_for_timeout(50)
    raise AssertionError("it does not grow")


def stop(page: Page) -> Locator:
    return page.get_by_role("button", name="Stop", exact=True)


def test_a_result_grows_in_its_place_is_kept_and_gone_on_with(page: Page, probed: Server) -> None:
    page.goto(f"{probed}/{LINK}&growing-pause=120")  # so that a slow browser presses Stop in time
    stop(page).wait_for(timeout=60_000)
    first = until_beyond(page, 5)
    # What Streamlit loads when it is first needed moves what is below once it is there.
    page.get_by_test_id("stProgress").wait_for()
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
    page.evaluate(WATCH)
    second = until_beyond(page, first)
    stop(page).click()
    stopped = page.get_by_text(re.compile(r"^(pause)?\s*Stopped at \d+ %$"))
    expect(stopped).to_be_visible()
    expect(stop(page)).to_have_count(0)
    expect(page.locator("[data-stale=true]")).to_have_count(0)
    kept = rows(page)
    assert second <= kept < 100
    page.wait_for_timeout(500)
    assert rows(page) == kept  # nothing runs
    choose(page, "Layer", "stage1.first.conv")  # another click, and it is still there
    expect(page).to_have_url(re.compile("layer=stage1.first.conv"))
    at_rest(page)
    expect(stopped).to_be_visible()
    assert 0 <= rows(page) - kept <= _LATE
    kept = rows(page)  # with what the ended run had painted after the page was drawn

    page.get_by_role("button", name="Go on").click()
    expect(stopped).to_have_count(0)
    until_beyond(page, kept)
    took = page.get_by_text(re.compile(r"^took [\d,]+ ms$"))
    expect(took).to_have_count(0)  # nothing of the run before stands there
    begun = page.get_by_text(re.compile(r"^Step \d+, begun at \d+\.$")).inner_text()
    assert int(begun.split()[-1].rstrip(".")) >= kept
    expect(page.get_by_role("img", name="100 rows are painted")).to_be_visible(timeout=30_000)
    expect(took).to_be_visible()
    expect(stop(page)).to_have_count(0)
    expect(page.get_by_role("button", name="Go on")).to_have_count(0)
    tops = page.evaluate("window.tops")
    assert None not in tops  # one picture from the beginning to the end
    assert max(tops) - min(tops) <= 2, sorted(set(tops))
