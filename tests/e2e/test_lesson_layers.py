"""The lessons on ReLU, depth and classes in a browser: what one moves answers where one looks."""

import re
from collections import Counter
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

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


def test_relu_is_switched_off_in_the_whole_network_and_the_class_falls(
    page: Page, taught: Server
) -> None:
    at_step(page, taught, "relu-and-pooling", 1)
    expect(text(page)).to_contain_text("Egyptian cat, 55.8 %")
    now = page.locator(".hv-two-lists ol").nth(1)
    expect(now.locator("li.first .label")).to_have_text("Egyptian cat")
    labels = page.locator(".hv-verdicts b")
    assert len(set(labels.all_inner_texts())) > 6
    page.get_by_role("radio", name="All 26 switched off").click()
    expect(now.locator("li .label").first).not_to_have_text("Egyptian cat")
    expect(text(page)).to_contain_text("Without them it says")
    at_rest(page)
    said = now.locator("li .label").first.inner_text()
    expect(text(page)).to_contain_text(f"Without them it says {said},")
    most, count = Counter(labels.all_inner_texts()).most_common(1)[0]
    assert count > 5, "nearly every picture is the same to it"
    expect(text(page)).to_contain_text(f"in {count} of 8 pictures it sees the same: {most}.")
    expect(page.locator(".hv-two-lists ol").first.locator("li .label").first).to_have_text(
        "Egyptian cat"
    )


def test_the_picked_cell_is_one_that_relu_changes(page: Page, taught: Server) -> None:
    at_step(page, taught, "relu-and-pooling", 3)
    said = page.locator(".hv-came-from")
    expect(said).to_contain_text("ReLU makes 0 of −")
    before = said.inner_text()
    numbers = re.search(r"Row (\d+), column (\d+): ReLU makes 0 of (−[\d.]+)\.", before)
    assert numbers
    expect(text(page)).to_contain_text(
        f"Of {numbers[3]} in row {numbers[1]}, column {numbers[2]} ReLU makes 0."
    )
    stage = page.locator("[class*=st-key-hv-live-] .stage").first
    box = stage.bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] * 0.2, box["y"] + box["height"] * 0.25)
    expect(said).not_to_have_text(before)
    at_rest(page)
    now = re.search(r"Row (\d+), column (\d+)", said.inner_text())
    assert now
    expect(text(page)).to_contain_text(f"in row {now[1]}, column {now[2]} ReLU makes")


def test_depth_is_scrubbed_and_answers_while_one_drags(page: Page, taught: Server) -> None:
    """The image is darkened where the channel is silent: least of all at an eye of the cat."""
    at_step(page, taught, "depth", 1)
    scrub = page.locator(".depth-scrub")
    expect(scrub).to_have_attribute("data-drawn", "18 21")
    darkness = """(canvas, [x, y]) => {
      const pen = canvas.getContext("2d");
      return pen.getImageData(canvas.width * x, canvas.height * y, 1, 1).data[3];
    }"""
    dark = scrub.locator("canvas")
    eye, other_eye, fur, mouth = (
        dark.evaluate(darkness, list(place))
        for place in ((0.3, 0.35), (0.85, 0.44), (0.55, 0.15), (0.3, 0.9))
    )
    assert max(eye, other_eye) < min(fur, mouth) - 70
    expect(page.locator(".hv-lesson-patches img")).to_have_count(3)
    scrub.locator(".depth-tiles button").nth(3).click()
    expect(scrub).to_have_attribute("data-drawn", "18 171")
    expect(page.get_by_text("excite channel 171 most")).to_be_visible()

    at_step(page, taught, "depth", 2)
    layer, sees = scrub.locator(".depth-layer"), scrub.locator(".depth-sees")
    expect(layer).to_have_text("Layer 1 of 26: features.0")
    expect(sees).to_have_text("A cell sees 3×3 pixels")
    expect(text(page)).to_contain_text("a cell sees 3×3 pixels, 0.018 % of the input")
    small, slider = scrub.locator(".depth-photo i").bounding_box(), scrub.locator("input")
    box = slider.bounding_box()
    assert box
    page.mouse.move(box["x"] + 8, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] / 2)
    expect(layer).to_contain_text(re.compile(r"Layer 1[234] of 26"))
    expect(scrub.locator(".depth-tiles button")).to_have_count(12)
    assert "moved=" not in page.url  # not let go yet: no run of the page was needed
    page.mouse.up()
    expect(page).to_have_url(re.compile("moved="))
    slider.focus()
    page.keyboard.press("End")
    expect(layer).to_have_text("Layer 26 of 26: classifier.1")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowRight")
    expect(text(page)).to_contain_text("In layer 26, classifier.1, there are 1000 channels")
    large = scrub.locator(".depth-photo i").bounding_box()
    assert small
    assert large
    assert large["width"] > 10 * small["width"]
    size = re.search(r"sees (\S+) pixels", sees.inner_text())
    assert size
    expect(text(page)).to_contain_text(f"a cell sees {size[1]} pixels")


def test_a_channels_name_is_guessed_and_then_revealed(page: Page, taught: Server) -> None:
    at_step(page, taught, "depth", 3)
    live = page.locator("[class*=st-key-hv-live-]")
    expect(page.locator(".hv-guessed img")).to_have_count(3)
    expect(live.locator("[role=status]")).to_have_count(0)
    live.get_by_role("radio", name="heart").click()
    expect(live.locator("[role=status]")).to_have_text(
        "You said heart; most of its images are: dots."
    )
    expect(live).to_contain_text("Of its 3 strongest images 3 are: dots. That is a hint, no proof")
    expect(text(page)).to_contain_text("0 of 1 guesses are right so far.")
    live.get_by_role("radio", name="2", exact=True).click()
    expect(live.locator("[role=status]")).to_have_count(0)
    at_rest(page)
    field = live.get_by_role("textbox")
    field.fill("Circle")
    field.press("Enter")
    expect(live.locator("[role=status]")).to_have_text("Yes, Circle.")
    expect(text(page)).to_contain_text("1 of 2 guesses are right so far.")


def test_scores_are_dragged_and_the_softmax_follows(page: Page, taught: Server) -> None:
    at_step(page, taught, "from-maps-to-a-class", 4)
    rows = page.locator(".class-scores .score-row")
    chances, grid = rows.locator(".chance"), rows.nth(1)
    expect(chances.first).to_have_text("98.7 %")
    expect(chances.nth(1)).to_have_text("0.14 %")
    expect(text(page)).to_contain_text("is 98.7 %, that of grid 0.14 %: about 700 times less.")
    reset = page.get_by_role("button", name="As the network has it")
    expect(reset).to_be_disabled()
    slider = grid.locator("input")
    box = slider.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * 0.37, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 3, box["y"] + box["height"] / 2, steps=4)
    expect(grid).to_have_class(re.compile("best"))
    assert "moved=" not in page.url
    page.mouse.up()
    expect(text(page)).to_contain_text("The score of grid is")
    reset.click()
    expect(rows.first).to_have_class(re.compile("best"))
    expect(text(page)).to_contain_text("is 98.7 %, that of grid 0.14 %")
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
