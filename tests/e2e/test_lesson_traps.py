"""Lessons 8 and 9 as a learner works in them: the blind test, chance, and a hook's own lines."""

import re
import sys
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

import hookviz
from hookviz.ui.lessons.parts import blind_test
from hookviz.wording import percent
from scripts.servers import Server, serve
from tests.e2e.screen import at_rest, new_context, without_errors
from tests.ui.lessons.parts.scenes import cat, star, with_defaults

READING, HOOKS = "/?lesson=reading-maps", "/?lesson=a-hooks-life"
OPTIONS = with_defaults(blind_test.PART)


@pytest.fixture(scope="module")
def own() -> Iterator[Server]:
    """A server as a person starts it on their own machine."""
    command = [sys.executable, "-m", "hookviz", "run", "--port", "PORT", "--address", "127.0.0.1"]
    with serve(command=command) as address:
        yield address


def asked(page: Page) -> Locator:
    return page.locator(".hv-blind-asked figcaption")


def test_ten_maps_by_keyboard_are_scored_and_kept_until_ten_others_come(
    page: Page, server: Server, browser: Browser
) -> None:
    shown = blind_test.blind_test(cat(), OPTIONS).maps
    expect_right = 7
    keys = ["t" if each.trained == (at < expect_right) else "u" for at, each in enumerate(shown)]
    with without_errors(server):
        page.goto(server + READING)
        page.locator("section.question").wait_for()
        page.keyboard.press("b")
        expect(page.locator(".hv-step-title")).to_have_text("Trained, or random?")
        for at, key in enumerate(keys):
            expect(asked(page)).to_contain_text(f"Map {at + 1} of 10")
            page.keyboard.press(key)
            said = page.locator(".hv-blind-said")
            expect(said).to_contain_text(f"Map {at + 1} is channel {shown[at].channel} ")
            expect(said).to_contain_text("Right." if at < expect_right else "Not quite.")
            if at == 3:
                expect(
                    page.locator("p", has_text=re.compile(r"^4 of 10 answered\.$"))
                ).to_be_visible()
        expect(page.locator(".hv-blind-score b")).to_have_text("7 / 10")
        expect(page.locator(".hv-blind-row .right")).to_have_count(7)
        expect(page.locator(".hv-blind-row .wrong")).to_have_count(3)
        share = percent(blind_test.by_chance(7, 10))
        expect(page.locator(".hv-lesson-text", has_text=share)).to_be_visible()
        link = page.url
        pupil = new_context(browser, viewport={"width": 390, "height": 844}).new_page()
        pupil.goto(link)  # as a class follows it
        pupil.locator("section.question").wait_for()
        pupil.keyboard.press("b")
        expect(pupil.locator(".hv-blind-score b")).to_have_text("7 / 10")
        wide = pupil.evaluate("document.scrollingElement.scrollWidth - innerWidth")
        assert wide <= 0
        pupil.context.close()
        row = page.locator(".hv-blind-row img")
        before = row.evaluate_all("all => all.map(each => each.src)")
        page.get_by_role("button", name="Ten others").click()
        expect(asked(page)).to_contain_text("Map 1 of 10")
        at_rest(page)  # the words come before the row
        after = row.evaluate_all("all => all.map(each => each.src)")
        assert len(after) == 10
        assert after != before
        assert "round" in parse_qs(urlsplit(page.url).query)["moved"][0]


@pytest.mark.promise
def test_the_lines_with_the_hook_come_first_on_the_chosen_network(
    page: Page, server: Server
) -> None:
    page.goto(f"{server}{HOOKS}&model=ShapesNet&sample=star")
    code = page.locator("pre.hv-script").first
    expect(code).to_contain_text('LAYER = "stem.first.conv"')
    expect(code).to_contain_text("register_forward_hook")
    expect(code).to_contain_text("handle.remove()")
    expect(code).not_to_contain_text("import")
    box = code.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] < 900
    folded = page.locator("details.hv-script-folded").first
    expect(folded.locator("pre")).to_be_hidden()
    folded.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(folded.locator("pre")).to_contain_text("class ShapesNet")

    last = star().trace.convs[-1].name
    page.locator("[class*=st-key-hv-live] [data-testid=stSelectbox]").click()
    page.get_by_role("option", name=last).click()
    expect(code).to_contain_text(f'LAYER = "{last}"')
    shape = hookviz.capture(star().model, star().model_input)[last].values.shape
    line = "{} put out {} maps of {} × {} cells".format(last, *shape)
    expect(page.locator(".hv-lesson-text", has_text=line)).to_be_visible()


def test_what_a_script_draws_is_in_sight_where_its_constants_are_moved(
    page: Page, server: Server
) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(f"{server}/?lesson=gradients-by-hooks&step=6&model=ShapesNet&sample=star")
    page.get_by_role("radio", name="2.0", exact=True).click()
    at_rest(page)
    chart = page.locator("[class*=st-key-hv-live] .area").first.bounding_box()
    code = page.locator("pre.hv-script").first.bounding_box()
    assert chart is not None
    assert code is not None
    assert chart["y"] + chart["height"] <= code["y"] < 720


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
