"""The page of all lenses, and the ways that lead from the explorer to one."""

import re

import pytest
from playwright.sync_api import Page, expect

from hookviz.lenses.contract.lens import GROUPS
from hookviz.lenses.contract.running import list_lenses
from scripts.browsing import settled_box, tile_centre
from tests.e2e.screen import at_rest, choose, leave_lens, look_through, open_channel_menu

VIEW = "?sample=cat&layer=features.3.squeeze&channel=5&sort=mean&after=ReLU"


@pytest.mark.promise
def test_a_question_is_found_by_typing_and_shows_its_answer_small(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(f"{server}/")
    page.locator(".hv-classes").wait_for()
    page.get_by_role("button", name="All questions").first.click()
    cards = page.locator(".lenses .card")
    expect(cards).to_have_count(len(list_lenses()))
    expect(page.locator(".lenses h2")).to_have_text(list(GROUPS))
    expect(page.locator(".card[data-shown]")).to_have_count(len(list_lenses()), timeout=60_000)
    for card in (cards.first, cards.last):
        expect(card).to_be_in_viewport(ratio=1)
    field = page.get_by_role("searchbox")
    expect(field).to_be_focused()
    field.fill("class heat")
    expect(page.get_by_text("No question has these words.")).to_be_visible()
    field.fill("score hidden")
    expect(page.locator(".card:visible")).to_have_text(
        re.compile("What if a part of the image were hidden")
    )
    field.fill("")
    page.keyboard.press("ArrowDown")
    expect(cards.first).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.type("grad-cam")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Where does the network look?")).to_be_visible()
    page.go_back()
    expect(cards).to_have_count(len(list_lenses()))


@pytest.mark.by_day
def test_class_channel_and_cell_are_kept_from_lens_to_lens_and_from_map_to_map(
    page: Page, server: str
) -> None:
    """The cell by its place on the image, whatever the maps' size; and back to the very same."""
    page.goto(f"{server}/{VIEW}")
    stage = page.get_by_role("application", name=re.compile("^The map of channel 5"))
    stage.wait_for()
    at_rest(page)
    box, side = settled_box(page, stage), 55  # cells of features.3.squeeze
    page.mouse.click(box["x"] + box["width"] * 20.5 / side, box["y"] + box["height"] * 10.5 / side)
    why = page.locator(".why h4")
    expect(why).to_contain_text("at row 10, column 20?")
    page.get_by_role("link", name=re.compile("^tiger cat")).click()
    expect(page.get_by_text(re.compile("^tiger cat: score"))).to_be_visible()
    look_through(page, "What if a part of the image were hidden?")
    chosen = page.get_by_role("combobox", name="Class", exact=True)
    expect(chosen).to_have_value(re.compile("^tiger cat"), timeout=30_000)
    leave_lens(page)
    expect(page.get_by_role("heading", name="Channel 5", exact=True)).to_be_visible()
    expect(why).to_contain_text("at row 10, column 20?")
    for word in ("sort=mean", "after=ReLU", "layer=features.3.squeeze", "target=tiger"):
        assert word in page.url
    choose(page, "Layer", "features.6.squeeze")  # of maps half as wide
    expect(why).to_contain_text("at row 5, column 10?")
    look_through(page, "Where does the network look?")
    at_rest(page)
    leave_lens(page)
    expect(why).to_contain_text("at row 5, column 10?")
    choose(page, "Layer", "features.3.squeeze")
    expect(why).to_contain_text("at row 10, column 20?")


@pytest.mark.by_day
def test_a_channel_leads_to_a_lens_and_counts_more_than_those_named_before(
    page: Page, server: str
) -> None:
    page.goto(f"{server}/?model=ShapesNet&layer=stage1.first.conv&channel=12")
    open_channel_menu(page)
    page.get_by_role("button", name="Switch it off", exact=True).click()
    expect(page.get_by_text(re.compile("channel 12 switched off"))).to_be_visible()
    named = page.get_by_role("textbox", name="Channels")
    named.fill("0, 3")
    named.press("Enter")
    expect(page.get_by_text(re.compile("channels 0, 3 switched off"))).to_be_visible()
    leave_lens(page)
    at_rest(page)
    page.mouse.click(*tile_centre(page, 5))
    page.get_by_role("heading", name="Channel 5", exact=True).wait_for()
    look_through(page, "What if channels were missing?")
    expect(page.get_by_text(re.compile("channel 5 switched off"))).to_be_visible()
    expect(named).to_have_value("5")
