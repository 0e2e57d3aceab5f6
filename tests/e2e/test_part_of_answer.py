"""A region of maps, a box of a detector and a second image are asked about on the page."""

import re
import sys
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from scripts.browsing import settled_box
from scripts.servers import ROOT, Server, serve
from tests.e2e.screen import at_rest, new_context

NETS = """
import torch
from torch import nn
from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn
import hookviz
from hookviz.models import user_models

class Maps(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.head = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 3, 1)
    def forward(self, images):
        return self.head(self.inner(images).relu())

def every():
    for made in (boxes(), vector()):
        user_models.add(made)
    return maps()

def maps():
    torch.manual_seed(0)
    names = ["sky", "cat", "grass"]
    return hookviz.wrap(Maps(), hookviz.Preprocess(32, 32), names, output="maps", name="maps")

def boxes():
    torch.manual_seed(0)
    network = fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=3, box_score_thresh=0.0,
        box_detections_per_img=5, box_nms_thresh=0.1)
    steps = hookviz.Preprocess(96, 96, (0.0,) * 3, (1.0,) * 3)
    return hookviz.wrap(network, steps, ["nothing", "cat", "dog"], name="boxes")

def vector():
    torch.manual_seed(0)
    layers = nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    return hookviz.wrap(nn.Sequential(*layers), hookviz.Preprocess(32, 32), output="embedding",
                        name="vector")
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that has all of the networks above."""
    folder = tmp_path_factory.mktemp("nets")
    (folder / "nets.py").write_text(NETS)
    command = [
        *(sys.executable, "-m", "hookviz", "run", "--model", "nets:every"),
        *("--port", "PORT", "--address", "127.0.0.1"),
    ]
    with serve({"PYTHONPATH": f"{folder}:{ROOT}"}, command) as served:
        yield served


@pytest.fixture
def shown(browser: Browser, address: Server) -> Callable[[str], Page]:
    """Opens the page of one of the networks above."""

    def open_page(name: str) -> Page:
        page = new_context(browser, viewport={"width": 1280, "height": 720}).new_page()
        page.goto(f"{address}/?model={name}&lens=saliency")
        return page

    return open_page


def answer(page: Page, text: str) -> None:
    expect(page.locator("[class*=st-key-hv-answer]").get_by_text(text)).to_be_visible()


@pytest.mark.by_day
def test_a_region_of_the_maps_is_clicked_and_moved_by_keys(shown: Callable[[str], Page]) -> None:
    page = shown("maps")
    stage = page.locator(".region .stage")
    expect(page.locator(".region output")).to_contain_text("Nothing is marked.")
    at_rest(page)
    box = settled_box(page, stage)
    page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    answer(page, "Asked about within the region alone:")
    expect(page).to_have_url(re.compile(r"region=rect%3A0\.469%2C0\.469%2C0\.531%2C0\.531"))
    at_rest(page)
    page.keyboard.press("ArrowRight")  # the focus is still there
    expect(page).to_have_url(re.compile(r"region=rect%3A0\.5%2C"))
    page.reload()
    answer(page, "Asked about within the region alone:")
    page.locator(".region .clear").click()
    expect(page).not_to_have_url(re.compile("region="))


@pytest.mark.by_day
def test_a_box_is_clicked(shown: Callable[[str], Page]) -> None:
    page = shown("boxes")
    stage = page.locator(".region .stage")
    at_rest(page)  # a detector takes its time on a busy machine
    expect(stage).to_be_visible()
    box = settled_box(page, stage)
    page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    answer(page, "Asked about the box that overlaps the region the most:")
    share = page.locator(".region output").inner_text()
    assert float(re.findall(r"[\d.]+", share)[0]) > 1, "a box, and not the small square of a click"


@pytest.mark.by_day
def test_two_images_are_compared_by_their_vectors(shown: Callable[[str], Page]) -> None:
    page = shown("vector")
    page.get_by_role("combobox", name="Similar to").click()
    page.get_by_role("option", name="Star").click()
    answer(page, "Asked about the similarity to the other image")
    expect(page).to_have_url(re.compile("like=star"))
