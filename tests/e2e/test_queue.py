"""Three people at a server at which others compute."""

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from hookviz.images.samples import samples
from scripts.browsing import wait_for_grid
from scripts.servers import Server
from tests.e2e.screen import SHAPESNET, new_context


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


@pytest.mark.sweep("by day without a browser: tests/ui/serving/test_queue_wait.py")
def test_people_see_their_place_move_up_and_are_served(browser: Browser, probed: Server) -> None:
    def waiting() -> int:
        return int(get(f"{probed}/probe")[1]["waiting"])

    runs = get(f"{probed}/ahead")[1]["runs"]
    until(lambda: get(f"{probed}/probe")[1]["running"] == runs)
    pages = []
    for number in (1, 2, 3):
        page = new_context(browser).new_page()
        page.goto(f"{probed}/{SHAPESNET}")
        expect(page.get_by_text(f"You are number {number} in the queue")).to_be_visible()
        pages.append(page)
    first, second, third = pages

    status, health = get(f"{probed}/health/deep")  # a long queue is no illness
    assert (status, health) == (200, {"status": "ok", "script": "busy", "engine": "ok"})

    second.close()  # a person who leaves is dropped, and the next moves up
    expect(third.get_by_text("You are number 2 in the queue")).to_be_visible()
    until(lambda: waiting() == 2)
    # a click while one waits starts the page again, and keeps the place
    first.get_by_role("radio", name=samples()[1].title).click()
    expect(first).to_have_url(re.compile(f"sample={samples()[1].name}"))
    expect(first.get_by_text("You are number 1 in the queue")).to_be_visible()

    get(f"{probed}/go")
    assert wait_for_grid(first)[:4] == wait_for_grid(third)[:4] == b"\x89PNG"
    for page in (first, third):
        expect(page.get_by_text("in the queue")).to_have_count(0)
        page.close()
    until(lambda: get(f"{probed}/probe")[1] == {"waiting": 0, "running": 0, "used": 0})
