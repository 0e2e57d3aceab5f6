"""What a browser fetches for the first page, beside what the page's HTML has named."""

from playwright.sync_api import Page

from scripts.browsing import wait_for_grid

SCRIPTS = """() => performance.getEntriesByType("resource").map((each) => each.name)
    .filter((name) => name.includes("/static/js/"))"""
NAMED = """() => [...document.querySelectorAll("head link[rel=modulepreload], head script[src]")]
    .map((each) => each.href || each.src)"""


def test_the_html_names_all_scripts_of_the_first_page_and_no_others(
    page: Page, server: str
) -> None:
    page.goto(server)
    wait_for_grid(page)
    fetched, named = set(page.evaluate(SCRIPTS)), set(page.evaluate(NAMED))
    assert fetched == named
