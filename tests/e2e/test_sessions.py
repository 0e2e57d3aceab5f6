"""What the server holds for people who come and go."""

import json
import sys
import time
import urllib.request

from playwright.sync_api import Browser

from scripts.browsing import wait_for_grid
from scripts.servers import serve
from tests.e2e.test_history import settle


def used(address: str) -> int:
    with urllib.request.urlopen(f"{address}/probe", timeout=5) as answer:
        return int(json.load(answer)["used"])


def test_a_session_that_ends_gives_its_bytes_back(browser: Browser) -> None:
    command = [
        *(sys.executable, "-m", "streamlit", "run", "tests/e2e/probed_app.py"),
        *("--server.port", "PORT", "--server.address", "127.0.0.1"),
    ]
    with serve(command=command) as address:
        assert used(address) == 0
        pages = [browser.new_page() for _ in range(2)]
        for page in pages:
            page.goto(address)
            wait_for_grid(page)
        for page in pages:
            settle(page)  # what is drawn last is kept too
        both = used(address)
        pages[0].close()
        deadline = time.monotonic() + 20
        while used(address) != both / 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert used(address) == both / 2 > 0
        pages[1].close()
        deadline = time.monotonic() + 20
        while used(address) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert used(address) == 0
