"""Who attends to whom, on the page: clicks and keys, with the numbers that the library gives."""

import sys
from collections.abc import Iterator

import pytest
import torch
from playwright.sync_api import Browser, Locator, Page, expect
from torch import nn
from torchvision.models import VisionTransformer

import hookviz
from hookviz.images.samples import samples
from hookviz.types import Model
from scripts.browsing import settled_box
from scripts.servers import ROOT, serve
from tests.e2e.screen import at_rest, new_context, read_numbers
from tests.e2e.test_accessibility import serious
from tests.e2e.test_layout import lies_in, window

LAYER = "encoder.layers.encoder_layer_1.self_attention"
SIZES = {"laptop": (1280, 720), "phone": (390, 844)}
GRID = 8
CAT = next(each.path for each in samples() if each.name == "cat")


def make() -> Model:
    """A network of two layers and four heads, whose weights differ enough to tell patches apart."""
    torch.manual_seed(0)
    sizes = {"num_layers": 2, "num_heads": 4, "hidden_dim": 16, "mlp_dim": 16, "num_classes": 5}
    network = VisionTransformer(image_size=64, patch_size=8, **sizes)
    nn.init.normal_(network.heads.head.weight)
    for layer in network.encoder.layers:
        nn.init.normal_(layer.self_attention.in_proj_weight)
    return hookviz.wrap(network.eval(), hookviz.Preprocess(resize=64, crop=64), name="Attending")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    command = [
        *(sys.executable, "-m", "hookviz", "run", "--model", "tests.e2e.test_attention:make"),
        *("--port", "PORT", "--address", "127.0.0.1"),
    ]
    with serve({"PYTHONPATH": str(ROOT)}, command) as served:
        yield served


def said(page: Page) -> str:
    return page.locator(".attention output").inner_text()


def click(page: Page, stage: Locator, row: int, column: int) -> None:
    box = settled_box(page, stage)
    side = box["width"] / GRID, box["height"] / GRID
    stage.click(position={"x": (column + 0.5) * side[0], "y": (row + 0.5) * side[1]})
    page.mouse.move(1, 1)


@pytest.mark.by_day
@pytest.mark.parametrize("size", SIZES)
def test_a_click_on_a_patch_shows_what_it_attends_to(
    browser: Browser, address: str, size: str
) -> None:
    width, height = SIZES[size]
    page = new_context(browser, viewport={"width": width, "height": height}).new_page()
    sent: list[object] = []

    def note(frame: object) -> None:
        sent.append(frame)

    page.on("websocket", lambda line: line.on("framesent", note))
    page.goto(f"{address}/?lens=attention&sample=cat&attention-layer={LAYER}")
    stage = page.locator(".attention[data-laid] .stage")
    stage.wait_for()
    at_rest(page)
    box = settled_box(page, stage)
    assert lies_in(box, window(page)), box
    assert box["width"] > 200
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    weights = hookviz.attention(make(), CAT, LAYER)[LAYER]

    def expected(head: int | None, row: int, column: int) -> torch.Tensor:
        heads = weights[:, 1 + row * GRID + column, 1:]
        return heads.mean(0) if head is None else heads[head]

    before = len(sent)
    assert before > 0
    click(page, stage, 2, 5)
    expect(page.locator(".attention output")).to_contain_text("row 2, column 5 attends most to")
    assert read_numbers(said(page))[-1] == pytest.approx(
        float(expected(None, 2, 5).max()), rel=6e-3
    )
    page.locator(".maps [role=radio]", has_text="head 3").click()
    top = int(expected(3, 2, 5).argmax())
    there = f"to the patch at row {top // GRID}, column {top % GRID}: "
    expect(page.locator(".attention output")).to_contain_text(there)
    assert read_numbers(said(page))[-1] == pytest.approx(float(expected(3, 2, 5).max()), rel=6e-3)

    stage.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    expect(stage).to_have_attribute("data-cell", str(3 * GRID + 4))
    assert read_numbers(said(page))[-1] == pytest.approx(float(expected(3, 3, 4).max()), rel=6e-3)
    page.keyboard.press("Tab")
    assert "head 3" in _focused(page)
    page.keyboard.press("ArrowRight")
    assert "class token" in _focused(page)
    own = weights[:, 0, 1:].mean(0)
    assert read_numbers(said(page))[-1] == pytest.approx(float(own.max()), rel=6e-3)
    stage.focus()
    page.keyboard.press("Escape")
    assert len(sent) == before  # all of it was answered in the window
    assert not stage.evaluate("(stage) => stage.matches(':focus')")
    assert serious(page) == []
    page.context.close()


def _focused(page: Page) -> str:
    text: str = page.evaluate(
        """() => {
          let active = document.activeElement;
          while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
          return active?.textContent ?? "";
        }"""
    )
    return text
