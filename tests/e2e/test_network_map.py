"""The whole network as a map: in the window, by keyboard and by hand, true to what it computes."""

import re

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Locator, Page, expect

from scripts.browsing import settled_box
from tests.e2e.screen import IS_MAP_PAINTED, SHAPESNET, new_context, pixels

STAGE = ".map-stage"
INSIDE, OUTSIDE = re.compile(r"inside=(?!%2F|/)"), re.compile(r"inside=(%2F|/)(&|$)")


def opened(page: Page, server: str, inside: str = "/") -> None:
    page.goto(f"{server}/{SHAPESNET}&inside={inside}")
    page.wait_for_function(IS_MAP_PAINTED)


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (390, 844)])
def test_the_whole_network_is_a_click_away_and_in_the_window_and_keys_lead_in_and_out(
    page: Page, server: str, width: int, height: int
) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.goto(f"{server}/{SHAPESNET}")
    page.get_by_role("button", name="Whole network").click()
    page.wait_for_function(IS_MAP_PAINTED)
    expect(page).to_have_url(OUTSIDE)
    stage, says = page.locator(STAGE), page.locator(".whole .part")
    box = settled_box(page, stage)
    assert box["y"] + box["height"] <= height
    painted = pixels(page.locator(".whole canvas"))
    assert len(np.unique(painted.reshape(-1, painted.shape[-1]), axis=0)) > 50
    stage.focus()
    page.keyboard.press("Enter")
    first = says.inner_text()
    page.keyboard.press("ArrowRight")
    expect(says).not_to_have_text(first)
    page.keyboard.press("Enter")
    expect(page).to_have_url(INSIDE)
    page.keyboard.press("Escape")
    expect(page).to_have_url(OUTSIDE)
    page.go_back()
    expect(page).to_have_url(INSIDE)
    page.go_back()
    page.go_back()
    expect(page.get_by_role("button", name="Whole network")).to_be_visible()
    expect(stage).to_be_hidden()


def over_a_block(page: Page) -> tuple[float, float]:
    """Move the pointer to a block, and return where that is."""
    box = settled_box(page, page.locator(STAGE))
    for down in np.linspace(0.2, 0.8, 13):
        for across in np.linspace(0.2, 0.8, 13):
            at = box["x"] + box["width"] * float(across), box["y"] + box["height"] * float(down)
            page.mouse.move(*at)
            if "ResidualStage" in page.locator(".whole .part").inner_text():
                return at
    raise AssertionError("no block is on the map")


def test_the_wheel_leads_in_and_back_leads_out(page: Page, server: str) -> None:
    opened(page, server)
    over_a_block(page)
    for _ in range(40):
        page.mouse.wheel(0, -200)
        if INSIDE.search(page.url):
            break
        page.wait_for_timeout(100)
    expect(page).to_have_url(INSIDE)
    page.go_back()
    expect(page).to_have_url(OUTSIDE)


def test_two_fingers_lead_in_on_a_phone(browser: Browser, server: str) -> None:
    context = new_context(
        browser, viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    opened(page, server)
    across, down = over_a_block(page)
    hands = context.new_cdp_session(page)

    def touch(kind: str, apart: float) -> None:
        points = [
            {"x": across, "y": down + side * apart, "id": at} for at, side in ((0, -1), (1, 1))
        ]
        hands.send(
            "Input.dispatchTouchEvent",
            {"type": kind, "touchPoints": [] if kind == "touchEnd" else points},
        )

    for _ in range(4):
        touch("touchStart", 20)
        for apart in range(30, 160, 10):
            touch("touchMove", apart)
        touch("touchEnd", 0)
    expect(page).to_have_url(INSIDE)
    assert page.evaluate("visualViewport.scale") == 1


def test_a_layer_s_strongest_channel_is_picked_up_and_the_pass_is_played_and_saved(
    page: Page, server: str, values: torch.Tensor
) -> None:
    opened(page, server, "stem.first.conv")
    strongest = int(values.flatten(1).amax(1).argmax())
    page.locator(STAGE).focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"channel={strongest}\b"))
    expect(page.get_by_role("heading", name=f"Channel {strongest}")).to_be_visible()
    opened(page, server)
    depth = page.get_by_role("slider", name="How far the pass")
    depth.fill("1")
    expect(page.locator(".whole .part")).to_contain_text("stem")
    page.get_by_role("button", name="Play").click()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    reached = int(depth.input_value())
    page.wait_for_timeout(400)
    assert int(depth.input_value()) == reached >= 1
    for kind, begins in (("PNG", b"\x89PNG"), ("SVG", b"<?xml")):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=kind, exact=True).click()
        assert waiting.value.suggested_filename == f"shapesnet-map.{kind.lower()}"
        assert waiting.value.path().read_bytes().startswith(begins)


def accented(canvas: Locator) -> int:
    """How many pixels have the accent's colour, more green than red."""
    levels = pixels(canvas).astype(int)
    return int((levels[..., 1] - levels[..., 0] > 60).sum())


@pytest.mark.promise
def test_a_class_lights_what_it_needs_and_a_way_is_followed(page: Page, server: str) -> None:
    opened(page, server, "/&sample=star")
    canvas, panel = page.locator(".whole canvas"), page.get_by_role("region", name="Why this class")
    classes = page.get_by_role("group", name="Why this class")
    star = classes.get_by_role("button", name=re.compile("^star"))
    before = accented(canvas)
    star.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"why=\d"))
    expect(panel.get_by_role("listitem")).to_have_count(3)
    expect(star).to_have_attribute("aria-pressed", "true")
    assert accented(canvas) > 3 * before > 0  # the bars of the classes alone
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    expect(page).not_to_have_url(re.compile("why="))
    expect(star).to_be_focused()
    page.go_back()
    expect(panel).to_be_visible()
    page.go_forward()
    expect(panel).to_be_hidden()

    stage = page.locator(STAGE)
    box = settled_box(page, stage)
    for across in np.arange(0.98, 0.7, -0.01):  # where the classes are: at the end
        stage.hover(position={"x": box["width"] * across, "y": box["height"] * 0.5})
        if "on-class" in (stage.get_attribute("class") or ""):
            break
    stage.click(position={"x": box["width"] * (across - 0.01), "y": box["height"] * 0.5})
    expect(panel.get_by_role("listitem")).to_have_count(3)
    step = panel.get_by_role("listitem").first.get_by_role("button").first
    layer, channel = step.inner_text().split()
    step.click()
    expect(page).to_have_url(re.compile(rf"channel={channel}\b"))
    expect(page).to_have_url(re.compile(rf"inside={re.escape(layer)}\b"))
    expect(page.get_by_role("heading", name=f"Channel {channel}")).to_be_visible()
    expect(panel).to_be_visible()
