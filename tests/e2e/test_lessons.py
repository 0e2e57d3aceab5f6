"""Every lesson from beginning to end, as people go through it; and a teacher's own.

Each is gone through once, in one language and size: the first three by keyboard, the others by
pointer. With EVERY_WAY=1 (`make lessons`) each is in each of both, by either.
"""

import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from hookviz.language.catalogs import languages
from hookviz.lessons.lesson import Lesson, Live, Question
from hookviz.ui.lessons.catalog import lessons
from scripts.browsing import settled_boxes
from scripts.servers import Server
from tests.e2e.screen import at_rest, new_context, without_errors
from tests.e2e.test_accessibility import serious
from tests.every_way import EVERY_WAY

SIZES: tuple[ViewportSize, ...] = (
    {"width": 1440, "height": 900},
    {"width": 1280, "height": 720},
    {"width": 390, "height": 844},
)
PICTURED = ("relu-and-pooling", "depth", "from-maps-to-a-class")
"""Lessons none of whose steps is without a picture in sight."""
LANGUAGES = [language.replace("_", "-") for language in languages()]


@pytest.fixture
def taught(server: Server) -> Iterator[Server]:
    """The server that all share, where nothing goes wrong meanwhile."""
    with without_errors(server):
        yield server


Way = tuple[Lesson, str, ViewportSize]


def ways(first: int) -> list[Way]:
    """Each lesson with a language and a size, in turns from the one at `first`; or with all."""
    if EVERY_WAY:
        return list(product(lessons(), LANGUAGES, SIZES))
    turns = [(lesson, first + lesson.number) for lesson in lessons()]
    return [(lesson, LANGUAGES[at % len(LANGUAGES)], SIZES[at % 3]) for lesson, at in turns]


def by_keyboard() -> list[Way]:
    """What a key does is the same in all lessons: one in each size, in either language."""
    combinations = ways(1)
    return combinations if EVERY_WAY else combinations[: len(SIZES)]


def by_pointer() -> list[Any]:
    """By day every other one; what is in each, tests/lessons/test_every_lesson.py shows."""
    combinations = ways(1)
    if EVERY_WAY:
        return combinations
    night = pytest.mark.sweep("by day the other lessons, and all facts: test_every_lesson.py")
    rest = combinations[len(SIZES) :]
    return [way if at % 2 else pytest.param(way, marks=night) for at, way in enumerate(rest)]


def name_of(way: Way) -> str:
    lesson, language, size = way
    return f"{lesson.slug}-{language}-{size['width']}"


def link(lesson: Lesson, language: str, step: int = 1) -> str:
    spoken = "" if language == "en" else f"&lang={language}"
    return f"/?lesson={lesson.slug}" + (f"&step={step}" if step > 1 else "") + spoken


def at_step(page: Page, lesson: Lesson, number: int) -> None:
    """Wait until a step is drawn whole and nothing in it failed."""
    expect(page.locator(".hv-step-title")).to_have_attribute("data-step", f"{lesson.slug} {number}")
    expect(page.locator("nav.steps button[aria-current]")).to_have_count(1)
    expect(page.locator(".st-key-hv-next button")).to_be_visible()
    expect(page.locator("[data-testid=stApp][data-test-script-state=running]")).to_have_count(0)
    shown = sum(isinstance(block, Live) for block in before_question(lesson, number))
    expect(page.locator("[class*=st-key-hv-live-]")).to_have_count(shown)
    expect(page.locator("[data-testid=stMain] [data-stale=true]")).to_have_count(0)
    wrong = "[data-testid=stAlertContentError], [data-testid=stAlertContentWarning]"
    expect(page.locator("[data-testid=stMain]").locator(wrong)).to_have_count(0)
    wide = page.evaluate("document.scrollingElement.scrollWidth - innerWidth")
    assert wide <= 0, "the page is wider than its window"


def before_question(lesson: Lesson, number: int) -> list[object]:
    blocks = lesson.steps[number - 1].blocks
    asked = next((at for at, each in enumerate(blocks) if isinstance(each, Question)), len(blocks))
    return list(blocks[: asked + 1])


def questions(lesson: Lesson, number: int) -> list[Question]:
    return [block for block in lesson.steps[number - 1].blocks if isinstance(block, Question)]


def answer(page: Page, question: Question, asked: Locator, *, right: bool) -> Locator:
    """The button of the first answer that is right, or of the first that is not."""
    at = [each.right for each in question.answers].index(right)
    return asked.get_by_role("button").nth(at)


