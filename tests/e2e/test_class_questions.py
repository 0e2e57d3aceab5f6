"""Where the card of a question to a class stands, and what is said of a line that is cut."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from scripts.browsing import STAGE, settled_box, settled_boxes, wait_for_grid
from tests.e2e.screen import at_rest
from tests.e2e.test_accessibility import serious
from tests.e2e.test_classroom import PHONE, WIDE, ask, begin, screen
from tests.e2e.test_live import overlap
from tests.line import line_to

__all__ = ["screen"]  # a fixture


def test_the_card_covers_nothing_that_it_asks_about(
    screen: Callable[..., Page], server: str
) -> None:
    teacher, pupil, phone = screen(WIDE), screen((1440, 900)), screen(PHONE)
    code = begin(teacher, server)
    for page in (pupil, phone):
        page.goto(f"{server}/?follow={code}")
        wait_for_grid(page)
    expect(teacher.locator(".class .says")).to_have_text("2 screens follow")
    at_rest(teacher)
    ask(teacher, "Which of the tiles sees edges that rise to the right?", *"abcdef")
    teacher.keyboard.press("Escape")
    for presents in (False, True):
        if presents:
            teacher.locator("[data-testid=stMain]").press("f")
            teacher.wait_for_url("**present=1**")
            for page in (pupil, phone):
                page.goto(f"{server}/?follow={code}&present=1")
                wait_for_grid(page)
        for page in (teacher, pupil, phone):
            card, tiles = page.locator(".card:visible"), page.locator(f"{STAGE} canvas")
            expect(card).to_be_visible()
            at_rest(page)
            if page is phone:  # one scrolls to them, and they come to stand above it
                tiles.evaluate("canvas => canvas.scrollIntoView({block: 'start'})")
            box, other = settled_boxes(page, card, tiles)
            assert not overlap(box, other), page.viewport_size
            page.locator(".card summary").click()
            at_rest(page)
            assert settled_box(page, card)["height"] < 110
            page.locator(".card summary").press("Enter")
            expect(page.locator(".card details")).to_have_attribute("open", "")
        assert serious(pupil) == []
    teacher.get_by_role("button", name="Code", exact=True).click()
    large = teacher.locator(".hv-class-code")
    assert large.evaluate("code => parseFloat(getComputedStyle(code).fontSize)") >= 48


@pytest.mark.by_day
def test_a_line_that_is_cut_is_told_on_both_sides_and_comes_back(
    screen: Callable[..., Page], server: str
) -> None:
    teacher, pupil = screen(WIDE), screen(PHONE)
    with line_to(server) as of_pupil, line_to(server) as of_teacher:
        code = begin(teacher, of_teacher.address)
        pupil.goto(f"{of_pupil.address}/?follow={code}")
        says, lost = teacher.locator(".class .says"), pupil.get_by_text("to the class is lost")
        expect(says).to_have_text("1 screen follows")
        dot = pupil.locator("section.class .sign")
        colour = "dot => getComputedStyle(dot).backgroundColor"
        well = dot.evaluate(colour)

        pupil.context.set_offline(True)  # a phone without a network says so at once
        expect(lost).to_be_visible()
        pupil.context.set_offline(False)
        expect(pupil.get_by_text("You follow your teacher.")).to_be_visible()
        expect(says).to_have_text("1 screen follows")

        of_pupil.go_down()
        expect(lost).to_be_visible()
        assert dot.evaluate(colour) != well
        expect(says).to_have_text("0 screens follow")
        # Streamlit's own dialog comes after some seconds, and is not what one sees
        pupil.locator("[role=dialog]").wait_for(state="attached", timeout=30_000)
        expect(pupil.locator("[role=dialog]")).not_to_be_visible()
        expect(lost).to_be_visible()
        of_pupil.come_up()
        expect(lost).to_have_count(0, timeout=30_000)
        expect(says).to_have_text("1 screen follows")
        assert dot.evaluate(colour) == well

        of_teacher.go_down()
        expect(teacher.get_by_text("The line to the server is lost")).to_be_visible()
        assert teacher.locator("section.class .sign").evaluate(colour) != well
        of_teacher.come_up()
        expect(says).to_have_text("1 screen follows", timeout=30_000)
