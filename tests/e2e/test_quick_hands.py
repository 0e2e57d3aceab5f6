"""What a person does while the server still answers the move before is neither lost nor undone."""

import re
from urllib.parse import parse_qs, parse_qsl, urlsplit

from playwright.sync_api import Browser, Page, expect

from scripts.browsing import settled_box, tile_centre
from scripts.servers import Server
from tests.e2e.screen import at_rest, new_context

PACE = 90  # milliseconds that a key is held: the server is told of some, and answers between others


def moved(page: Page) -> dict[str, str]:
    """What the link has of the lesson's parts, by the names of the moves."""
    text = parse_qs(urlsplit(page.url).query).get("moved", [""])[0]
    return {name.partition(" ")[2]: value for name, value in parse_qsl(text)}


def test_each_step_of_a_weight_counts(page: Page, server: Server) -> None:
    page.goto(f"{server}/?lesson=convolution&step=3")
    field = page.locator(".numbers input").nth(4)
    expect(field).to_have_value("5")
    field.focus()
    for _ in range(12):
        page.keyboard.press("ArrowUp", delay=PACE)
    expect(field).to_have_value("17")
    at_rest(page)
    expect(field).to_have_value("17")
    expect(page.locator(".walk .kernel td").nth(4)).to_have_text("17")
    assert "[-1.0,17.0,-1.0]" in moved(page)["kernel"]
    page.locator(".presets button[data-name=blur]").click()  # whose numbers the server tells
    expect(field).to_have_value("0.111")


def test_the_pixel_that_is_gone_to_stays(page: Page, server: Server) -> None:
    page.goto(f"{server}/?lesson=image&step=2")
    stage, says = page.locator(".pixels .stage"), page.locator(".pixels output")
    expect(says).to_contain_text("column ")
    begin = int(re.findall(r"column (\d+)", says.inner_text())[0])
    stage.focus()
    for _ in range(14):
        page.keyboard.press("ArrowRight", delay=2 * PACE)  # so that each is told
    expect(says).to_contain_text(f"column {begin + 14}")
    at_rest(page)
    expect(says).to_contain_text(f"column {begin + 14}")
    expect(page).to_have_url(re.compile(f"pixel%3D\\d+%252C{begin + 14}"))


def test_each_step_of_a_slider_counts(page: Page, server: Server) -> None:
    page.goto(f"{server}/?lesson=what-if&step=1")
    slider = page.locator("[class*=st-key-hv-live-]").get_by_role("slider").first
    begin = int(slider.get_attribute("aria-valuenow") or slider.input_value())
    slider.focus()
    for _ in range(12):  # by five degrees
        page.keyboard.press("ArrowLeft", delay=PACE)
    expect(page).to_have_url(re.compile(rf"amount%3D{begin - 12 * 5}\b"))
    at_rest(page)
    assert int(moved(page)["amount"]) == begin - 12 * 5


def test_each_tile_that_is_clicked_counts(page: Page, server: Server) -> None:
    """Of two clicks that wait for the same run, Streamlit keeps the newer one's trigger."""
    page.goto(f"{server}/?lesson=channels&step=4")
    page.locator("section.question .answers button").nth(1).click()
    tried = (3, 8, 5, 12, 9)  # none of them what is sought
    places = [tile_centre(page, channel) for channel in tried]
    for place in places:
        page.mouse.click(*place)
    expect(page.locator(".hv-hunt")).to_contain_text(f"Tries: {len(tried)}.")
    at_rest(page)
    assert moved(page)["hunt"].split(" ")[-1] == ".".join(map(str, tried))


def test_each_name_that_is_guessed_counts(page: Page, server: Server) -> None:
    page.goto(f"{server}/?lesson=image")
    names = page.locator(".riddle-guesses button")
    expect(names).to_have_text(["Bricks", "Cat", "Ring", "Rocket"])
    at_rest(page)
    # From the right: the cross before a name that was guessed moves those after it.
    wrong = [settled_box(page, names.nth(at)) for at in (3, 2, 0)]
    for box in wrong:
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(names).to_have_text(["✗ Bricks", "Cat", "✗ Ring", "✗ Rocket"])
    at_rest(page)
    assert moved(page)["riddle"] == "cat 0 0 rocket ring brick"


def test_a_map_fills_on_though_its_pause_is_answered(browser: Browser, server: Server) -> None:
    """Paused, told after a moment, and played on before the answer is there."""
    context = new_context(browser, reduced_motion="no-preference")
    page = context.new_page()
    page.goto(f"{server}/?lesson=convolution")
    walk = page.locator(".walk")
    expect(walk.locator(".says")).to_have_text("The map is still empty.")
    play = walk.get_by_role("button", name="Play")
    play.click()
    pause = walk.get_by_role("button", name="Pause")
    pause.evaluate("button => { button.click(); setTimeout(() => button.click(), 260); }")
    expect(page).to_have_url(re.compile("cell"))  # the answer has come
    at_rest(page)
    expect(walk).to_have_attribute("data-runs", "true")
    expect(pause).to_be_visible()
    context.close()
