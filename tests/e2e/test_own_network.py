"""A network that a program or a command line brings, in a real browser."""

import subprocess
import sys

import pytest
from playwright.sync_api import Page

import hookviz
from hookviz.images.samples import samples
from scripts.automatic_grid import automatic_grid
from scripts.browsing import wait_for_grid
from scripts.children import child
from scripts.servers import ROOT
from tests.networks import Tiny, seeded

EXPLORES = """
import time
import hookviz
from tests.networks import Tiny, seeded

steps = hookviz.Preprocess(resize=32, crop=32)
with hookviz.explore(seeded(Tiny), preprocess=steps, open_browser=False) as explorer:
    print(explorer.url, flush=True)
    time.sleep(600)
"""
"""In a process of its own: Streamlit's AppTest, in other tests, breaks a server beside it."""


@pytest.mark.by_day
def test_explore_shows_a_network_of_a_running_program(page: Page) -> None:
    with child([sys.executable, "-c", EXPLORES], cwd=ROOT, stdout=subprocess.PIPE) as program:
        url = program.stdout.readline().strip()
        page.goto(url)
        shown = wait_for_grid(page)
    model = hookviz.wrap(seeded(Tiny), hookviz.Preprocess(resize=32, crop=32))
    expected = hookviz.capture(model, samples()[0].path, "conv1")["conv1"]
    assert shown == automatic_grid(expected).sprite
