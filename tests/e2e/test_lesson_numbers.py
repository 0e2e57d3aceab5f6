"""The first three lessons, where one guesses, predicts, plays and hunts before anything is told."""

import re
from collections.abc import Iterator

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Page, expect

import hookviz
from hookviz.lessons.maps import maps_of
from hookviz.lessons.part import LessonScene
from hookviz.lessons.parts.channels import matches, sought
from scripts.servers import Server
from tests.e2e.screen import at_rest, pixels, without_errors
from tests.lessons.conftest import scene_of

LESSON, TEXT = ".st-key-hv-lesson", ".hv-lesson-text"
CONVOLUTION = "/?lesson=convolution"


@pytest.fixture
def taught(server: Server) -> Iterator[Server]:
    with without_errors(server):
        yield server


@pytest.fixture(scope="module")
def cat() -> LessonScene:
    return scene_of(hookviz.load_model("shapesnet"), "cat")


def test_an_image_is_numbers_alone_until_it_is_guessed(
    page: Page, taught: Server, cat: LessonScene
) -> None:
    page.goto(f"{taught}/?lesson=image")
    cells = page.locator(".riddle-numbers span")
    expect(cells).to_have_count(256)
    assert cat.model_input.picture is not None
    small = Image.fromarray(cat.model_input.picture).resize((16, 16), Image.Resampling.BOX)
    greys = np.asarray(small, float) @ (0.299, 0.587, 0.114)
    shown = np.array([int(text) for text in cells.all_inner_texts()]).reshape(16, 16)
    np.testing.assert_allclose(shown, greys, atol=1)
    colours = "cells => new Set(cells.map(one => getComputedStyle(one).backgroundColor)).size"
    assert cells.evaluate_all(colours) == 1  # and no grey
    expect(page.locator(".st-key-gallery [data-name=cat]")).to_be_hidden()
    expect(page.locator(".riddle-picture")).to_be_hidden()
    page.locator(".riddle-guesses button", has_text="Ring").click()
    expect(page.locator(".riddle-says")).to_have_text("Not it: Ring.")
    page.locator(".riddle-on").click()
    expect(page.locator(".riddle-on")).to_have_text("Four times as many numbers")
    assert cells.evaluate_all(colours) > 50
    expect(page.locator(LESSON)).to_contain_text("each painted as a grey")
    page.reload()  # the link has it
    expect(page.locator(".riddle-says")).to_have_text("Not it: Ring.")
    page.locator(".riddle-guesses button", has_text="Cat").click()
    expect(page.locator(".riddle-says")).to_have_text(
        "Right: Cat. You needed 256 of 49,152 numbers. Guesses: 2."
    )
    expect(page.locator(".riddle-picture")).to_be_visible()
    expect(page.locator(LESSON)).to_contain_text("49,152 numbers, three for each pixel")
    expect(page.locator(".st-key-gallery [data-name=cat]")).to_be_visible()
    page.get_by_role("button", name="Another riddle").click()
    expect(cells).to_have_count(256)
    expect(page.locator(".riddle-says")).to_have_text("")


def test_a_riddle_is_uncovered_by_keyboard(page: Page, taught: Server) -> None:
    page.goto(f"{taught}/?lesson=image")
    on = page.locator(".riddle-on")
    on.focus()
    for name in ("Four times", "A number for each", "Three numbers"):
        page.keyboard.press("Enter")
        expect(on).to_contain_text(name)
        expect(on).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".riddle-says")).to_contain_text("It is: Cat.")
    expect(page.get_by_role("button", name="Another riddle")).to_be_focused()


