"""A page whose messages take long on their way."""

import re

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from hookviz.images.samples import samples
from scripts.browsing import wait_for_grid
from tests.e2e.screen import SHAPESNET, at_rest, open_model_settings
from tests.e2e.test_live import LIVE


def _kind(message: str | bytes) -> str | None:
    """Return what a message of the server is about."""
    if isinstance(message, str):
        return None
    kind: str | None = ForwardMsg.FromString(message).WhichOneof("type")
    return kind


class Line:
    """What the server says to a page, held back while it is slow."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._routes: list[WebSocketRoute] = []
        self._held: list[str | bytes] = []
        self._is_slow = False
        self._first = ""
        page.route_web_socket(re.compile("/_stcore/stream"), self._pass_on)

    def _pass_on(self, route: WebSocketRoute) -> None:
        self._routes.append(route)
        route.connect_to_server().on_message(self._receive)

    def _receive(self, message: str | bytes) -> None:
        if self._is_slow and (self._held or self._first in ("", _kind(message))):
            self._held.append(message)
        else:
            self._routes[-1].send(message)

    def hold_back(self, first: str = "") -> None:
        """Hold back all messages, or those from the first one of a kind on."""
        self._is_slow, self._first = True, first

    def let_go(self) -> None:
        self._is_slow = False
        for message in self._held:
            self._routes[-1].send(message)
        self._held.clear()

    def wait_for(self, kind: str, count: int) -> None:
        """Wait until so many messages of a kind are held back."""
        for _ in range(2000):
            if [_kind(each) for each in self._held].count(kind) >= count:
                return
            self._page.wait_for_timeout(10)
        raise AssertionError(f"there were no {count} messages {kind}")


@pytest.fixture
def line(page: Page) -> Line:
    return Line(page)


def test_a_second_choice_before_the_first_is_seen_is_drawn(
    page: Page, server: str, line: Line
) -> None:
    """At the end of the first run the page drops what it had when it asked for the second."""
    titles = [sample.title for sample in samples()]
    page.goto(f"{server}/{SHAPESNET}")
    first = wait_for_grid(page)
    page.get_by_role("radio", name=titles[1]).click()
    grid = wait_for_grid(page, first)
    at_rest(page)
    page.wait_for_timeout(1200)
    line.hold_back()
    page.get_by_role("radio", name=titles[2]).click()
    line.wait_for("script_finished", 1)
    page.get_by_role("radio", name=titles[0]).click()
    line.wait_for("script_finished", 2)
    line.let_go()
    assert wait_for_grid(page, grid) == first
    expect(page.locator("[data-stale=true]")).to_have_count(0)


def test_what_is_chosen_after_a_run_was_asked_for_outlasts_its_begin(
    page: Page, server: str, line: Line
) -> None:
    page.goto(f"{server}/{SHAPESNET}")
    wait_for_grid(page)
    at_rest(page)
    # A run for which the page asked before begins, and writes the link as it knows it.
    line.hold_back()
    page.get_by_role("radio", name=samples()[1].title).click()
    line.wait_for("page_info_changed", 1)
    page.evaluate("window.hookvizWrite({channel: '5'}, 'push')")
    line.let_go()
    page.wait_for_url("**sample=**")
    at_rest(page)
    assert "channel=5" in page.url
    open_model_settings(page)
    page.get_by_role("radio", name="random").click()  # a run that knows it
    page.wait_for_url("**weights=random**")
    at_rest(page)
    assert "channel=5" in page.url


def test_the_newest_of_two_choices_holds_though_runs_follow_upon_each_other(
    page: Page, server: str, line: Line
) -> None:
    """The first is written by the browser, the second by the server in a run that knows both."""
    page.goto(f"{server}/{LIVE}&mirror=1&channel=3")
    page.locator(".live.mirrors[data-mirrored]").wait_for()
    at_rest(page)
    line.hold_back("delta")
    page.keyboard.press("ArrowRight")
    line.wait_for("delta", 1)
    page.wait_for_function("() => document.querySelector('[data-test-script-state=running]')")
    page.keyboard.press("n")
    page.wait_for_url("**layer=stage1.first.conv**")
    page.locator(".live .layer select").select_option("stage2.first.conv")
    line.wait_for("script_finished", 2)
    line.let_go()
    page.wait_for_url("**layer=stage2.first.conv**")
    at_rest(page)
    assert "layer=stage2.first.conv" in page.url


def test_a_layer_on_its_way_stays_chosen_over_a_lens_while_an_earlier_one_arrives(
    page: Page, server: str, line: Line
) -> None:
    """Else the next key would lead on from the earlier one, and one would be lost."""
    page.goto(f"{server}/{SHAPESNET}&lens=kernels&layer=stem.first.conv")
    layer = page.get_by_role("combobox", name="Layer")
    layer.wait_for()
    at_rest(page)
    line.hold_back()
    page.keyboard.press("n")
    line.wait_for("script_finished", 1)
    page.keyboard.press("n")
    expect(layer).to_have_value(re.compile("stage1.second.conv$"))
    layer.evaluate(
        """(list) => {
          window.shown = [];
          const look = () => {
            if (window.shown.at(-1) !== list.value) window.shown.push(list.value);
            requestAnimationFrame(look);
          };
          look();
        }"""
    )
    line.let_go()
    page.wait_for_timeout(500)
    at_rest(page)
    assert page.evaluate("window.shown") == [layer.input_value()]
    assert "layer=stage1.second.conv" in page.url


@pytest.mark.sweep("by day of any step: the lessons by keyboard")
def test_the_heading_of_a_step_that_takes_long_to_compute_gets_the_focus(
    page: Page, server: str, line: Line
) -> None:
    page.goto(f"{server}/?lesson=image")
    title = page.locator(".hv-step-title")
    expect(title).to_have_attribute("data-step", "image 1")
    at_rest(page)
    line.hold_back("delta")
    page.keyboard.press("ArrowRight")
    line.wait_for("delta", 1)
    page.wait_for_timeout(3500)
    assert page.evaluate("document.activeElement === document.body")
    line.let_go()
    expect(title).to_have_attribute("data-step", "image 2")
    expect(title).to_be_focused()


_CLICK = """element => {
  for (const kind of ["pointerdown", "mousedown", "pointerup", "mouseup"]) {
    element.dispatchEvent(new MouseEvent(kind, { bubbles: true, composed: true }));
  }
  element.click();
}"""


def test_a_click_that_closes_a_menu_is_drawn_too(page: Page, server: str) -> None:
    """A busy browser comes to both within one task."""
    page.goto(f"{server}/{SHAPESNET}")
    before = wait_for_grid(page)
    at_rest(page)
    page.get_by_role("button", name="More", exact=True).click()
    expect(page.get_by_test_id("stPopoverBody")).to_be_visible()
    at_rest(page)
    page.locator(".st-key-weights").get_by_role(
        "radio", name="random", include_hidden=True
    ).evaluate(_CLICK)
    expect(page.get_by_test_id("stPopoverBody")).to_have_count(0)
    page.wait_for_url("**weights=random**")
    at_rest(page)
    assert wait_for_grid(page) != before
