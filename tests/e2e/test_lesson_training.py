"""A small network is trained on the screen, stopped, gone on with, played and scrubbed through.

And the gradient on its way back, clamped and not; one step of training. By pointer and by keys.
"""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from hookviz.lessons.gradient_maps import layers_on_the_way, way_back
from hookviz.lessons.parts.sgd_step import PART as SGD_STEP
from hookviz.lessons.scores import own_scores
from hookviz.lessons.small_network import EVERY, STEPS
from hookviz.wording import number
from scripts.servers import ROOT, Server, serve
from tests.e2e.screen import at_rest, new_context, without_errors
from tests.lessons.parts.scenes import star, with_defaults

LESSON = "/?lesson=how-weights-come-to-be"
GRADIENTS = "/?lesson=gradients-by-hooks&model=ShapesNet&sample=star"
LONG = 120_000  # milliseconds in which a training ends on a busy machine


@pytest.fixture(scope="module")
def fresh() -> Iterator[Server]:
    """A server of its own, on which nobody has trained yet."""
    with serve({"PYTHONPATH": str(ROOT)}) as served:
        yield served


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = new_context(browser, viewport={"width": 1280, "height": 720})
    yield context.new_page()
    context.close()


def step(page: Page) -> int:
    return int(page.locator(".tr-all").get_attribute("data-step") or 0)


def kernels(page: Page) -> str:
    """What the canvases of the first kernels show."""
    return str(
        page.locator(".tr-kernels canvas").evaluate_all(
            "all => all.map(each => each.toDataURL()).join()"
        )
    )


def button(page: Page, name: str):  # type: ignore[no-untyped-def]
    return page.get_by_role("button", name=re.compile(f"{name}$"))


def test_it_is_trained_and_stopped(fresh: Server, page: Page) -> None:
    with without_errors(fresh):
        trained_and_stopped(fresh, page)


def trained_and_stopped(fresh: Server, page: Page) -> tuple[Locator, str]:
    """Train for a while; returns the page's text, and what it began with."""
    page.goto(f"{fresh}{LESSON}&step=2")
    text = page.locator("#root")
    expect(text).to_contain_text("What comes of it will stand here.")
    expect(page.locator(".tr-kernels canvas")).to_have_count(8)
    begun = kernels(page)
    button(page, "Train").click()
    # It changes while it trains, and a click stops it where it is.
    expect(page.locator(".tr-all")).to_have_attribute(
        "data-step", re.compile("[1-9]"), timeout=LONG
    )
    button(page, "Stop").click()
    expect(button(page, "Go on")).to_be_visible()
    at_rest(page)  # it trained on until the click came
    stopped = step(page)
    assert 0 < stopped < STEPS
    assert kernels(page) != begun
    expect(text).to_contain_text(f"After {stopped:,} of {STEPS:,} steps")
    return text, begun


@pytest.mark.sweep("by day it is stopped, above; tests/lessons/test_small_network.py trains it")
def test_it_is_trained_scrubbed_and_kept(fresh: Server, page: Page) -> None:
    with without_errors(fresh):
        text, begun = trained_and_stopped(fresh, page)
        button(page, "Go on").click()
        expect(page.locator(".tr-all")).to_have_attribute("data-over", "true", timeout=LONG)
        expect(page.locator(".tr-all")).to_have_attribute("data-step", str(STEPS))
        expect(text).to_contain_text(re.compile(rf"After {STEPS:,} of {STEPS:,} steps"))
        trained = kernels(page)

        # Back to the beginning by keys: the noise is there again, and the text says that step.
        slider = page.locator(".tr-step")
        slider.focus()
        page.keyboard.press("Home")
        expect(page.locator(".tr-all")).to_have_attribute("data-step", "0")
        assert kernels(page) == begun
        page.keyboard.press("ArrowRight")
        expect(page.locator(".tr-all")).to_have_attribute("data-step", str(EVERY))
        expect(text).to_contain_text(f"After {EVERY:,} of {STEPS:,} steps")
        said = page.locator(".tr-loss").inner_text()
        expect(text).to_contain_text(f"the loss is {said}, from")
        expect(page).to_have_url(re.compile("moved=.*at"))

        # Loaded again it is where it was, and trained.
        page.reload()
        expect(page.locator(".tr-all")).to_have_attribute("data-step", str(EVERY))
        expect(page.locator(".tr-all")).to_have_attribute("data-over", "true")

        # It plays to the end.
        button(page, "Play").click()
        expect(page.locator(".tr-all")).to_have_attribute("data-step", str(STEPS), timeout=30_000)
        assert kernels(page) == trained

        # A kernel that is picked shows its map.
        page.locator(".tr-kernels button").nth(3).click()
        expect(page.locator(".tr-maps figcaption").nth(1)).to_have_text("conv1, channel 3")
        expect(page).to_have_url(re.compile("kernel%3D3|kernel=3|kernel.*3"))