def test_the_text_follows_the_pixel_that_is_pointed_at(
    page: Page, taught: Server, cat: LessonScene
) -> None:
    picture, tensor = cat.model_input.picture, cat.model_input.tensor
    assert picture is not None
    page.goto(f"{taught}/?lesson=image&step=4")
    says = page.locator(".pixels output")
    expect(says).to_contain_text("Row 63")
    box = page.locator(".pixels .stage canvas").bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] * 20.5 / 128, box["y"] + box["height"] * 30.5 / 128)
    table = page.locator(f"{TEXT} td")

    def expect_pixel(row: int, column: int) -> None:
        expect(page.locator(LESSON)).to_contain_text(f"row {row} and column {column}")
        levels, inputs = picture[row, column], tensor[0, :, row, column].tolist()
        for line, (level, given) in enumerate(zip(levels, inputs, strict=True)):
            expect(table.nth(3 * line + 1)).to_have_text(str(level))
            expect(table.nth(3 * line + 2)).to_have_text(f"{given:.2f}".replace("-", "−"))
        expect(says).to_contain_text(f"Row {row}, column {column}: red {levels[0]}")

    expect_pixel(30, 20)
    page.locator(".pixels .stage").focus()
    for key in ("ArrowDown", "ArrowDown", "Shift+ArrowRight"):
        page.keyboard.press(key)
    expect_pixel(32, 28)
    page.locator(".shades button").nth(2).click()
    expect(page).to_have_url(re.compile("shade"))
    page.reload()
    expect_pixel(32, 28)
    expect(page.locator(".shades button").nth(2)).to_have_attribute("aria-pressed", "true")
    page.goto(f"{taught}/?lesson=image&step=2&moved=image-2-3+pixel%3D5%2C7")
    red, green, blue = picture[5, 7]
    expect(page.locator(LESSON)).to_contain_text(
        f"row 5 and column 7 has red {red}, green {green} and blue {blue}"
    )


def test_predict_shows_the_image_and_no_map_before_the_answer(page: Page, taught: Server) -> None:
    page.goto(f"{taught}{CONVOLUTION}&step=2")
    page.locator("section.question").wait_for()
    at_rest(page)
    expect(page.locator(".walk, .editor")).to_have_count(0)
    image = page.locator(".hv-waits img")
    expect(image).to_be_in_viewport(ratio=1)
    assert image.evaluate("image => image.naturalWidth") == 320
    assert page.locator(f"{LESSON} :is(img, canvas)").count() == 1
    page.locator("section.question .answers button").first.click()
    expect(page.locator(".walk .says")).to_have_text("The map is still empty.")
    assert not pixels(page.locator(".walk canvas.output"))[..., 3].any()


def filled(page: Page) -> float:
    """Which share of the map is painted."""
    return float((pixels(page.locator(".walk canvas.output"))[..., 3] > 0).mean())


@pytest.mark.moving
def test_a_map_fills_while_it_plays_and_can_be_stopped(page: Page, taught: Server) -> None:
    page.goto(f"{taught}{CONVOLUTION}")
    expect(page.locator(".walk .says")).to_have_text("The map is still empty.")
    assert filled(page) == 0
    page.get_by_role("button", name="Play").click()
    walk = page.locator(".walk")
    page.wait_for_function("at => Number(at.dataset.at) > 400", arg=walk.element_handle())
    page.get_by_role("button", name="Pause").click()
    stopped = int(walk.get_attribute("data-at") or 0)
    assert 0 < filled(page) < 0.95
    at_rest(page)
    assert int(walk.get_attribute("data-at") or 0) == stopped
    page.get_by_role("button", name="Play").click()
    last = 94 * 94 - 1
    expect(walk).to_have_attribute("data-at", str(last), timeout=60_000)
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    assert filled(page) > 0.99
    expect(page).to_have_url(re.compile("cell%3D93%252C93"))
    page.reload()  # the link has where it came to
    expect(walk).to_have_attribute("data-at", str(last))


def test_who_wants_no_motion_has_the_map_filled_at_once(page: Page, taught: Server) -> None:
    page.goto(f"{taught}{CONVOLUTION}")
    page.get_by_role("button", name="Fill the map").click()
    expect(page.locator(".walk .says")).to_contain_text("row 93, column 93")
    assert filled(page) > 0.99


def test_every_weight_has_a_button_for_more_and_less_and_the_effect_is_told(
    page: Page, taught: Server
) -> None:
    page.goto(f"{taught}{CONVOLUTION}&step=3")
    weights = page.locator(".weight")
    expect(weights).to_have_count(9)
    for at in range(9):
        for sign in ("less", "more"):
            expect(weights.nth(at).locator(f".{sign}")).to_be_visible()
    says = page.locator(".editor-says")
    expect(says).to_contain_text("The map's mean is")
    more = weights.nth(3).locator(".more")
    more.focus()
    page.keyboard.press("Enter")
    expect(says).to_contain_text("The weight at the left went from −1 to 0.")
    expect(says).to_contain_text("gained 1 × the pixel at the left")
    expect(weights.nth(3).locator("input")).to_have_value("0")
    expect(more).to_be_focused()
    at_rest(page)
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowDown")
    expect(says).to_contain_text("The weight at the left went from 0 to −1.")
    page.locator(".editor-turn").click()
    expect(weights.nth(4).locator("input")).to_have_value("−5")
    expect(page.locator(".walk .kernel td").nth(4)).to_have_text("−5")


