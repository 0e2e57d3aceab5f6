"""Three people at one server that computes for one at a time."""

import json
import re
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, expect

from scripts.browsing import wait_for_grid
from scripts.servers import serve
from tests.e2e.screen import SHAPESNET, choose

COMMAND = (
    *(sys.executable, "-m", "streamlit", "run", "tests/e2e/queue_app.py"),
    *("--server.port", "PORT", "--server.address", "127.0.0.1"),
)


def get(address: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(address, timeout=20) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_people_see_their_place_move_up_and_are_served(browser: Browser) -> None:
    with serve({"HOOKVIZ_RUNS": "1"}, COMMAND) as address:

        def waiting() -> int:
            return int(get(f"{address}/probe")[1]["waiting"])

        get(f"{address}/ahead")
        until(lambda: get(f"{address}/probe")[1]["running"] == 1)
        pages = []
        for number in (1, 2, 3):
            page = browser.new_page()
            page.goto(f"{address}/{SHAPESNET}")
            expect(page.get_by_text(f"You are number {number} in the queue")).to_be_visible()
            pages.append(page)
        first, second, third = pages

        status, health = get(f"{address}/health/deep")  # a long queue is no illness
        assert (status, health) == (200, {"status": "ok", "script": "busy", "engine": "ok"})

        second.close()  # a person who leaves is dropped, and the next moves up
        expect(third.get_by_text("You are number 2 in the queue")).to_be_visible()
        until(lambda: waiting() == 2)
        # a click while one waits starts the page again, and keeps the place
        choose(first, "Layer", "stage1.first.conv")
        expect(first).to_have_url(re.compile("layer=stage1.first.conv"))
        expect(first.get_by_text("You are number 1 in the queue")).to_be_visible()

        get(f"{address}/go")
        assert wait_for_grid(first)[:4] == wait_for_grid(third)[:4] == b"\x89PNG"
        for page in (first, third):
            expect(page.get_by_text("in the queue")).to_have_count(0)
            page.close()
        until(lambda: get(f"{address}/probe")[1] == {"waiting": 0, "running": 0, "used": 0})


def test_the_class_code_stands_before_everything(browser: Browser) -> None:
    with serve({"HOOKVIZ_CLASS_CODE": "blue chalk"}, COMMAND) as address:
        page = browser.new_page()
        page.goto(f"{address}/?model=ShapesNet")
        code = page.get_by_label("Class code")
        code.fill("red chalk")
        page.get_by_role("button", name="Come in").click()
        expect(page.get_by_text("This is not the code")).to_be_visible()
        assert get(f"{address}/probe")[1]["used"] == 0
        code.fill("blue chalk")
        page.get_by_role("button", name="Come in").click()
        wait_for_grid(page)
        page.close()


def test_a_login_that_is_set_up_stands_before_everything(browser: Browser, tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.toml"
    secrets.write_text('[auth]\nclient_id = "x"\ncookie_secret = "y"\n')
    environment = {"HOOKVIZ_LOGIN": "1", "STREAMLIT_SECRETS_FILES": str(secrets)}
    with serve(environment, COMMAND) as address:
        page = browser.new_page()
        page.goto(address)
        expect(page.get_by_role("button", name="Log in")).to_be_visible()
        expect(page.locator("figure")).to_have_count(0)
        page.close()
