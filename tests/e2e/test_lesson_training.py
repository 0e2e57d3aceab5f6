"""A small network is trained on the screen, stopped, and scrubbed through by keys."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from hookviz.lessons.small_network import EVERY, STEPS
from scripts.servers import Server
from tests.e2e.screen import at_rest, new_context, without_errors

LONG = 120_000  # milliseconds in which a training ends on a busy machine


def kernels(page: Page) -> str:
    """What the canvases of the first kernels show."""
    return str(
        page.locator(".tr-kernels canvas").evaluate_all(
            "all => all.map(each => each.toDataURL()).join()"
        )
    )


@pytest.mark.by_day
def test_it_is_trained_stopped_and_scrubbed_and_another_screen_has_it(
    server: Server, browser: Browser
) -> None:
    size = {"width": 1280, "height": 720}
    first, other = (new_context(browser, viewport=size).new_page() for _ in range(2))
    drawn, text = first.locator(".tr-all"), first.locator("#root")
    with without_errors(server):
        first.goto(f"{server}/?lesson=how-weights-come-to-be&step=2")
        expect(first.locator(".tr-kernels canvas")).to_have_count(8)
        begun = kernels(first)
        first.get_by_role("button", name=re.compile("Train$")).click()
        # It changes while it trains, and a click stops it where it is.
        expect(drawn).to_have_attribute("data-step", re.compile("[1-9]"), timeout=LONG)
        first.get_by_role("button", name=re.compile("Stop$")).click()
        expect(first.get_by_role("button", name=re.compile("Go on$"))).to_be_visible()
        at_rest(first)  # it trained on until the click came
        stopped = int(drawn.get_attribute("data-step") or 0)
        assert 0 < stopped < STEPS
        trained = kernels(first)
        assert trained != begun

        # Back to the beginning by keys: the noise is there again, and the text says that step.
        first.locator(".tr-step").focus()
        first.keyboard.press("Home")
        expect(drawn).to_have_attribute("data-step", "0")
        assert kernels(first) == begun
        first.keyboard.press("ArrowRight")
        expect(drawn).to_have_attribute("data-step", str(EVERY))
        expect(text).to_contain_text(f"After {EVERY:,} of {STEPS:,} steps")
        said = first.locator(".tr-loss").inner_text()
        expect(text).to_contain_text(f"the loss is {said}, from")
        expect(first).to_have_url(re.compile("moved=.*at"))

        # By the link, on another screen, it is trained as far.
        other.goto(first.url)
        expect(other.locator(".tr-all")).to_have_attribute("data-step", str(EVERY))
        other.locator(".tr-step").focus()
        other.keyboard.press("End")
        expect(other.locator(".tr-all")).to_have_attribute("data-step", str(stopped))
        assert kernels(other) == trained
        other.locator(".tr-kernels button").nth(3).click()
        expect(other.locator(".tr-maps figcaption").nth(1)).to_have_text("conv1, channel 3")
        expect(other).to_have_url(re.compile("kernel"))
