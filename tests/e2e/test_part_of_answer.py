"""A region, a box, a second image and a patch that attends are asked about on the page."""

import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from playwright.sync_api import Browser, Page, ViewportSize, expect

import hookviz
from hookviz.images.samples import samples
from scripts.browsing import settled_box
from scripts.servers import ROOT, Server, serve
from tests.e2e.screen import at_rest, new_context, read_numbers
from tests.e2e.test_accessibility import serious
from tests.e2e.test_layout import lies_in, window

NETS = """
import torch
from torch import nn
from torchvision.models import VisionTransformer
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
    for made in (boxes(), vector(), attending()):
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

def attending():
    # weights that differ enough to tell patches apart
    torch.manual_seed(0)
    sizes = {"num_layers": 2, "num_heads": 4, "hidden_dim": 16, "mlp_dim": 16, "num_classes": 5}
    network = VisionTransformer(image_size=64, patch_size=8, **sizes)
    nn.init.normal_(network.heads.head.weight)
    for layer in network.encoder.layers:
        nn.init.normal_(layer.self_attention.in_proj_weight)
    return hookviz.wrap(network.eval(), hookviz.Preprocess(64, 64), name="attending")
"""
LAYER, GRID = "encoder.layers.encoder_layer_1.self_attention", 8
FOCUSED = """() => {
  let active = document.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
  return active?.textContent ?? "";
}"""


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
def shown(browser: Browser, address: Server) -> Callable[..., Page]:
    """Opens the page of one of the networks above."""

    def open_page(name: str, lens: str = "saliency", *, wide: int = 1280) -> Page:
        size: ViewportSize = {"width": wide, "height": 720 if wide > 640 else 844}
        page = new_context(browser, viewport=size).new_page()
        page.goto(f"{address}/?model={name}&lens={lens}")
        return page

    return open_page


def answer(page: Page, text: str) -> None:
    expect(page.locator("[class*=st-key-hv-answer]").get_by_text(text)).to_be_visible()


@pytest.mark.by_day
def test_a_region_of_the_maps_is_clicked_and_moved_by_keys(shown: Callable[..., Page]) -> None:
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
def test_a_box_is_clicked(shown: Callable[..., Page]) -> None:
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
def test_two_images_are_compared_by_their_vectors(shown: Callable[..., Page]) -> None:
    page = shown("vector")
    page.get_by_role("combobox", name="Similar to").click()
    page.get_by_role("option", name="Star").click()
    answer(page, "Asked about the similarity to the other image")
    expect(page).to_have_url(re.compile("like=star"))


def attention_weights() -> torch.Tensor:
    """Who attends to whom in the layer, as the library says: ``(heads, asking, asked)``."""
    namespace: dict[str, Any] = {}
    exec(NETS, namespace)  # noqa: S102
    cat = next(each.path for each in samples() if each.name == "cat")
    weights: torch.Tensor = hookviz.attention(namespace["attending"](), cat, LAYER)[LAYER]
    return weights


@pytest.mark.by_day
@pytest.mark.parametrize("wide", [1280, 390])
def test_a_click_on_a_patch_shows_what_it_attends_to(shown: Callable[..., Page], wide: int) -> None:
    page = shown("attending", f"attention&sample=cat&attention-layer={LAYER}", wide=wide)
    stage, said = page.locator(".attention[data-laid] .stage"), page.locator(".attention output")
    stage.wait_for()
    at_rest(page)
    box = settled_box(page, stage)
    assert lies_in(box, window(page)), box
    assert box["width"] > 200
    assert page.evaluate("document.documentElement.scrollWidth") <= wide
    weights = attention_weights()

    def expect_most(maps: torch.Tensor, asks: int) -> None:
        row, column = divmod(int(maps[asks, 1:].argmax()), GRID)
        expect(said).to_contain_text(f"the patch at row {row}, column {column}")
        most = read_numbers(said.inner_text())[-1]
        assert most == pytest.approx(float(maps[asks, 1:].max()), rel=6e-3)

    asked = page.evaluate("window.hvLine.asked")
    side = box["width"] / GRID
    stage.click(position={"x": 5.5 * side, "y": 2.5 * side})
    page.mouse.move(1, 1)
    expect(said).to_contain_text("row 2, column 5 attends most to")
    expect_most(weights.mean(0), 1 + 2 * GRID + 5)
    page.locator(".maps [role=radio]", has_text="head 3").click()
    expect_most(weights[3], 1 + 2 * GRID + 5)
    stage.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    expect(stage).to_have_attribute("data-cell", str(3 * GRID + 4))
    expect_most(weights[3], 1 + 3 * GRID + 4)
    page.keyboard.press("Tab")
    assert "head 3" in page.evaluate(FOCUSED)
    page.keyboard.press("ArrowRight")
    assert "class token" in page.evaluate(FOCUSED)
    expect_most(weights.mean(0), 0)
    stage.focus()
    page.keyboard.press("Escape")
    assert page.evaluate("window.hvLine.asked") == asked  # all of it was answered in the window
    assert not stage.evaluate("(stage) => stage.matches(':focus')")
    assert serious(page) == []
