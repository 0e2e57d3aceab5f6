"""Guess the channel with a real class: a teacher, and pupils on phones, one of them in Chinese."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

import hookviz
from hookviz.atlas.files import FOLDER
from hookviz.language.naming import class_label
from hookviz.language.saying import say
from hookviz.language.speaking import speaking
from hookviz.models.shapesnet import CATEGORIES
from scripts.browsing import settled_box, wait_for_grid
from tests.e2e.screen import at_rest
from tests.e2e.test_accessibility import serious
from tests.e2e.test_classroom import PHONE, WIDE, begin, follows, screen
from tests.e2e.test_layout import lies_in, window

__all__ = ["screen"]  # a fixture

ATLAS = hookviz.load_atlas(FOLDER / "shapesnet.atlas")
Screen = Callable[..., Page]


def begin_game(page: Page) -> None:
    """Begin the game in the menu that is open."""
    page.get_by_role("button", name="Begin the game").click()
    expect(page.locator(".patches img")).to_have_count(ATLAS.top)
    page.keyboard.press("Escape")


def reveal(teacher: Page) -> None:
    """Close the question, and reveal what is right."""
    teacher.get_by_role("button", name="Close the question").click()
    teacher.get_by_role("button", name="Reveal").click()


def right_of(page: Page) -> tuple[str, str, int]:
    """What is called right on a screen, and the layer and the channel."""
    said = page.locator(".map figcaption").inner_text()
    channel, layer = re.findall(r"Channel (\d+) of ([\w.]+),", said)[0]
    right = page.locator(".tally .right > span").first.inner_text()
    return right.removeprefix("✓").strip(), layer, int(channel)


@pytest.mark.by_day
def test_phones_guess_a_channel_by_four_names_and_have_points(screen: Screen, server: str) -> None:
    teacher, first, chinese = screen(WIDE), screen(PHONE), screen(PHONE)
    code = begin(teacher, server)
    first.goto(f"{server}/?follow={code}")
    chinese.goto(f"{server}/?follow={code}&lang=zh-CN")
    for page in (first, chinese):
        wait_for_grid(page)
    teacher.get_by_role("button", name="Guess the channel").click()
    teacher.get_by_test_id("stPopoverBody").get_by_role("combobox", name="Layer").click()
    teacher.get_by_role("option", name="stage3.second.conv", exact=True).click()
    begin_game(teacher)
    for page in (first, chinese):
        expect(page.locator(".patches img")).to_have_count(ATLAS.top)
        expect(page.locator(".answers button")).to_have_count(4)
        assert lies_in(settled_box(page, page.locator(".card")), window(page))
        assert page.locator(".card").evaluate("card => card.scrollHeight - card.clientHeight") <= 1
    expect(chinese.locator(".card summary")).to_have_text(
        "什么最能激活 stage3.second.conv 的这个通道？"
    )
    names = first.locator(".answers button").all_inner_texts()
    with speaking("zh_CN"):
        said = [
            class_label(CATEGORIES.index(name), CATEGORIES) if name in CATEGORIES else say(name)
            for name in names
        ]
    expect(chinese.locator(".answers button")).to_have_text(said)
    expect(teacher.locator(".tally li")).to_have_text(names)  # and no votes yet
    assert serious(first) == []

    # by keyboard, and the focus stays; one changes its mind
    first.locator(".answers button").nth(1).focus()
    first.keyboard.press("Enter")
    expect(teacher.locator(".card .voted")).to_have_text("1 answer")
    first.keyboard.press("Shift+Tab")
    first.keyboard.press("Space")
    expect(first.locator(".answers [aria-pressed=true]")).to_have_text(names[0])
    chinese.locator(".answers button").nth(1).click()
    expect(teacher.locator(".card .voted")).to_have_text("2 answers")
    teacher.get_by_role("button", name="Close the question").click()
    for page in (teacher, first, chinese):
        expect(page.locator(".tally b")).to_have_text(["1", "1", "0", "0"])
        expect(page.locator(".tally .right")).to_have_count(0)
        expect(page.locator(".map")).not_to_be_visible()
    teacher.get_by_role("button", name="Reveal").click()
    for page in (teacher, first, chinese):
        expect(page.locator(".map img")).to_be_visible()
        assert serious(page) == []
    right, layer, channel = right_of(teacher)
    assert layer == "stage3.second.conv"
    won = [names[at] == right for at in (0, 1)]
    expect(first.locator(".points")).to_have_text(
        f"You: {int(won[0])} of 1, class: {50 * sum(won)}%"
    )
    expect(chinese.locator(".points")).to_contain_text(f"全班：{50 * sum(won)}%")

    # the next one; the points stay when the page is loaded again, and it is shown on all screens
    teacher.get_by_role("button", name="Next channel").click()
    first.locator(".answers button").first.click()
    expect(teacher.locator(".card .voted")).to_have_text("1 answer")
    reveal(teacher)
    expect(first.locator(".points")).to_contain_text("of 2")
    points = first.locator(".points").inner_text()
    expect(teacher.locator(".map img")).to_be_visible()  # each screen hears of it on its own line
    before, (_, layer, channel) = channel, right_of(teacher)
    assert channel != before
    first.reload()
    expect(first.locator(".points")).to_have_text(points)
    teacher.get_by_role("button", name="Show it large").click()
    for page in (teacher, first, chinese):
        follows(page, channel=str(channel), layer=layer)
        expect(page.locator(".card .asked")).not_to_be_visible()  # nothing lies over it
    teacher.locator(".card summary").click()
    teacher.get_by_role("button", name="End the game").click()
    for page in (teacher, first, chinese):
        expect(page.locator(".card")).not_to_be_visible()


@pytest.mark.by_day
def test_words_of_their_own_and_names_of_the_teacher_s_are_asked_where_there_is_an_atlas(
    screen: Screen, server: str
) -> None:
    """From a network without one she is led to the nearest that has one."""
    teacher, first, second = screen(WIDE), screen(PHONE), screen(PHONE)
    code = begin(teacher, server, "?model=ShapesViT (drawings)")
    for page in (first, second):
        page.goto(f"{server}/?follow={code}")
    teacher.get_by_role("button", name="Guess the channel").click()
    none = teacher.get_by_text("ShapesViT (drawings) with these weights has no atlas")
    expect(none).to_be_visible()
    teacher.get_by_role("button", name="Take ShapesNet").click()
    follows(teacher, model="ShapesNet")
    teacher.get_by_role("radio", name="Their own words").click()
    at_rest(teacher)
    begin_game(teacher)
    for page, words in ((first, "<b>Dots</b>"), (second, "rude " * 12)):
        page.get_by_label("Your answer, in a word or two").fill(words)
        page.keyboard.press("Enter")
        expect(page.get_by_text("Your answer is sent.")).to_be_visible()
    expect(teacher.locator(".card .voted")).to_have_text("2 answers")
    expect(teacher.locator(".tally li")).to_have_count(0)
    teacher.get_by_role("button", name="Close the question").click()
    expect(teacher.locator(".tally button")).to_have_text(["<b>Dots</b>", ("rude " * 8).strip()])
    expect(first.locator(".tally li")).to_have_count(0)
    teacher.locator(".tally button").first.click()
    expect(teacher.locator(".tally button").first).to_have_attribute("aria-pressed", "true")
    assert serious(teacher) == []
    teacher.get_by_role("button", name="Reveal").click()
    for page, said in ((first, "You were right."), (second, "Not this time.")):
        expect(page.locator(".tally li")).to_have_count(1)
        expect(page.locator(".tally li")).to_contain_text("<b>Dots</b>")
        assert "rude" not in page.locator(".card").inner_text()
        expect(page.get_by_text(said)).to_be_visible()
    teacher.get_by_role("button", name="End the game").click()
    expect(first.locator(".card")).not_to_be_visible()

    # four names that she types for the channel that she is shown
    teacher.get_by_role("button", name="Guess the channel").click()
    teacher.get_by_role("radio", name="Names of my own").click()
    teacher.get_by_role("button", name="Show me a channel").click()
    typed = teacher.get_by_label("Four names, one a line")
    typed.fill("right one\nother\nthird")
    teacher.get_by_role("button", name="Ask the class").click()
    expect(teacher.get_by_text("A riddle has 4 names, one a line; this one has 3.")).to_be_visible()
    typed.fill("right one\nother\nthird\nlast")
    teacher.get_by_role("button", name="Ask the class").click()
    first.get_by_role("button", name="right one").click()
    teacher.keyboard.press("Escape")
    expect(teacher.locator(".card .voted")).to_have_text("1 answer")
    reveal(teacher)
    expect(first.get_by_text("You were right.")).to_be_visible()


def test_a_riddle_fills_the_projector_and_no_other_channel_is_open_beside_it(
    screen: Screen, server: str
) -> None:
    teacher = screen(WIDE)
    begin(teacher, server, "?model=ShapesNet&channel=3")
    teacher.get_by_role("button", name="Guess the channel").click()
    begin_game(teacher)
    teacher.get_by_role("button", name="Present").first.dispatch_event("click")
    teacher.locator("html.hv-presenting").wait_for(state="attached")
    at_rest(teacher)
    card, (width, height) = settled_box(teacher, teacher.locator(".card")), WIDE
    assert card["width"] > 0.95 * width
    assert card["height"] > 0.95 * (height - 64) - 16  # above the presenter's bar
    expect(teacher.locator(".card summary")).to_contain_text("What excites this channel of ")
    pictures = teacher.locator(".patches img")
    assert settled_box(teacher, pictures.first)["height"] > height / 4
