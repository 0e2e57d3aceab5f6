"""A page that runs its network: from the disk, with the network off, its numbers are PyTorch's."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import Browser, Page, expect

import hookviz
from hookviz.images.samples import samples
from hookviz.wording import percent
from scripts.browsing import tiles
from tests.e2e.screen import read_number

CAT, CUP = [each.path for each in samples() if each.kind == "photo"][:2]
BAD = "<img src=x onerror=window.bad=1>.png"
_NEAR = 1e-4  # of a value: as far as a page may be from PyTorch, of its layer's largest
_VIOLATIONS = """async () => (await axe.run({resultTypes: ["violations"]})).violations
  .map(({id, nodes}) => [id, nodes.map(({html}) => html)])"""


@pytest.fixture(scope="session")
def file(model: hookviz.Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("live") / "shapes.html"
    return hookviz.save_live_page(model, path, samples=[CAT, CUP])


@contextmanager
def opened(browser: Browser, file: Path, link: Mapping[str, Any], **options: Any) -> Iterator[Page]:
    """The page from the disk with the network off, which asks for nothing from elsewhere."""
    size = {"width": 1440, "height": 900}
    context = browser.new_context(**{"viewport": size, "reduced_motion": "reduce", **options})
    context.set_offline(True)
    page = context.new_page()
    asked, wrong = list[str](), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.goto(f"{file.as_uri()}?{urlencode(link)}")
    painted(page)
    yield page
    assert {url.partition(":")[0] for url in asked} <= {"file", "data", "blob"}
    assert wrong == []
    context.close()


def painted(page: Page) -> None:
    """Wait until the tiles are those that are asked for."""
    page.locator(".main:not(.stale) .picture[data-key]").wait_for(state="attached")


def has_the_numbers_of(page: Page, capture: hookviz.Capture, layer: str, cell: str) -> None:
    """The value of a cell, its sum and the classes on the screen are those of a capture."""
    channel, (row, column) = 3, [int(each) for each in cell.split(",")[:2]]
    values = capture[layer].values
    line = page.locator(".map-b output")
    expect(line).to_contain_text(f"row {row}, column {column} · ")
    exact, most = values[channel, row, column].item(), values.abs().max().item()
    expect(page.locator(".why:not(.stale) .sum")).to_contain_text("as the network computed")
    shown = read_number(line.inner_text().rpartition("·")[2])
    assert shown == pytest.approx(exact, rel=_NEAR, abs=_NEAR * most)
    likeliest = capture.likeliest(5)
    names = [capture.categories[at] for at, _ in likeliest]
    expect(page.locator(".classes .label")).to_have_text(names)
    shares = page.locator(".classes .share")
    expect(shares).to_have_text([percent(share) for _, share in likeliest])


@pytest.mark.promise
def test_every_number_is_the_library_s_for_its_photographs_and_for_one_s_own(
    browser: Browser, model: hookviz.Model, file: Path, tmp_path: Path
) -> None:
    first, deep = "stem.first.conv", "stage3.second.conv"
    cell = "20,31,64,64"
    link = {"layer": first, "channel": 3, "cell": cell}
    with opened(browser, file, link) as page:
        has_the_numbers_of(page, hookviz.capture(model, CAT), first, cell)
        # another sample: the same view of it
        page.locator(".pictures .thumb").nth(1).click()
        expect(page.locator(".titles b")).to_have_text("coffee.jpg")
        has_the_numbers_of(page, hookviz.capture(model, CUP), first, cell)
        expect(page).to_have_url(re.compile("sample=1"))
        page.go_back()
        expect(page.locator(".titles b")).to_have_text("cat.jpg")
        # one's own, wide and not square, whose name is markup
        own = tmp_path / BAD
        with Image.open(CUP) as photo:
            photo.convert("RGB").resize((517, 211)).save(own)
        page.locator(".pictures input").set_input_files(own)
        expect(page.locator(".titles b")).to_have_text(BAD)
        capture = hookviz.capture(model, own)
        has_the_numbers_of(page, capture, first, cell)
        rows, columns = capture[deep].values.shape[1:]
        page.goto(f"{file.as_uri()}?{urlencode({'layer': deep, 'channel': 3, 'cell': '1,2'})}")
        painted(page)
        has_the_numbers_of(page, hookviz.capture(model, CAT), deep, f"1,2,{rows},{columns}")
        assert page.evaluate("window.bad") is None


_DROP = """async ([bytes, name]) => {
  const data = new DataTransfer();
  data.items.add(new File([Uint8Array.from(bytes)], name, {type: "image/png"}));
  data.items.add(new File([Uint8Array.from(bytes)], "second.png", {type: "image/png"}));
  const all = {dataTransfer: data, bubbles: true, cancelable: true};
  document.body.dispatchEvent(new DragEvent("drop", all));
}"""


def test_what_is_dropped_is_shown_and_what_is_no_image_is_said(
    browser: Browser, file: Path, tmp_path: Path
) -> None:
    with opened(browser, file, {}) as page:
        small = tmp_path / "small.png"
        Image.new("RGB", (3, 200), (200, 40, 90)).save(small)
        page.evaluate(_DROP, [list(small.read_bytes()), "small.png"])
        expect(page.locator(".titles b")).to_have_text("small.png")
        said = page.locator(".pictures [role=status]")
        expect(said).to_have_text("Of several images the first is shown: small.png.")
        page.evaluate(_DROP, [[1, 2, 3], "broken.png"])
        expect(said).to_contain_text("broken.png can't be shown: choose a JPEG")
        expect(page.locator(".titles b")).to_have_text("small.png")


def test_a_scale_and_a_step_after_the_layer_are_computed_here(browser: Browser, file: Path) -> None:
    link = {"layer": "stem.first.conv", "after": "ReLU", "scale": "channel", "lang": "zh-CN"}
    with opened(browser, file, link) as page:
        expect(page.get_by_role("radio", name="ReLU")).to_be_checked()
        expect(page.locator("figure .head")).to_contain_text("最低")
        expect(page.locator(".pictures")).to_contain_text("打开图像")
        expect(page.locator("footer")).to_contain_text("ONNX Runtime Web")
        assert tiles(page).columns > 1


@pytest.mark.parametrize(("width", "height", "scheme"), [(720, 450, "light"), (390, 844, "dark")])
def test_nothing_is_cut_off_and_axe_finds_nothing(
    browser: Browser, file: Path, width: int, height: int, scheme: str
) -> None:
    """A window of 1440×900 at 200 % has 720×450 pixels of a page."""
    looks = {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
    for link in ({}, {"layer": "stage1.first.conv", "channel": 3}):
        with opened(browser, file, link, **looks) as page:
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.evaluate(Axe().axe_script)
            assert page.evaluate(_VIOLATIONS) == []


def test_by_keyboard_alone_one_gets_to_the_second_photograph(browser: Browser, file: Path) -> None:
    with opened(browser, file, {}) as page:
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.locator(".titles b")).to_have_text("coffee.jpg")
        expect(page.locator(".thumb").nth(1)).to_have_attribute("aria-pressed", "true")


def test_the_camera_s_frames_go_through_and_can_be_stopped(browser: Browser, file: Path) -> None:
    with opened(browser, file, {}, permissions=["camera"]) as page:
        button = page.get_by_role("button", name="Camera")
        button.click()
        expect(page.locator(".titles b")).to_have_text("Camera")
        key = page.locator(".picture[data-key]").get_attribute("data-key")
        expect(page.locator(".picture[data-key]")).not_to_have_attribute("data-key", str(key))
        page.get_by_role("button", name="Stop the camera").click()
        expect(button).to_be_visible()


def test_a_file_that_is_not_whole_says_so(page: Page, file: Path, tmp_path: Path) -> None:
    html = file.read_text("utf-8")
    cut = tmp_path / "cut.html"
    block = '<script type="application/octet-stream" id="weights">'
    cut.write_text(html.replace(block, f"{block}AAAA", 1), "utf-8")
    page.goto(cut.as_uri())
    expect(page.get_by_role("alert")).to_contain_text("This page could not be shown")
