"""What the server holds for people who come and go."""

import json
import urllib.request

from playwright.sync_api import Browser

from scripts.browsing import wait_for_grid
from scripts.servers import Server
from tests.e2e.screen import at_rest, new_context
from tests.e2e.test_queue import until


def used(address: str) -> int:
    """Bytes that sessions hold, without what all share of a sample."""
    with urllib.request.urlopen(f"{address}/probe", timeout=5) as answer:
        return int(json.load(answer)["used"])


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
