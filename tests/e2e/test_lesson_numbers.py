"""The first three lessons, where one guesses, predicts, plays and hunts before anything is told.

And however quick the hand is: what a person does while the server still answers the move before is
neither lost nor undone.
"""

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, parse_qsl, urlsplit

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import hookviz
from hookviz.lessons.layers import maps_of
from hookviz.ui.lessons.parts.channels import matches, sought
from scripts.browsing import settled_box, tile_centre
from scripts.servers import Server
from tests.e2e.screen import at_rest, pixels, without_errors
from tests.lessons.conftest import scene_of

LESSON, TEXT = ".st-key-hv-lesson", ".hv-lesson-text"
CONVOLUTION = "/?lesson=convolution"
PACE = 90  # milliseconds that a key is held: the server is told of some, and answers between others


@pytest.fixture
def taught(server: Server) -> Iterator[Server]:
    with without_errors(server):
        yield server


def moved(page: Page) -> dict[str, str]:
    """What the link has of the lesson's parts, by the names of the moves."""
    text = parse_qs(urlsplit(page.url).query).get("moved", [""])[0]
    return {name.partition(" ")[2]: value for name, value in parse_qsl(text)}


def test_an_image_is_numbers_alone_until_it_is_guessed(page: Page, taught: Server) -> None:
    page.goto(f"{taught}/?lesson=image")
    cells = page.locator(".riddle-numbers span")
    expect(cells).to_have_count(256)
    colours = "cells => new Set(cells.map(one => getComputedStyle(one).backgroundColor)).size"
    assert cells.evaluate_all(colours) == 1  # and no grey
    expect(page.locator(".st-key-gallery [data-name=cat]")).to_be_hidden()
    expect(page.locator(".riddle-picture")).to_be_hidden()
    names, says = page.locator(".riddle-guesses button"), page.locator(".riddle-says")
    expect(names).to_have_text(["Bricks", "Cat", "Ring", "Rocket"])
    at_rest(page)
    # From the right: the cross before a name that was guessed moves those after it.
    wrong = [settled_box(page, names.nth(at)) for at in (3, 2, 0)]
    for box in wrong:
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(names).to_have_text(["✗ Bricks", "Cat", "✗ Ring", "✗ Rocket"])
    at_rest(page)
    assert moved(page)["riddle"] == "cat 0 0 rocket ring brick"
    on = page.locator(".riddle-on")
    on.click()
    expect(on).to_have_text("Four times as many numbers")
    assert cells.evaluate_all(colours) > 50
    page.reload()  # the link has it
    expect(says).to_have_text("Not it: Bricks.")
    names.nth(1).click()
    expect(says).to_have_text("Right: Cat. You needed 256 of 49,152 numbers. Guesses: 4.")
    expect(page.locator(".riddle-picture")).to_be_visible()
    expect(page.locator(".st-key-gallery [data-name=cat]")).to_be_visible()
    another = page.get_by_role("button", name="Another riddle")
    another.click()
    expect(says).to_have_text("")
    on.focus()  # and by keyboard
    for name in ("Four times", "A number for each", "Three numbers"):
        page.keyboard.press("Enter")
        expect(on).to_contain_text(name)
        expect(on).to_be_focused()
    page.keyboard.press("Enter")
    expect(says).to_contain_text("It is: ")
    expect(another).to_be_focused()


def test_the_text_follows_the_pixel_that_is_gone_to(page: Page, taught: Server) -> None:
    page.goto(f"{taught}/?lesson=image&step=4")
    says, stage = page.locator(".pixels output"), page.locator(".pixels .stage")
    expect(says).to_contain_text("Row 63")
    red = page.locator(f"{TEXT} td").nth(1)

    def expect_pixel(row: int, column: int) -> None:
        expect(page.locator(LESSON)).to_contain_text(f"row {row} and column {column}")
        expect(says).to_contain_text(f"Row {row}, column {column}: red {red.inner_text()}")

    box = settled_box(page, stage.locator("canvas"))
    page.mouse.click(box["x"] + box["width"] * 20.5 / 128, box["y"] + box["height"] * 30.5 / 128)
    expect_pixel(30, 20)
    stage.focus()
    for key in ("ArrowDown", "Shift+ArrowRight", *["ArrowRight"] * 14):
        page.keyboard.press(key, delay=2 * PACE)  # so that each is told
    expect(says).to_contain_text("Row 31, column 42")
    at_rest(page)
    expect_pixel(31, 42)
    page.locator(".shades button").nth(2).click()
    expect(page).to_have_url(re.compile("pixel%3D31%252C42.*shade"))


def filled(page: Page) -> float:
    """Which share of the map is painted."""
    return float((pixels(page.locator(".walk canvas.output"))[..., 3] > 0).mean())


@pytest.mark.by_day
@pytest.mark.moving
def test_a_map_comes_after_its_prediction_and_fills_while_it_plays(
    page: Page, taught: Server
) -> None:
    page.goto(f"{taught}{CONVOLUTION}&step=2")
    page.locator("section.question").wait_for()
    at_rest(page)
    walk, image = page.locator(".walk"), page.locator(".hv-waits img")
    expect(page.locator(".walk, .editor")).to_have_count(0)
    expect(image).to_be_in_viewport(ratio=1)
    page.locator("section.question .answers button").first.click()
    expect(walk.locator(".says")).to_have_text("The map is still empty.")
    assert filled(page) == 0
    play, pause = (walk.get_by_role("button", name=name) for name in ("Play", "Pause"))
    play.click()
    page.wait_for_function("at => Number(at.dataset.at) > 400", arg=walk.element_handle())
    pause.click()
    stopped = int(walk.get_attribute("data-at") or 0)
    assert 0 < filled(page) < 0.95
    at_rest(page)
    assert int(walk.get_attribute("data-at") or 0) == stopped
    before = page.url
    play.click()
    # Paused, told after a moment, and played on before the answer is there.
    pause.evaluate("button => { button.click(); setTimeout(() => button.click(), 260); }")
    expect(page).not_to_have_url(before)  # the answer has come
    at_rest(page)
    expect(walk).to_have_attribute("data-runs", "true")
    expect(walk).to_have_attribute("data-at", str(94 * 94 - 1), timeout=60_000)
    expect(play).to_be_visible()
    assert filled(page) > 0.99
    expect(page).to_have_url(re.compile("cell%3D93%252C93"))


