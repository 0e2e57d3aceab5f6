"""Lessons 8 and 9 as a learner works in them: the blind test, chance, and a hook's own lines."""

import re
import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from hookviz.ui.lessons.parts import blind_test
from scripts.browsing import settled_box, settled_boxes
from scripts.servers import Server, serve
from tests.e2e.screen import at_rest, new_context, without_errors
from tests.ui.lessons.parts.scenes import cat, with_defaults

READING, HOOKS = "/?lesson=reading-maps", "/?lesson=a-hooks-life"
OPTIONS = with_defaults(blind_test.PART)


@pytest.fixture(scope="module")
def own() -> Iterator[Server]:
    """A server as a person starts it on their own machine."""
    command = [sys.executable, "-m", "hookviz", "run", "--port", "PORT", "--address", "127.0.0.1"]
    with serve(command=command) as address:
        yield address


def test_ten_maps_by_keyboard_are_scored_and_kept_until_ten_others_come(
    page: Page, server: Server, browser: Browser
) -> None:
    shown = blind_test.blind_test(cat(), OPTIONS).maps
    asked = page.locator(".hv-blind-asked figcaption")
    with without_errors(server):
        page.goto(server + READING)
        page.locator("section.question").wait_for()
        page.keyboard.press("b")
        expect(page.locator(".hv-step-title")).to_have_text("Trained, or random?")
        for at, each in enumerate(shown):
            expect(asked).to_contain_text(f"Map {at + 1} of 10")
            page.keyboard.press("t" if each.is_trained == (at < 7) else "u")
            said = page.locator(".hv-blind-said")
            expect(said).to_contain_text(f"Map {at + 1} is channel {each.channel} ")
            expect(said).to_contain_text("Right." if at < 7 else "Not quite.")
        expect(page.locator(".hv-blind-score b")).to_have_text("7 / 10")
        expect(page.locator(".hv-blind-row .right")).to_have_count(7)
        pupil = new_context(browser, viewport={"width": 390, "height": 844}).new_page()
        pupil.goto(page.url)  # as a class follows it
        pupil.locator("section.question").wait_for()
        pupil.keyboard.press("b")
        expect(pupil.locator(".hv-blind-score b")).to_have_text("7 / 10")
        assert pupil.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0
        pupil.context.close()
        row = page.locator(".hv-blind-row img")
        sources = "all => all.map(each => each.src)"
        before = row.evaluate_all(sources)
        page.get_by_role("button", name="Ten others").click()
        expect(asked).to_contain_text("Map 1 of 10")
        at_rest(page)  # the words come before the row
        assert row.count() == 10
        assert row.evaluate_all(sources) != before


@pytest.mark.promise
def test_the_lines_with_the_hook_come_first_on_the_chosen_network(
    page: Page, server: Server
) -> None:
    """And what a script draws is in sight where its constants are moved."""
    page.goto(f"{server}{HOOKS}&model=ShapesNet&sample=star")
    code = page.locator("pre.hv-script").first
    picture = page.locator("[class*=st-key-hv-live] img").nth(1)  # what the hook fetched
    box = settled_box(page, picture)
    assert box["y"] + box["height"] < 720
    for at, words in enumerate(('LAYER = "stem.first.conv"', "class ShapesNet")):
        folded = page.locator("details.hv-script-folded").nth(at)
        expect(folded.locator("pre")).to_be_hidden()
        folded.locator("summary").focus()
        page.keyboard.press("Enter")
        expect(folded.locator("pre")).to_contain_text(words)

    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(f"{server}/?lesson=gradients-by-hooks&step=6&model=ShapesNet&sample=star")
    page.get_by_role("radio", name="2.0", exact=True).click()
    at_rest(page)
    drawn = page.locator("[class*=st-key-hv-live] .area").first
    chart, box = settled_boxes(page, drawn, code)
    assert chart["y"] + chart["height"] <= box["y"] < 720


def test_a_server_of_several_says_why_lines_can_not_be_edited(page: Page, server: Server) -> None:
    page.goto(server + HOOKS)
    expect(page.get_by_text("This server runs nobody's own lines")).to_be_visible()
    expect(page.get_by_role("button", name="Edit these lines")).to_have_count(0)
    expect(page.get_by_role("button", name="Download")).to_be_visible()


def test_a_server_of_ones_own_opened_by_another_name_runs_nothing(own: Server, page: Page) -> None:
    """As a proxy would: the header that it adds keeps the editor away."""
    page.set_extra_http_headers({"X-Forwarded-For": "10.0.0.9"})
    page.goto(own + HOOKS)
    expect(page.get_by_text("This server runs nobody's own lines")).to_be_visible()
    expect(page.get_by_role("button", name="Edit these lines")).to_have_count(0)


def test_lines_are_edited_run_stopped_and_left_by_keyboard(own: Server, page: Page) -> None:
    with without_errors(own):
        page.goto(own + HOOKS + "&model=ShapesNet&sample=star")
        page.get_by_role("button", name="Edit these lines").press("Enter")
        lines = page.locator("[class*=st-key-hv-own-lines] textarea")
        expect(lines).to_have_value(re.compile('^LAYER = "stem.first.conv"'))
        text = lines.input_value()
        assert "handle.remove()" in text
        lines.fill(
            text.replace("maps = seen[LAYER][0]", "maps = seen[LAYER][0][:5]\nprint('mine')")
        )
        lines.press("Control+Enter")
        printed = page.locator("[class*=st-key-hv-live] [data-testid=stCode]")
        expect(printed).to_contain_text("mine", timeout=90_000)
        expect(printed).to_contain_text("stem.first.conv: 5 channels")
        # the text tells of what was edited
        expect(page.locator(".hv-lesson-text", has_text="put out 5 maps")).to_be_visible()
        lines.fill("x = 1\nprint('on')\nwhile True:\n    pass\n")
        lines.press("Control+Enter")
        expect(page.get_by_text(re.compile("of their own: [1-9]"))).to_be_visible(timeout=90_000)
        page.get_by_role("button", name="Stop").press("Enter")
        expect(page.get_by_text("It was stopped.")).to_be_visible()
        lines.fill("x = 1\nprint(unknown)\n")
        lines.press("Control+Enter")
        fault = page.get_by_text("Line 2: NameError: name 'unknown' is not defined")
        expect(fault).to_be_visible(timeout=90_000)
        assert "Traceback" not in page.content()
        assert "unknown" not in page.url
        page.get_by_role("button", name="As it was").press("Enter")
        expect(page.get_by_role("button", name="Edit these lines")).to_be_visible()
        expect(page.locator(".hv-lesson-text", has_text="put out 32 maps")).to_be_visible()


def test_no_link_brings_lines_that_are_run(own: Server, page: Page) -> None:
    moved = "a-hooks-life-1-1+text%3Dprint(7)%26a-hooks-life-1-1+edited%3Dprint(7)"
    page.goto(f"{own}{HOOKS}&moved={moved}")
    expect(page.get_by_role("button", name="Edit these lines")).to_be_visible()
    expect(page.locator("textarea")).to_have_count(0)
