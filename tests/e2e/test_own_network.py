"""A network that a program or a command line brings, in a real browser."""

import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import hookviz
from hookviz.images.samples import samples
from scripts.automatic_grid import automatic_grid
from scripts.browsing import wait_for_grid
from scripts.children import child
from scripts.servers import ROOT, serve
from tests.e2e.screen import new_context
from tests.networks import Tiny, seeded

NETS = """
from torch import nn
import hookviz

def grey():
    return hookviz.wrap(nn.Sequential(nn.Conv2d(1, 5, 3), nn.Flatten(), nn.Linear(5 * 30 * 30, 2)),
                        hookviz.Preprocess(32, 32, (0.5,), (0.5,)), ["dark", "bright"])
"""


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
        page.goto(f"{url}&lang=zh-CN")
        in_chinese = wait_for_grid(page)
        page.goto(url)
        shown = wait_for_grid(page)
    model = hookviz.wrap(seeded(Tiny), hookviz.Preprocess(resize=32, crop=32))
    expected = hookviz.capture(model, samples()[0].path, "conv1")["conv1"]
    assert shown == in_chinese == automatic_grid(expected).sprite


@pytest.mark.sweep("by day without a browser: tests/cli/test_run.py")
def test_run_shows_a_greyscale_network_of_a_module(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "nets.py").write_text(NETS)
    command = [
        *(sys.executable, "-m", "hookviz", "run", "--model", "nets:grey"),
        *("--port", "PORT", "--address", "127.0.0.1"),
    ]
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    with serve(environment, command) as address:
        page = new_context(browser).new_page()
        page.goto(address)
        assert len(wait_for_grid(page)) > 1000
        expect(page.get_by_text("bright", exact=True)).to_be_visible()
        expect(page.get_by_text("All 5 channels.")).to_be_visible()
        page.close()