def test_who_wants_no_motion_has_the_map_at_once(page: Page, taught: Server) -> None:
    """A copy is grey as the image is; a map with both signs has both colours."""
    page.goto(f"{taught}{CONVOLUTION}")
    says = page.locator(".walk .output-says")
    expect(says).to_contain_text("blue below zero")  # it opens on edges
    page.locator(".presets button[data-name=copy]").click()
    expect(says).to_contain_text("nowhere below zero")
    page.get_by_role("button", name="Fill the map").click()
    expect(page.locator(".walk .says")).to_contain_text("row 93, column 93")
    assert filled(page) > 0.99
    image, copy = (
        pixels(page.locator(f".walk canvas.{name}"))[..., :3].astype(int)
        for name in ("input", "output")
    )
    assert np.ptp(copy, axis=2).max() == 0
    assert image.mean() == pytest.approx(copy.mean(), abs=3)
    page.locator(".presets button[data-name=sharpen]").click()
    expect(says).to_contain_text("blue below zero")
    assert np.ptp(pixels(page.locator(".walk canvas.output"))[..., :3], axis=2).max() > 0


@pytest.mark.by_day
def test_each_change_of_a_weight_and_of_a_slider_counts(page: Page, taught: Server) -> None:
    page.goto(f"{taught}{CONVOLUTION}&step=3")
    weights, says = page.locator(".weight"), page.locator(".editor-says")
    expect(says).to_contain_text("The map's mean is")
    more = weights.nth(3).locator(".more")
    more.focus()
    page.keyboard.press("Enter")
    expect(says).to_contain_text("The weight at the left went from −1 to 0.")
    expect(weights.nth(3).locator("input")).to_have_value("0")
    expect(more).to_be_focused()
    at_rest(page)

    field, middle = weights.nth(4).locator("input"), page.locator(".walk .kernel td").nth(4)
    expect(field).to_have_value("5")
    field.focus()
    for _ in range(12):
        page.keyboard.press("ArrowUp", delay=PACE)
    expect(field).to_have_value("17")
    at_rest(page)
    expect(field).to_have_value("17")
    expect(middle).to_have_text("17")
    assert "[0.0,17.0,-1.0]" in moved(page)["kernel"]

    before = page.url
    for typed, why in (("1000001", "is too large"), ("ten", "is no number")):
        field.fill(typed)
        field.press("Enter")
        expect(says).to_contain_text(f"{typed} {why}")
        expect(field).to_have_value("17")
        assert page.url == before
    field.fill("−1,000,000")
    field.press("Enter")
    expect(says).to_contain_text("from 17 to −1,000,000")
    expect(middle).to_have_attribute("title", "−1.00×10⁶")
    at_rest(page)
    page.reload()
    expect(field).to_have_value("−1000000")
    page.locator(".editor-turn").click()
    expect(field).to_have_value("1000000")
    page.locator(".presets button[data-name=blur]").click()  # whose numbers the server tells
    expect(field).to_have_value("0.111")
    expect(page.locator(".presets button[aria-pressed=true]")).to_have_count(1)

    page.goto(f"{taught}/?lesson=what-if&step=1")
    slider = page.locator("[class*=st-key-hv-live-]").get_by_role("slider").first
    begin = int(slider.get_attribute("aria-valuenow") or slider.input_value())
    slider.focus()
    for _ in range(12):  # by five degrees
        page.keyboard.press("ArrowLeft", delay=PACE)
    expect(page).to_have_url(re.compile(rf"amount%3D{begin - 12 * 5}\b"))
    at_rest(page)
    assert int(moved(page)["amount"]) == begin - 12 * 5


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
    score = page.locator(".hv-hunt")
    expect(score).to_contain_text("Click the tile")
    try_channel(page, order[5])
    expect(score).to_contain_text(f"Alike by {likeness[order[5]]:.2f}")
    expect(score).to_contain_text("5 channels come closer. Tries: 1.")
    # Of two clicks that wait for the same run, Streamlit keeps the newer one's trigger.
    places = [tile_centre(page, channel) for channel in order[6:11]]
    for place in places:
        page.mouse.click(*place)
    expect(score).to_contain_text("Tries: 6.")
    expect(score).to_contain_text(f"Best so far: {likeness[order[5]]:.2f}, channel {order[5]}.")
    at_rest(page)
    assert moved(page)["hunt"].split(" ")[-1] == ".".join(map(str, order[5:11]))
    assert not re.search(rf"(is|it:) channel {order[0]}\b", page.locator(LESSON).inner_text())
    try_channel(page, order[0])
    expect(score).to_contain_text(f"Found: channel {order[0]}")
    expect(score.locator(".hv-hunt-stars")).to_have_text("★☆☆")
    page.get_by_role("button", name="Hunt again").click()
    expect(score).to_contain_text("Click the tile")
    page.get_by_role("button", name="Give up").click()
    expect(score).to_contain_text(f"Given up: it is channel {order[0]}")
