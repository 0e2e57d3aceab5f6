"""What the server holds for people who come and go."""

import pytest
from playwright.sync_api import Browser, Page, expect

from scripts.browsing import wait_for_grid
from scripts.servers import Server
from tests.e2e.probing import get, until
from tests.e2e.screen import at_rest, new_context
from tests.pictures import encoded, picture


def used(address: str) -> int:
    """Bytes that sessions hold, without what all share of a sample."""
    return int(get(f"{address}/probe")["used"])


def test_a_session_that_ends_gives_its_bytes_back(browser: Browser, probed: Server) -> None:
    until(lambda: used(probed) == 0)  # whoever was there before has gone
    held, pages = [], [new_context(browser).new_page() for _ in range(2)]
    for page in pages:
        page.goto(probed)
        wait_for_grid(page)
        at_rest(page)  # what is drawn last is kept too
        held.append(used(probed))
    assert 0 < held[0] < held[1]
    pages[1].close()
    until(lambda: used(probed) == held[0])
    pages[0].close()
    until(lambda: used(probed) == 0)


@pytest.mark.by_day
def test_a_page_that_is_loaded_again_has_its_photograph_back_and_another_browser_has_not(
    page: Page, browser: Browser, server: str
) -> None:
    page.goto(f"{server}/?model=ShapesNet&layer=stage1.first.conv&channel=3")
    sample = wait_for_grid(page)
    page.get_by_role("radio", name="Upload").click()
    file = {"name": "mine.png", "mimeType": "image/png", "buffer": encoded(picture(1))}
    page.locator("input[type=file]").set_input_files(file)  # type: ignore[arg-type]
    mine = wait_for_grid(page, sample)
    note = "somebody's own photograph"

    def load_again() -> str:
        at_rest(page)
        link = page.url
        page.reload()
        assert wait_for_grid(page) == mine
        expect(page.get_by_role("heading", name="Channel 3")).to_be_visible()
        at_rest(page)
        expect(page.get_by_text(note)).to_have_count(0)
        assert page.url == link
        return link

    load_again()
    link = load_again()
    another = new_context(browser, viewport={"width": 1440, "height": 900}).new_page()
    another.goto(link)
    assert wait_for_grid(another) == sample
    expect(another.get_by_text(note)).to_be_visible()
    expect(another.get_by_role("heading", name="Channel 3")).to_be_visible()

    page.get_by_role("radio", name="Camera").click()
    page.wait_for_function("() => document.querySelector('video')?.readyState >= 2")
    page.get_by_role("button", name="Take Photo").click()
    mine = wait_for_grid(page, mine)
    load_again()
