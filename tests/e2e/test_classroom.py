"""A class in real browsers: a teacher and two pupils, one of them on a phone."""

from collections.abc import Callable
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from hookviz.classroom.codes import shown_code
from hookviz.images.samples import samples
from scripts.browsing import tile_centre, wait_for_grid
from tests.e2e.screen import SHAPESNET, choose, link_of, new_context
from tests.e2e.test_accessibility import serious
from tests.pictures import encoded, picture

MINE = {"name": "mine.png", "mimeType": "image/png", "buffer": encoded(picture(3))}
Scheme = Literal["light", "dark"]
WIDE, PHONE = (1280, 720), (390, 844)


@pytest.fixture
def screen(browser: Browser) -> Callable[..., Page]:
    """Opens a window of a person's own."""

    def opened(size: tuple[int, int], scheme: Scheme = "light") -> Page:
        viewport: ViewportSize = {"width": size[0], "height": size[1]}
        page = new_context(browser, viewport=viewport, color_scheme=scheme).new_page()
        page.set_default_timeout(30_000)
        return page

    return opened


def begin(page: Page, server: str, link: str = SHAPESNET) -> str:
    """Begin a class as its teacher does; its code."""
    page.goto(f"{server}/{link}")
    wait_for_grid(page)
    page.get_by_role("button", name="Classroom", exact=True).click()
    page.get_by_role("button", name="Begin a class").click()
    page.wait_for_url("**class=**")
    code = link_of(page)["class"]
    expect(page.get_by_text(shown_code(code))).to_be_visible()
    return code


def join(page: Page, code: str) -> None:
    """Follow a class by its code, as it is read off the wall."""
    page.get_by_role("button", name="Classroom", exact=True).click()
    page.get_by_label("The code of your class").fill(shown_code(code).lower())
    page.get_by_role("button", name="Follow my teacher").click()


def follows(page: Page, **choices: str | None) -> None:
    """Wait until the link has these choices; None for one that is not there."""
    for name, value in choices.items():
        page.wait_for_function(
            "([name, value]) => window.hookvizLink?.().get(name) === value",
            arg=[name, value],
        )


def ask(page: Page, words: str, *answers: str) -> None:
    """Ask the class."""
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_label("Question", exact=True).fill(words)
    page.get_by_label("Answers, one a line").fill("\n".join(answers))
    page.get_by_role("button", name="Ask the class").click()