@pytest.mark.promise
@pytest.mark.parametrize("way", by_pointer(), ids=name_of)
def test_a_lesson_from_beginning_to_end_by_pointer(
    way: Way, browser: Browser, taught: Server
) -> None:
    lesson, language, size = way
    context = new_context(
        browser, viewport=size, color_scheme="dark" if lesson.number % 2 else "light"
    )
    page = context.new_page()
    page.goto(taught + link(lesson, language))
    following = page.locator(".st-key-hv-next button")
    asked_before = False
    for number in range(1, len(lesson.steps) + 1):
        at_step(page, lesson, number)
        if size["width"] > 1000 and lesson.slug in PICTURED:
            shown = page.locator("[class*=st-key-hv-live-] :is(img, canvas)")
            expect(shown.filter(visible=True).first).to_be_in_viewport(ratio=0.5)
        for position, question in enumerate(questions(lesson, number)):
            asked = page.locator("section.question").nth(position)
            expect(asked).to_be_visible()
            expect(following).to_be_disabled()
            for right, sign in ((False, "wrong"), (True, "right")):
                answer(page, question, asked, right=right).click()
                expect(asked.locator(f".reason.{sign}")).to_be_visible()
                expect(answer(page, question, asked, right=right)).to_have_attribute(
                    "aria-pressed", "true"
                )
        asks = bool(questions(lesson, number))
        looked_at = not asked_before and lesson.number <= 2 * len(SIZES)  # at each size a question
        if number == 1 or (asks and (EVERY_WAY or looked_at)):  # an axe run takes long
            page.mouse.move(2, 2)
            assert serious(page) == [], f"step {number}"
        asked_before = asked_before or asks
        if number < len(lesson.steps):
            following.click()
    page.locator(".st-key-hv-all-lessons button").click()
    expect(page.locator(f"[data-slug={lesson.slug}] b.done")).to_be_visible()
    if EVERY_WAY or lesson.number <= len(SIZES) + len(LANGUAGES):
        assert serious(page) == []


# What has the focus, in whatever shadow it lies.
_FOCUSED = """(selector) => {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return at?.matches(selector) ? [...at.parentElement.children].indexOf(at) : -1;
}"""


def tab_to(page: Page, selector: str, index: int | None = None) -> None:
    """Press Tab until such an element has the focus: of several, the one at a place."""
    for _ in range(120):
        at = page.evaluate(_FOCUSED, selector)
        if at == index or (index is None and at >= 0):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {selector}")


@pytest.mark.parametrize("way", by_keyboard(), ids=name_of)
def test_a_lesson_from_beginning_to_end_by_keyboard(way: Way, page: Page, taught: Server) -> None:
    lesson, language, size = way
    page.set_viewport_size(size)
    page.goto(f"{taught}/?lesson=all&lang={language}")
    page.locator(f"[data-slug={lesson.slug}]").wait_for()
    tab_to(page, f"[data-slug={lesson.slug}]")
    page.keyboard.press("Enter")
    for number in range(1, len(lesson.steps) + 1):
        at_step(page, lesson, number)
        if number > 1:
            expect(page.locator(".hv-step-title")).to_be_focused()
        for position, question in enumerate(questions(lesson, number)):
            asked = page.locator("section.question").nth(position)
            asked.wait_for()
            right = [each.right for each in question.answers]
            assert size["width"] < 1100 or page.locator(".hv-why-not").is_visible()
            page.keyboard.press("ABCD"[right.index(False)])
            expect(asked.locator(".reason.wrong")).to_be_visible()
            at_rest(page)  # the answer has been counted
            tab_to(page, "section.question .answers button", right.index(True))
            page.keyboard.press("Enter")
            expect(asked.locator(".reason.right")).to_be_visible()
        expect(page.locator("[data-testid=stMain] [data-stale=true]")).to_have_count(0)
        if number < len(lesson.steps):
            expect(page.locator(".st-key-hv-next button")).to_be_enabled()
            page.keyboard.press("n")
    page.keyboard.press("p")
    if len(lesson.steps) > 1:
        at = f"{lesson.slug} {len(lesson.steps) - 1}"
        expect(page.locator(".hv-step-title")).to_have_attribute("data-step", at)


def test_on_a_phone_the_way_on_is_seen_wherever_one_reads(page: Page, taught: Server) -> None:
    """At any place of the text; and what leads to the next lesson is below all of the step."""
    page.set_viewport_size(SIZES[2])
    page.goto(f"{taught}/?lesson=image&step=4")
    at_step(page, lessons()[0], 4)
    live, onward = settled_boxes(
        page,
        page.locator("[class*=st-key-hv-live-]"),
        page.locator(".st-key-hv-next-lesson button"),
    )
    assert live["y"] + live["height"] <= onward["y"]
    page.locator(".st-key-hv-previous button").click()
    at_step(page, lessons()[0], 3)
    waits, asked = settled_boxes(page, page.locator(".hv-waits"), page.locator("section.question"))
    assert asked["y"] < waits["y"]
    for end in (0, 1e6):
        page.locator("[data-testid=stMain]").evaluate("(main, end) => main.scrollTo(0, end)", end)
        expect(page.locator(".st-key-hv-next button")).to_be_in_viewport(ratio=1)