@pytest.mark.parametrize("typed", ["1000000", "1,000,000", "-1e6", "−1,000,000"])
def test_a_million_counts_as_a_million(page: Page, taught: Server, typed: str) -> None:
    page.goto(f"{taught}{CONVOLUTION}&step=3")
    field = page.locator(".weight input").nth(0)
    field.fill(typed)
    field.press("Enter")
    sign = "−" if typed[0] in "-−" else ""
    expect(page.locator(".editor-says")).to_contain_text(f"from 0 to {sign}1,000,000")
    expect(page.locator(".walk .kernel td").first).to_have_attribute("title", f"{sign}1.00×10⁶")
    at_rest(page)
    page.reload()
    expect(field).to_have_value(f"{sign}1000000")


@pytest.mark.parametrize(("typed", "why"), [("1000001", "is too large"), ("ten", "is no number")])
def test_what_is_no_weight_is_refused_in_words(
    page: Page, taught: Server, typed: str, why: str
) -> None:
    page.goto(f"{taught}{CONVOLUTION}&step=3")
    field = page.locator(".weight input").nth(4)
    field.fill(typed)
    field.press("Enter")
    says = page.locator(".editor-says")
    expect(says).to_contain_text(f"{typed} {why}")
    expect(says).to_contain_text("stays 5")
    expect(field).to_have_value("5")
    assert "moved" not in page.url


def try_channel(page: Page, channel: int) -> None:
    page.locator("figure .stage").first.focus()
    page.keyboard.press("/")
    page.keyboard.type(str(channel))
    page.keyboard.press("Enter")


def test_the_hunt_is_scored_and_its_answer_hidden(page: Page, taught: Server) -> None:
    scene = scene_of(hookviz.load_model("shapesnet"), "flower")
    name = scene.trace.convs[0].name
    maps = maps_of(scene, name)
    likeness = matches(maps, sought(scene, "vertical", maps.shape[1:]))
    order = np.argsort(likeness)[::-1].tolist()
    page.goto(f"{taught}/?lesson=channels&step=4")
    page.locator("section.question .answers button").nth(1).click()
    score, text = page.locator(".hv-hunt"), page.locator(LESSON)
    expect(score).to_contain_text("Click the tile")
    expect(text).to_contain_text("stands here once you have found it")
    try_channel(page, order[5])
    expect(score).to_contain_text(f"Alike by {likeness[order[5]]:.2f}")
    expect(score).to_contain_text("5 channels come closer. Tries: 1.")
    try_channel(page, order[9])
    expect(score).to_contain_text("Tries: 2.")
    expect(score).to_contain_text(f"Best so far: {likeness[order[5]]:.2f}, channel {order[5]}.")
    assert not re.search(rf"(is|it:) channel {order[0]}\b", text.inner_text())
    try_channel(page, order[0])
    expect(score).to_contain_text(f"Found: channel {order[0]}")
    expect(score.locator(".hv-hunt-stars")).to_have_text("★★★")
    expect(text).to_contain_text(f"You found it: channel {order[0]}")
    at_rest(page)
    page.reload()
    page.locator("section.question .answers button").nth(1).click()
    expect(score).to_contain_text("Tries: 3")
    page.get_by_role("button", name="Hunt again").click()
    expect(score).to_contain_text("Click the tile")
    page.get_by_role("button", name="Give up").click()
    expect(score).to_contain_text(f"Given up: it is channel {order[0]}")
    expect(score.locator(".hv-hunt-stars")).to_have_count(0)


def test_all_four_maps_of_the_question_show_edges(page: Page, taught: Server) -> None:
    """None can be told at a glance: each has both signs, on little of the picture."""
    page.goto(f"{taught}/?lesson=channels")
    maps = page.locator(".hv-lettered img")
    expect(maps).to_have_count(4)
    for at in range(4):
        shown = maps.nth(at).evaluate(
            """async (img) => {
              await img.decode();
              const canvas = new OffscreenCanvas(img.naturalWidth, img.naturalHeight);
              const pen = canvas.getContext("2d");
              pen.drawImage(img, 0, 0);
              return [...pen.getImageData(0, 0, canvas.width, canvas.height).data];
            }"""
        )
        red, _, blue, _ = np.array(shown).reshape(-1, 4).T.astype(int)
        above, below = (red - blue > 60).mean(), (blue - red > 60).mean()
        assert 0.005 < above < 0.25
        assert 0.005 < below < 0.25
