"""An atlas as a folder of pages: opened from the disk with the network off, by keyboard too."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, ViewportSize, expect

import hookviz
from hookviz.images.samples import samples

LAYERS = ["stem.first.conv", "stage3.second.conv"]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("atlas")
    model = hookviz.load_model("shapesnet")
    images = [each.path for each in samples()[:5]]
    atlas = hookviz.make_atlas(model, images, root / "a.atlas", layers=LAYERS)
    folder: Path = hookviz.save_atlas_pages(atlas, root / "my pages #1")
    return (folder / "index.html").as_uri()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    size: ViewportSize = {"width": 390, "height": 844}
    context = browser.new_context(viewport=size, offline=True, locale="en-US")
    shown = context.new_page()
    wrong: list[str] = []
    shown.on("console", lambda message: wrong.append(message.text))
    shown.on("pageerror", lambda error: wrong.append(str(error)))
    asked: list[str] = []
    shown.on("request", lambda request: asked.append(request.url))
    yield shown
    context.close()
    assert wrong == []
    assert all(url.startswith(("file:", "data:")) for url in asked)


def fits(page: Page) -> bool:
    """Whether nothing is cut off, on a phone and on a desk."""
    fit = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    fitting = []
    for width, height in ((1280, 720), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        fitting.append(page.evaluate(fit))
    return all(fitting)


def test_it_is_looked_through_from_the_disk(page: Page, index: str) -> None:
    page.goto(index)
    expect(page.get_by_role("heading", level=1)).to_have_text("What excites each channel")
    assert fits(page)
    page.get_by_role("link", name=LAYERS[1]).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(LAYERS[1])
    assert fits(page)
    patch = page.locator("#channel-0 img").first
    page.wait_for_function("() => document.querySelector('#channel-0 img').naturalWidth === 5 * 64")
    second = page.locator("#channel-0 img").nth(1)
    assert second.evaluate("(each) => getComputedStyle(each).objectPosition") == "-64px 0px"
    expect(patch).to_have_attribute("title", str(patch.get_attribute("alt")))
    page.get_by_role("navigation", name="To channel").get_by_role("link", name="64").click()
    expect(page.locator("#channel-64")).to_be_in_viewport()
    page.get_by_role("link", name="← Previous layer").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(LAYERS[0])
    page.get_by_role("link", name="All layers").click()
    expect(page.get_by_role("link", name=LAYERS[0])).to_be_visible()


def test_it_speaks_the_language_and_has_the_theme_that_are_picked(page: Page, index: str) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(index)
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(14, 17, 23)"
    page.get_by_role("button", name="Light").click()
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.get_by_role("combobox", name="Language").select_option("简体中文")
    page.get_by_role("link", name=LAYERS[1]).click()
    expect(page.locator("#channel-7 h2")).to_have_text("通道 7")
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    page.reload()
    expect(page.locator("#channel-7 h2")).to_have_text("通道 7")


def test_all_of_it_is_reached_by_keyboard(page: Page, index: str) -> None:
    page.goto(index)
    focused = "document.activeElement.textContent.slice(0, 40)"
    for _ in range(4):
        page.keyboard.press("Tab")
        if LAYERS[0] in page.evaluate(focused):
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(LAYERS[0])
    names = []
    for _ in range(5):
        page.keyboard.press("Tab")
        names.append(page.evaluate(focused))
    assert names[:2] == ["All layers", "Next layer →"]
    assert names[-1] == "Channel 0"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_wrong_for_those_who_can_not_see_it(page: Page, index: str, theme: str) -> None:
    page.goto(f"{index}?theme={theme}")
    for _ in range(2):
        violations = Axe().run(page).response["violations"]
        assert [each["id"] for each in violations] == []
        page.get_by_role("link", name=LAYERS[0]).or_(
            page.get_by_role("link", name="All layers")
        ).first.click()


def test_the_reader_s_own_language_is_spoken_and_without_scripts_english(
    browser: Browser, index: str
) -> None:
    for has_scripts, title, channel in (
        (True, "什么激活每个通道", "通道 7"),
        (False, "What excites each channel", "Channel 7"),
    ):
        context = browser.new_context(java_script_enabled=has_scripts, locale="zh-CN", offline=True)
        page = context.new_page()
        page.goto(index)
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
        page.get_by_role("link", name=LAYERS[1]).click()
        expect(page.locator("#channel-7 h2")).to_have_text(channel)
        expect(page.locator("#channel-7 img").first).to_be_visible()
        context.close()