def test_a_teachers_own_lesson_stands_beside_ours_and_brings_nothing_in(
    page: Page, taught: Server
) -> None:
    page.goto(f"{taught}/?lesson=convolutoin")  # leads to the list
    expect(page.locator("[data-testid=stAlert]")).to_contain_text("Did you mean 'convolution'")
    cards = page.locator("[data-slug]")
    expect(cards).to_have_count(len(lessons()) + 1)
    expect(cards.last).to_contain_text("My own <b>lesson</b>")
    cards.last.click()
    title = page.locator(".hv-step-title")
    expect(title).to_have_text("Ours :red[x]")
    text = page.locator(".hv-lesson-text")
    expect(text.first).to_contain_text(
        '<script>document.title = "bad"</script> $x^2$ :material/home:'
    )
    expect(text.nth(1)).to_contain_text("<img src=x onerror=")
    assert page.locator(".hv-lesson-text :is(script, img)").count() == 0
    assert page.title() == "HookViz"
    fault = page.locator("[data-testid=stAlert]")
    expect(fault).to_contain_text("01-own.md, line 17: No live part of this step has the fact")
    page.locator(".st-key-hv-next button").click()
    expect(page.locator(".hv-lesson-text").first).to_have_text("Text {alone}.")


@pytest.mark.by_day
def test_a_step_is_a_link_and_what_was_done_stays_in_the_browser(
    browser: Browser, page: Page, taught: Server
) -> None:
    """A reload, which is another session of the server, knows it; another browser does not."""
    lesson = lessons()[0]
    page.goto(taught + link(lesson, "en"))
    at_step(page, lesson, 1)
    page.keyboard.press("ArrowRight")
    at_step(page, lesson, 2)
    expect(page).to_have_url(f"{taught}/?lesson={lesson.slug}&model=ShapesNet&step=2")
    expect(page.locator(".st-key-model input")).to_have_value("ShapesNet")
    page.keyboard.press("ArrowLeft")
    at_step(page, lesson, 1)
    page.go_back()
    at_step(page, lesson, 2)

    asked, dots = page.locator("section.question"), page.locator("nav.steps button")
    (question,) = questions(lesson, 2)
    answer(page, question, asked, right=False).click()
    expect(asked.locator(".reason.wrong")).to_be_visible()
    at_rest(page)
    expect(dots.nth(1)).to_have_text("2")
    answer(page, question, asked, right=True).click()
    expect(dots.nth(1)).to_have_text("✓")
    page.reload()
    at_step(page, lesson, 2)
    expect(dots.nth(1)).to_have_class(re.compile("done"))
    expect(asked.locator(".reason.right")).to_be_visible()  # the answer is there again
    page.locator(".st-key-menu-sheet button").first.click()
    sheets = page.locator("[data-testid=stDownloadButton] button")
    for position, name in enumerate((f"{lesson.slug}.pdf", f"{lesson.slug}-answers.pdf")):
        with page.expect_download() as coming:
            sheets.nth(position).click()
        assert coming.value.suggested_filename == name
        assert coming.value.path().read_bytes().startswith(b"%PDF-")
    other = new_context(browser).new_page()
    other.goto(f"{taught}/?lesson=image&step=2")
    expect(other.locator("nav.steps button[aria-current]")).to_be_visible()
    expect(other.locator("nav.steps button.done")).to_have_count(0)


def test_the_list_has_a_picture_and_a_question_for_each_and_says_where_to_start(
    page: Page, taught: Server
) -> None:
    page.goto(f"{taught}/?lesson=all")
    cards = page.locator("[data-slug]")
    ours = [each for each in lessons() if each.question]
    expect(cards.locator("q")).to_have_text([each.question for each in ours])
    expect(cards.locator("img")).to_have_count(len(ours))
    assert page.evaluate(
        """() => [...document.querySelectorAll("*")].flatMap(
        (each) => [...(each.shadowRoot?.querySelectorAll("[data-slug] img") ?? [])]
        ).every((each) => each.complete && each.naturalWidth > 0)"""
    )
    expect(cards.first).to_contain_text("Start here")
    expect(cards.get_by_text("Start here")).to_have_count(1)
    page.goto(f"{taught}/?lesson=channels")
    at_step(page, lessons()[2], 1)
    page.goto(f"{taught}/?lesson=all")
    expect(cards.nth(2)).to_contain_text("1 of 4 steps")
    expect(cards.get_by_text("Start here")).to_have_count(0)


def test_a_lesson_that_does_not_fit_the_chosen_model_runs_on_its_own(
    page: Page, taught: Server
) -> None:
    page.goto(f"{taught}/?lesson=from-maps-to-a-class&step=2&model=SqueezeNet (photographs)")
    at_step(page, lessons()[5], 2)
    expect(page.locator(".hv-untrained")).to_contain_text("This lesson runs on ShapesNet")
    expect(page.locator(".hv-lesson-text").first).to_contain_text("of the 128 channels")
    page.locator("[class*=st-key-hv-live-]").get_by_role("button", name="Open in the").click()
    expect(page).to_have_url(re.compile("model=ShapesNet"))
    page.get_by_role("button", name="Back to the lesson").click()
    at_step(page, lessons()[5], 2)
    expect(page).to_have_url(re.compile("model=SqueezeNet"))