def hide(page: Page, hidden: bool) -> None:
    """Have a page believe that nobody sees it; without a screen all pages are seen."""
    page.evaluate(
        """hidden => {
          Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


@pytest.mark.promise
def test_pupils_follow_let_go_and_come_back_answer_and_are_told_of_the_end(
    screen: Callable[[tuple[int, int]], Page], server: str
) -> None:
    teacher, phone, own = screen(WIDE), screen(PHONE), screen(WIDE)
    code = begin(teacher, server)
    taught, says = wait_for_grid(teacher), teacher.locator(".class .says")

    # by the code that is typed, and with a photograph of one's own
    phone.goto(f"{server}/{SHAPESNET}")
    phone.get_by_test_id("stExpandSidebarButton").click()
    join(phone, code)
    expect(phone.get_by_text("You follow your teacher.")).to_be_in_viewport()
    expect(phone.get_by_test_id("stSidebar")).not_to_be_in_viewport()
    own.goto(f"{server}/{SHAPESNET}&image=Upload")
    own.locator("input[type=file]").first.set_input_files(MINE)  # type: ignore[arg-type]
    follows(own, image="Upload")
    mine = wait_for_grid(own)
    join(own, code)
    expect(says).to_have_text("2 screens follow")

    choose(teacher, "Layer", "stage1.first.conv")
    for page in (phone, own):
        follows(page, layer="stage1.first.conv", model="ShapesNet")
    wait_for_grid(teacher, taught)
    teacher.mouse.click(*tile_centre(teacher, 5))
    follows(teacher, channel="5")
    teacher.get_by_role("radio", name=samples()[1].title).click()
    follows(phone, channel="5", sample=samples()[1].name)
    follows(own, channel="5", image="Upload")
    assert "upload" in link_of(own)
    wait_for_grid(own, mine)
    for page in (phone, own):
        expect(page.get_by_role("heading", name="Channel 5")).to_be_visible()

    # who lets go looks on alone, and comes back with one click
    phone.get_by_role("button", name="Let go").click()
    expect(phone.get_by_text("You look on your own.")).to_be_visible()
    expect(says).to_have_text("1 screen follows, 1 looks alone")
    hide(own, True)
    expect(says).to_have_text("0 screens follow, 1 looks alone")
    hide(own, False)
    choose(phone, "Layer", "stage2.first.conv")
    teacher.get_by_role("radio", name=samples()[0].title).click()
    follows(teacher, sample=None)
    phone.reload()
    expect(phone.get_by_text("You look on your own.")).to_be_visible()
    follows(phone, layer="stage2.first.conv", sample=samples()[1].name)
    phone.get_by_role("button", name="Back to the teacher").click()
    follows(phone, layer="stage1.first.conv", sample=None, channel="5")
    expect(says).to_have_text("2 screens follow")

    # a question, with words that would be markup, whose votes are hidden until it is closed
    ask(teacher, "Which <img src=x onerror=alert(1)> map?", "<b>bold</b>")
    expect(teacher.get_by_text("A question needs 2 to 6 answers")).to_be_visible()
    teacher.get_by_text("Hide the votes until I close the question").click()
    teacher.get_by_label("Answers, one a line").fill("<b>bold</b>\nvertical\nnone")
    teacher.get_by_label("The right one").click()
    teacher.get_by_role("option", name="line 2").click()
    teacher.get_by_role("button", name="Ask the class").click()
    for page in (phone, own):
        card = page.get_by_role("region", name="A question to the class")
        expect(card.get_by_text("Which <img src=x onerror=alert(1)> map?")).to_be_visible()
        assert card.locator("summary *, .answers button *").count() == 0
    phone.get_by_role("button", name="<b>bold</b>").click()
    own.get_by_role("button", name="none").click()
    own.get_by_role("button", name="vertical").click()
    expect(own.get_by_role("button", name="vertical")).to_have_attribute("aria-pressed", "true")
    expect(teacher.locator(".card .voted")).to_have_text("2 answers")
    assert "".join(teacher.locator(".tally b").all_inner_texts()) == ""
    teacher.get_by_role("button", name="Show the votes").click()  # as she likes
    expect(teacher.locator(".tally b")).to_have_text(["1", "1", "0"])
    phone.reload()  # whoever comes again has answered already
    bold = phone.get_by_role("button", name="<b>bold</b>")
    expect(bold).to_have_attribute("aria-pressed", "true")
    for page in (phone, own):
        expect(page.locator(".tally li")).to_have_count(0)
    assert serious(phone) == []
    teacher.get_by_role("button", name="Close the question").click()
    teacher.reload()  # and goes on
    for page in (teacher, phone, own):
        expect(page.locator(".tally b")).to_have_text(["1", "1", "0"])
        expect(page.locator(".tally .right")).to_contain_text("vertical")
    expect(phone.locator(".tally li", has_text="your answer")).to_contain_text("<b>bold</b>")
    expect(phone.get_by_text("Not this time.")).to_be_visible()
    expect(own.get_by_text("You were right.")).to_be_visible()
    for page in (teacher, phone):
        assert serious(page) == []
    teacher.get_by_role("button", name="Take it away").click()
    for page in (teacher, phone, own):
        expect(page.locator(".card:visible")).to_have_count(0)

    # the end, where what a teacher looks at was hers all along
    teacher.get_by_role("button", name="Code", exact=True).click()
    expect(teacher.get_by_role("img", name="QR code")).to_be_visible()
    teacher.get_by_role("button", name="End the class").click()
    follows(teacher, **{"class": None})
    expect(teacher.get_by_text("The class has ended.", exact=True)).to_be_visible()
    expect(teacher.get_by_text("yours now")).to_have_count(0)
    for page in (phone, own):
        follows(page, follow=None)
        yours = page.get_by_text("The class has ended. What you look at is yours now.")
        expect(yours).to_be_in_viewport()
    for page in (teacher, own):  # nothing lies over the corner's buttons
        page.get_by_role("button", name="Present this view (F)").click(trial=True)
    assert serious(phone) == []
    phone.get_by_role("button", name="OK", exact=True).click()
    expect(phone.get_by_text("The class has ended.")).to_have_count(0)
    expect(own.get_by_text("The class has ended.")).to_be_in_viewport()  # for who looks up late


def test_no_class_is_said_in_words_and_a_link_without_the_secret_teaches_nothing(
    screen: Callable[[tuple[int, int]], Page], server: str
) -> None:
    teacher, pupil = screen(WIDE), screen(WIDE)
    code = begin(teacher, server)
    wrong = code[:-1] + ("A" if code[-1] != "A" else "B")
    pupil.goto(f"{server}/{SHAPESNET}&follow={wrong}")
    expect(pupil.get_by_text(f"No class has the code {shown_code(wrong)}")).to_be_visible()
    pupil.get_by_role("button", name="Go on without a class").click()
    follows(pupil, follow=None)
    pupil.goto(f"{server}/{SHAPESNET}&class={code}")  # as a link that the teacher shared
    follows(pupil, **{"class": None})
    expect(pupil.get_by_role("button", name="Ask", exact=True)).to_have_count(0)
    expect(teacher.get_by_text("0 screens follow")).to_be_visible()


@pytest.mark.by_day
def test_a_question_of_a_lesson_is_asked_to_the_class_with_its_facts(
    screen: Callable[[tuple[int, int]], Page], server: str
) -> None:
    teacher, pupil = screen(WIDE), screen(PHONE)
    code = begin(teacher, server)
    pupil.goto(f"{server}/?follow={code}")
    expect(teacher.get_by_text("1 screen follows")).to_be_visible()
    teacher.get_by_role("button", name="Learn").click()
    teacher.locator("[data-slug=image]").click()
    follows(pupil, lesson="image")
    teacher.locator(".riddle-on").click()  # what she moves in it is moved for pupils
    expect(pupil.locator(".riddle-on")).to_have_text("Four times as many numbers")
    teacher.locator(".st-key-hv-next button").click()
    teacher.get_by_role("button", name="All three are large").click()
    teacher.locator(".st-key-hv-next button").click()
    asked = teacher.locator("section.question")
    expect(asked.get_by_role("button", name="49,152")).to_be_visible()
    expect(asked).to_have_count(1)  # that of the step before may be there for a moment
    words = asked.locator(".words").inner_text()
    answers = asked.locator(".answers button span").all_inner_texts()
    teacher.get_by_role("button", name="Ask the class").click()
    card = pupil.get_by_role("region", name="A question to the class")
    expect(card.get_by_text(words)).to_be_visible()
    assert card.get_by_role("button").all_inner_texts() == answers
    card.get_by_role("button").nth(1).click()
    expect(teacher.locator(".tally b")).to_have_text(["0", "1", "0"])
    assert serious(teacher) == []
    teacher.get_by_role("button", name="Close the question").click()
    expect(card.locator(".tally b")).to_have_text(["0", "1", "0"])
    expect(card.locator(".tally .right")).to_contain_text("49,152")  # as the lesson has it
    teacher.get_by_role("button", name="Take it away").click()
    expect(card).to_have_count(0)
