"""A question to a class: who is counted, what is seen when, where its card stands; a cut line."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from scripts.browsing import STAGE, wait_for_grid
from tests.e2e.screen import at_rest
from tests.e2e.test_accessibility import serious
from tests.e2e.test_classroom import PHONE, WIDE, ask, begin, screen
from tests.line import line_to

__all__ = ["screen"]  # a fixture

Screen = Callable[..., Page]


def card_of(page: Page) -> Locator:
    return page.locator(".card:visible")


def hide(page: Page, hidden: bool) -> None:
    """Have a page believe that nobody sees it; without a screen all pages are seen."""
    page.evaluate(
        """hidden => {
          Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


def test_only_those_who_follow_are_counted(screen: Screen, server: str) -> None:
    teacher, first, second = screen(WIDE), screen(WIDE), screen(PHONE)
    code = begin(teacher, server)
    for page in (first, second):
        page.goto(f"{server}/?follow={code}")
    says = teacher.locator(".class .says")
    expect(says).to_have_text("2 screens follow")
    first.get_by_role("button", name="Let go").click()
    expect(says).to_have_text("1 screen follows, 1 looks alone")
    hide(second, True)
    expect(says).to_have_text("0 screens follow, 1 looks alone")
    hide(second, False)
    first.get_by_role("button", name="Back to the teacher").click()
    expect(says).to_have_text("2 screens follow")
    first.get_by_role("button", name="Let go").click()
    first.reload()  # which it stays
    expect(says).to_have_text("1 screen follows, 1 looks alone")
    first.goto("about:blank")
    expect(says).to_have_text("1 screen follows")


@pytest.mark.by_day
def test_votes_are_hidden_until_the_question_is_closed_and_then_on_all_screens(
    screen: Screen, server: str
) -> None:
    teacher, first, phone = screen(WIDE), screen(WIDE), screen(PHONE)
    code = begin(teacher, server)
    for page in (first, phone):
        page.goto(f"{server}/?follow={code}")
    expect(teacher.locator(".class .says")).to_have_text("2 screens follow")
    teacher.get_by_role("button", name="Ask", exact=True).click()
    teacher.get_by_text("Hide the votes until I close the question").click()
    teacher.get_by_label("The right one").click()
    teacher.get_by_role("option", name="line 2").click()
    ask(teacher, "How many?", "<i>one</i>", "two", "three", is_open=True)
    for page, name in ((first, "two"), (phone, "three")):
        page.get_by_role("button", name=name, exact=True).click()
    expect(teacher.locator(".card .voted")).to_have_text("2 answers")
    assert "".join(teacher.locator(".tally b").all_inner_texts()) == ""
    expect(teacher.locator(".tally li")).to_have_text(["<i>one</i>", "two", "three"])
    teacher.get_by_role("button", name="Show the votes").click()  # as she likes
    expect(teacher.locator(".tally b")).to_have_text(["0", "1", "1"])
    for page in (first, phone):
        expect(page.locator(".tally li")).to_have_count(0)
    teacher.get_by_role("button", name="Close the question").click()
    for page in (teacher, first, phone):
        expect(page.locator(".tally b")).to_have_text(["0", "1", "1"])
        expect(page.locator(".tally .right")).to_contain_text("two")
    expect(first.locator(".tally li", has_text="your answer")).to_contain_text("two")
    expect(phone.locator(".tally li", has_text="your answer")).to_contain_text("three")
    expect(first.get_by_text("You were right.")).to_be_visible()
    expect(phone.get_by_text("Not this time.")).to_be_visible()
    for page in (teacher, first, phone):
        assert serious(page) == []
    teacher.get_by_role("button", name="Take it away").click()
    for page in (teacher, first, phone):
        expect(card_of(page)).to_have_count(0)


def apart(one: Locator, other: Locator) -> bool:
    """Whether two things on the screen have no point in common."""
    a, b = one.bounding_box(), other.bounding_box()
    assert a is not None
    assert b is not None
    return (
        a["x"] + a["width"] <= b["x"]
        or b["x"] + b["width"] <= a["x"]
        or a["y"] + a["height"] <= b["y"]
        or b["y"] + b["height"] <= a["y"]
    )


@pytest.mark.parametrize("size", [(1440, 900), WIDE, PHONE])
@pytest.mark.parametrize("presents", [False, True])
def test_the_card_covers_nothing_that_it_asks_about(
    screen: Screen, server: str, size: tuple[int, int], presents: bool
) -> None:
    teacher, pupil = screen(WIDE if size == PHONE else size), screen(size)
    code = begin(teacher, server)
    pupil.goto(f"{server}/?follow={code}{'&present=1' if presents else ''}")
    wait_for_grid(pupil)
    expect(teacher.locator(".class .says")).to_have_text("1 screen follows")
    if presents:
        teacher.locator("[data-testid=stMain]").press("f")
        teacher.wait_for_url("**present=1**")
    at_rest(teacher)
    ask(teacher, "Which of the tiles sees edges that rise to the right?", *"abcdef")
    teacher.keyboard.press("Escape")
    for page in (teacher, pupil):
        expect(card_of(page)).to_be_visible()
        at_rest(page)
        tiles = page.locator(f"{STAGE} canvas")
        if page.viewport_size == {
            "width": PHONE[0],
            "height": PHONE[1],
        }:  # one scrolls to them, and they come to stand above it
            tiles.evaluate("canvas => canvas.scrollIntoView({block: 'start'})")
        assert apart(card_of(page), tiles), page.viewport_size
        page.locator(".card summary").click()
        at_rest(page)
        bar = card_of(page).bounding_box()
        assert bar is not None
        assert bar["height"] < 110
        page.locator(".card summary").press("Enter")
        expect(page.locator(".card details")).to_have_attribute("open", "")
    assert serious(pupil) == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_line_that_is_cut_is_told_on_both_sides_and_comes_back(
    screen: Screen, server: str, language: str
) -> None:
    lost = {"en": "The line to the class is lost", "zh": "与课堂的连接已断开"}[language]
    lang = "" if language == "en" else "&lang=zh-CN"
    teacher, pupil = screen(WIDE), screen(PHONE)
    with line_to(server) as of_pupil, line_to(server) as of_teacher:
        code = begin(teacher, of_teacher.address)
        pupil.goto(f"{of_pupil.address}/?follow={code}{lang}")
        says = teacher.locator(".class .says")
        expect(says).to_have_text("1 screen follows")
        dot = pupil.locator("section.class .sign")
        colour = "dot => getComputedStyle(dot).backgroundColor"
        well = dot.evaluate(colour)

        of_pupil.go_down()
        expect(pupil.get_by_text(lost)).to_be_visible()
        assert dot.evaluate(colour) != well
        expect(says).to_have_text("0 screens follow")
        # Streamlit's own dialog comes after some seconds, and is not what one sees
        pupil.locator("[role=dialog]").wait_for(state="attached", timeout=30_000)
        expect(pupil.locator("[role=dialog]")).not_to_be_visible()
        expect(pupil.get_by_text(lost)).to_be_visible()
        of_pupil.come_up()
        expect(pupil.get_by_text(lost)).to_have_count(0, timeout=30_000)
        expect(says).to_have_text("1 screen follows")
        assert dot.evaluate(colour) == well

        of_teacher.go_down()
        expect(teacher.get_by_text("The line to the server is lost")).to_be_visible()
        assert teacher.locator("section.class .sign").evaluate(colour) != well
        of_teacher.come_up()
        expect(says).to_have_text("1 screen follows", timeout=30_000)


def test_a_phone_without_a_network_says_so_at_once(screen: Screen, server: str) -> None:
    teacher, phone = screen(WIDE), screen(PHONE)
    code = begin(teacher, server)
    phone.goto(f"{server}/?follow={code}")
    expect(teacher.locator(".class .says")).to_have_text("1 screen follows")
    phone.context.set_offline(True)
    expect(phone.get_by_text("The line to the class is lost")).to_be_visible()
    phone.context.set_offline(False)
    expect(phone.get_by_text("You follow your teacher.")).to_be_visible()
    expect(teacher.locator(".class .says")).to_have_text("1 screen follows")


def test_what_a_teacher_looks_at_was_theirs_all_along(screen: Screen, server: str) -> None:
    teacher, pupil = screen(WIDE), screen(PHONE)
    code = begin(teacher, server)
    pupil.goto(f"{server}/?follow={code}")
    expect(pupil.get_by_text("You follow your teacher.")).to_be_visible()
    teacher.get_by_role("button", name="Code", exact=True).click()
    teacher.get_by_role("button", name="End the class").click()
    expect(pupil.get_by_text("The class has ended. What you look at is yours now.")).to_be_visible()
    expect(teacher.get_by_text("The class has ended.", exact=True)).to_be_visible()
    expect(teacher.get_by_text("yours now")).to_have_count(0)