@pytest.mark.sweep("by day tests/lessons/test_trainings.py")
def test_what_one_screen_trains_another_has(fresh: Server, browser: Browser) -> None:
    """Two who press Train for the same network share it, and both see its end."""
    contexts = [new_context(browser) for _ in range(2)]
    pages = [context.new_page() for context in contexts]
    for page in pages:
        page.goto(f"{fresh}{LESSON}&step=5")
        page.get_by_role("button", name=re.compile("Others, of the same kinds")).click()
        expect(button(page, "Train")).to_be_visible()
    for page in pages:
        button(page, "Train").click()
    for page in pages:
        expect(page.locator(".tr-all")).to_have_attribute("data-over", "true", timeout=2 * LONG)
        expect(page.locator(".tr-all")).to_have_attribute("data-step", str(STEPS))
    assert kernels(pages[0]) == kernels(pages[1])
    for context in contexts:
        context.close()


def test_the_gradient_is_shown_as_it_is_and_clamped(fresh: Server, page: Page) -> None:
    scene = star()
    best = own_scores(scene).best
    plain = way_back(scene, best)
    at = layers_on_the_way(scene)[-2].name
    came = next(each.came for each in plain if each.layer == at)
    page.goto(f"{fresh}{GRADIENTS}")
    places = page.locator("ol.hv-way-back li")
    expect(places).to_have_count(len(plain))
    for place, passed in zip(places.all(), plain, strict=True):
        expect(place).to_contain_text(f"length {number(passed.norm)}")
    page.get_by_role("radio", name="clamped").click()
    clamped = way_back(scene, best, at, came / 10)
    expect(page.locator("ol.hv-way-back li.hooked")).to_contain_text(at)
    for place, passed in zip(places.all(), clamped, strict=True):
        expect(place).to_contain_text(f"length {number(passed.norm)}")
    # The limit by keys, in percent of what comes.
    page.get_by_role("slider", name=re.compile("Limit")).focus()
    page.keyboard.press("ArrowRight")
    narrower = way_back(scene, best, at, came * 5 / 100)
    expect(places.last).to_contain_text(f"length {number(narrower[-1].norm)}")
    expect(page).to_have_url(re.compile("limit"))


def test_one_step_says_in_the_text_what_the_panel_says(fresh: Server, page: Page) -> None:
    page.goto(f"{fresh}{GRADIENTS}&step=4")
    for rate in ("0.0001", "0.1"):
        page.get_by_role("radio", name=rate, exact=True).click()
        facts = SGD_STEP.facts(star(), with_defaults(SGD_STEP, rate=rate))
        words = page.locator(".hv-lesson-text").first
        expect(words).to_contain_text(f"goes from {facts['before']} to {facts['after']}")
        expect(words).to_contain_text(f"{facts['kept']} of {facts['others']} other pictures")
        panel = page.get_by_test_id("stMetricValue").first
        expect(panel).to_have_text(f"{facts['before']} → {facts['after']}")
