"""The whole network in a page's file: from the disk with the network off, true to the library."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import hookviz
from hookviz.images.samples import samples
from tests.e2e.screen import IS_MAP_PAINTED, read_number
from tests.e2e.test_standalone import opened

pytestmark = pytest.mark.rest

STAR = next(each.path for each in samples() if each.name == "star")
LAYER, OTHER = "stage1.first.conv", "stage1.first.norm"


@pytest.fixture(scope="module")
def capture() -> hookviz.Capture:
    return hookviz.capture(hookviz.load_model("shapesnet"), STAR)


@pytest.fixture(scope="module")
def file(capture: hookviz.Capture, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("map") / "star.html"
    return hookviz.save_page(capture, path, image=STAR, whole_network=True)


def test_it_begins_on_the_map_and_leads_in_and_out(browser: Browser, file: Path) -> None:
    """The camera is that of the app's page: tests/e2e/test_network_map.py."""
    with opened(browser, file, {}) as page:
        page.wait_for_function(IS_MAP_PAINTED)
        assert "inside=%2F" in page.url
        expect(page.locator(".class-row")).to_be_hidden()  # of which a page has no answers
        page.locator(".map-stage").focus()
        page.keyboard.press("Enter")
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(r"inside=(?!%2F|/)"))
        page.keyboard.press("Escape")
        expect(page).to_have_url(re.compile(r"inside=(%2F|/)(&|$)"))
        page.get_by_role("button", name="All channels").click()
        expect(page.locator("figure .stage").first).to_be_visible()
        expect(page.locator(".map-stage")).to_be_hidden()


def test_a_channel_of_the_map_is_the_library_s_and_one_that_is_not_there_says_so(
    browser: Browser, file: Path, capture: hookviz.Capture
) -> None:
    values = capture[LAYER].values
    strongest = int(values.flatten(1).amax(1).argmax())
    with opened(browser, file, {"inside": LAYER}) as page:
        page.wait_for_function(IS_MAP_PAINTED)
        page.locator(".map-stage").focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name=f"Channel {strongest}")).to_be_visible()
        line = page.locator(".map-b output")
        expect(line).to_contain_text("≈")
        said = read_number(line.inner_text().rpartition("≈")[2])
        assert said == pytest.approx(float(values[strongest].max()), rel=1e-3)
        page.keyboard.press("Escape")
        expect(page.get_by_role("heading", name="Channel")).to_be_hidden()
        page.locator(".map-stage").click()  # the channel in the middle of the layer's
        expect(page).to_have_url(re.compile(r"channel=\d+"))
    with opened(browser, file, {"inside": OTHER}) as page:
        page.wait_for_function(IS_MAP_PAINTED)
        page.locator(".map-stage").focus()
        page.keyboard.press("Enter")
        expect(page.locator(".whole .part")).to_contain_text(
            f"strongest channels of {OTHER}: saved with --layers maps"
        )
        assert "channel=" not in page.url
