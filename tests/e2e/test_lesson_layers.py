"""The lessons on depth and classes in a browser: what one drags answers where one looks."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from scripts.browsing import settled_box, settled_boxes
from scripts.servers import Server
from tests.e2e.screen import at_rest, without_errors


@pytest.fixture
def taught(server: Server) -> Iterator[Server]:
    """The server that all share, where nothing goes wrong meanwhile."""
    with without_errors(server):
        yield server


def at_step(page: Page, server: Server, lesson: str, step: int, more: str = "") -> None:
    page.goto(f"{server}/?lesson={lesson}&step={step}{more}")
    expect(page.locator(".hv-step-title")).to_have_attribute("data-step", f"{lesson} {step}")
    expect(page.locator("[class*=st-key-hv-live-]").first).to_be_visible()
    at_rest(page)


def text(page: Page) -> Locator:
    """What the step's paragraphs say."""
    return page.locator(".st-key-hv-lesson [data-testid=stColumn]").first


def test_depth_is_scrubbed_and_answers_while_one_drags(page: Page, taught: Server) -> None:
    """The image is darkened where the channel is silent: least of all at an eye of the cat."""
    at_step(page, taught, "depth", 1)
    scrub = page.locator(".depth-scrub")
    expect(scrub).to_have_attribute("data-drawn", "18 21")
    darkness = """(canvas, [x, y]) => {
      const pen = canvas.getContext("2d");
      return pen.getImageData(canvas.width * x, canvas.height * y, 1, 1).data[3];
    }"""
    eye, fur = (
        scrub.locator("canvas").evaluate(darkness, at) for at in ([0.3, 0.35], [0.55, 0.15])
    )
    assert eye < fur - 70
    scrub.locator(".depth-tiles button").nth(3).click()
    expect(scrub).to_have_attribute("data-drawn", "18 171")
    expect(page.get_by_text("excite channel 171 most")).to_be_visible()

    at_step(page, taught, "depth", 2)
    layer, sees = scrub.locator(".depth-layer"), scrub.locator(".depth-sees")
    expect(layer).to_have_text("Layer 1 of 26: features.0")
    expect(sees).to_have_text("A cell sees 3×3 pixels")
    slider, frame = scrub.locator("input"), scrub.locator(".depth-photo i")
    small, box = settled_boxes(page, frame, slider)
    page.mouse.move(box["x"] + 8, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] / 2)
    expect(layer).to_contain_text(re.compile(r"Layer 1[234] of 26"))
    assert "moved=" not in page.url  # not let go yet: no run of the page was needed
    page.mouse.up()
    expect(page).to_have_url(re.compile("moved="))
    slider.focus()
    page.keyboard.press("End")
    expect(layer).to_have_text("Layer 26 of 26: classifier.1")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowRight")
    expect(text(page)).to_contain_text("In layer 26, classifier.1, there are 1000 channels")
    assert settled_box(page, frame)["width"] > 10 * small["width"]
    size = re.search(r"sees (\S+) pixels", sees.inner_text())
    assert size
    expect(text(page)).to_contain_text(f"a cell sees {size[1]} pixels")


def test_scores_are_dragged_and_the_softmax_follows(page: Page, taught: Server) -> None:
    at_step(page, taught, "from-maps-to-a-class", 4)
    rows = page.locator(".class-scores .score-row")
    chances, grid = rows.locator(".chance"), rows.nth(1)
    reset = page.get_by_role("button", name="As the network has it")
    expect(reset).to_be_disabled()
    slider = grid.locator("input")
    box = settled_box(page, slider)
    page.mouse.move(box["x"] + box["width"] * 0.37, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 3, box["y"] + box["height"] / 2, steps=4)
    expect(grid).to_have_class(re.compile("best"))
    assert "moved=" not in page.url
    page.mouse.up()
    expect(text(page)).to_contain_text("The score of grid is")
    reset.click()
    expect(rows.first).to_have_class(re.compile("best"))
    expect(text(page)).to_contain_text("is 98.7 %, that of grid 0.14 %: about 700 times less.")
    expect(reset).to_be_disabled()

    slider.focus()
    for _ in range(10):
        page.keyboard.press("Shift+ArrowRight")
    expect(text(page)).to_contain_text("The score of grid is")
    expect(grid).to_have_class(re.compile("best"))
    at_rest(page)
    scores = [
        float(each.replace("−", "-")) for each in rows.locator(".score").all_inner_texts()[:6]
    ]
    assert scores[1] == 9.77  # no older answer took it back
    expect(text(page)).to_contain_text(f"{scores[1] - scores[0]:.2f} above that of star")
    told = chances.all_inner_texts()
    assert sum(float(each.strip("<> %")) for each in told) == pytest.approx(100, abs=0.3)
    page.locator(".class-scores .together input").focus()  # which changes no probability
    page.keyboard.press("End")
    expect(rows.locator(".score").first).not_to_have_text(f"{scores[0]:.2f}")
    assert chances.all_inner_texts() == told
