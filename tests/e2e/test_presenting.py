"""The presenter's view in a browser: its keys, its looks, its slides and the link for the class."""

import io
import json
from pathlib import Path
from urllib.parse import urlencode

import pytest
import zxingcpp
from PIL import Image
from playwright.sync_api import Browser, Locator, Page, expect

from hookviz.capturing.engine import capture
from hookviz.images.samples import samples
from hookviz.types import Model
from scripts.browsing import settled_boxes, tile_centre, tiles, wait_for_grid
from tests.e2e.screen import SHAPESNET, at_rest, compare, link_of, new_context
from tests.e2e.test_accessibility import serious

# Text smaller than 20 pixels that can be seen, in shadow roots as well.
SMALL = """() => {
  const found = [];
  const look = (root) => {
    for (const part of root.querySelectorAll("*:not(script, style)")) {
      if (part.shadowRoot) look(part.shadowRoot);
      const written = [...part.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
      const { width, height } = part.getBoundingClientRect();
      const seen = width > 1 && height > 1 && part.checkVisibility({ visibilityProperty: true });
      const size = parseFloat(getComputedStyle(part).fontSize);
      if (written && seen && size < 20) found.push(`${size} px: ${part.textContent.trim()}`);
    }
  };
  look(document);
  return found;
}"""


def button(page: Page, name: str) -> Locator:
    return page.get_by_role("button", name=name, exact=True)


def opened(page: Page, address: str) -> bytes:
    page.goto(address)
    grid = wait_for_grid(page)
    at_rest(page)
    # nothing of the page is loaded anew while this stands
    page.evaluate("window.untouched = true")
    return grid


def layer(page: Page) -> str:
    value = page.get_by_role("combobox", name="Layer").input_value()
    return value.rpartition(" · ")[2]


@pytest.fixture
def class_page(browser: Browser) -> Page:
    """Another browser, of somebody in the class."""
    context = new_context(browser, viewport={"width": 390, "height": 844})
    context.set_default_timeout(30_000)
    return context.new_page()


@pytest.mark.promise
def test_keys_of_a_keyboard_and_of_a_remote(page: Page, server: str, model: Model) -> None:
    conv = list(capture(model, samples()[0].path))
    usual = opened(page, f"{server}/{SHAPESNET}")
    side = page.get_by_test_id("stSidebar")
    page.keyboard.press("f")
    page.wait_for_url("**present=1**")
    large = wait_for_grid(page, usual)  # in the colours for a projector
    expect(side).to_be_hidden()
    at_rest(page)
    for key, at in (("PageDown", 1), ("n", 2), ("PageDown", 3), ("p", 2), ("PageUp", 1)):
        page.keyboard.press(key)
        page.wait_for_url(f"**layer={conv[at]}**")
        at_rest(page)
        assert layer(page) == conv[at], key
    page.keyboard.press("PageUp")
    page.wait_for_url(f"**layer={conv[0]}**")
    at_rest(page)
    assert wait_for_grid(page) == large

    ring = page.locator(".hv-ring")
    expect(ring).to_be_hidden()
    page.keyboard.press("r")
    page.mouse.move(700, 300)
    box = ring.bounding_box()
    assert box is not None
    assert (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) == (700, 300)
    page.keyboard.press("r")
    expect(ring).to_be_hidden()
    page.keyboard.press("r")

    page.keyboard.press("Escape")
    page.wait_for_function("() => !location.search.includes('present')")
    assert wait_for_grid(page, large) == usual
    expect(side).to_be_visible()
    expect(ring).to_be_hidden()
    before = page.url
    for key in ("PageDown", "r", "q", "Escape"):  # they are the page's own again
        page.keyboard.press(key)
    at_rest(page)
    assert page.url == before
    expect(page.get_by_role("dialog")).to_have_count(0)
    search = page.get_by_role("searchbox", name="Find a layer")
    search.press_sequentially("first")  # a letter that is typed is a letter
    assert page.url == before
    search.fill("")
    page.go_back()
    page.wait_for_url("**present=1**")
    assert wait_for_grid(page, usual) == large
    assert page.evaluate("window.untouched")


@pytest.mark.sweep("by day either alone: tests/e2e/test_compare.py and the tests here")
def test_where_two_views_are_compared_f_flips_and_shift_f_presents(page: Page, server: str) -> None:
    opened(page, f"{server}/{SHAPESNET}")
    compare(page)
    page.wait_for_url("**a=**")
    at_rest(page)
    stage = page.locator("figure .stage")
    page.locator("body").press("Escape")
    for presents in (False, True):
        page.keyboard.down("f")
        expect(stage).to_have_attribute("data-face", "a ")
        page.keyboard.up("f")
        expect(stage).to_have_attribute("data-face", "b ")
        assert ("present" in link_of(page)) == presents
        page.keyboard.press("Shift+F")
        page.wait_for_function(
            "presents => location.search.includes('present') === presents", arg=not presents
        )
        at_rest(page)


def test_it_is_large_and_clear_at_every_size_and_axe_finds_nothing(page: Page, server: str) -> None:
    """In a theme at each size, by turns."""
    for size, scheme, ground, view in (
        ((1440, 900), "light", "rgb(255, 255, 255)", "channel=3&origin=Walk"),
        ((1280, 720), "light", "rgb(255, 255, 255)", "lens=grad-cam"),
        ((390, 844), "dark", "rgb(0, 0, 0)", "channel=3&sort=mean"),
    ):
        page.set_viewport_size({"width": size[0], "height": size[1]})
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.goto(f"{server}/{SHAPESNET}&{view}&present=1")
        expect(page.locator(".hv-classes")).to_be_visible()
        page.get_by_role("toolbar", name="Presenting").wait_for()
        at_rest(page)
        assert page.evaluate(SMALL) == [], view
        expect(page.locator(".stApp")).to_have_css("background-color", ground)
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
        assert serious(page) == [], view
    page.keyboard.press("l")
    button(page, "Add this view").click()
    assert serious(page) == []
    button(page, "Link and QR code for the class (Q)").last.click()
    page.get_by_role("img", name="QR code").wait_for()
    assert serious(page) == []


def test_on_a_projector_the_result_comes_first(page: Page, server: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    usual = opened(page, f"{server}/{SHAPESNET}&layer=stage2.first.conv")
    present = page.locator(".corner").get_by_role("button", name="Present this view (F)")
    expect(present).to_be_visible()
    page.keyboard.press("f")
    wait_for_grid(page, usual)
    bar = page.get_by_role("toolbar", name="Presenting")
    expect(page.get_by_role("button", name="View", exact=True)).to_be_hidden()
    at_rest(page)
    lies, [below] = tiles(page), settled_boxes(page, bar)
    last = lies.box(95)
    assert last["y"] + last["height"] <= below["y"]
    assert lies.left + lies.columns * (lies.wide + lies.gap) > 0.9 * 1280
    page.mouse.click(*tile_centre(page, 5))
    expect(page.get_by_role("heading", name="Channel 5")).to_be_visible()
    at_rest(page)
    beside = page.locator(".inspector-place")
    assert beside.evaluate("place => place.scrollWidth <= place.clientWidth")  # nothing is cut
    page.goto(f"{server}/{SHAPESNET}&lens=grad-cam&present=1")
    expect(bar).to_contain_text("N: next layer")
    at_rest(page)
    pictures = page.locator(".panel:is(.image, .grid) .body")
    expect(pictures).to_have_count(3)
    for each in settled_boxes(page, *pictures.all()):
        assert each["y"] + each["height"] <= below["y"]  # each is whole
        assert each["height"] > 100
    page.goto(f"{server}/{SHAPESNET}&lesson=image")
    following = page.locator(".st-key-hv-next button")
    corner, before = settled_boxes(page, page.locator(".corner"), following)
    assert before["x"] + before["width"] <= corner["x"]  # none lies on the other


# ── slides ─────────────────────────────────────────────────────────────────────────────────────


def titles(page: Page) -> list[str]:
    fields = page.get_by_role("textbox", name="Title of slide")
    return [field.input_value() for field in fields.all()]


def test_slides_are_kept_put_in_order_and_shown(
    page: Page, server: str, class_page: Page, tmp_path: Path
) -> None:
    for view, title in (
        ("lens=saliency&layer=stage1.first.conv", "Which pixels decide? · ShapesNet"),
        ("lesson=convolution&step=2", "Lesson 2: What a convolution does · Predict"),
        ("lang=zh-CN&layer=stage1.first.conv&channel=3", "stage1.first.conv 的通道 3 · ShapesNet"),
    ):
        page.goto(f"{server}/{SHAPESNET}&{view}")
        at_rest(page)
        page.evaluate("window.hookvizSlides.add()")
        assert page.evaluate("window.hookvizSlides.list()")[-1]["title"] == title
    page.evaluate("localStorage.removeItem('hookviz-slides')")
    kept = []
    for view in ("", "&layer=stage1.first.conv", "&layer=stage1.second.conv&channel=5"):
        opened(page, f"{server}/{SHAPESNET}{view}")
        kept.append(link_of(page))
        page.keyboard.press("l")
        button(page, "Add this view").click()
    names = titles(page)
    assert names == [
        "All channels · ShapesNet",
        "All channels of stage1.first.conv · ShapesNet",
        "Channel 5 of stage1.second.conv · ShapesNet",
    ]
    button(page, "Move slide 3 up").click()
    assert titles(page) == [names[0], names[2], names[1]]
    first = page.get_by_role("textbox", name="Title of slide 1")
    first.fill('The <b>"first"</b> layer')
    first.press("Tab")
    button(page, "Remove slide 3").click()
    assert len(titles(page)) == 2
    button(page, "Undo").click()
    assert len(titles(page)) == 3
    with page.expect_download() as download:
        button(page, "Export").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)

    opened(page, f"{server}/{SHAPESNET}")
    page.keyboard.press("f")
    page.wait_for_url("**present=1**")
    at_rest(page)
    for number, at in enumerate((0, 2, 1, 1), 1):  # at the end it stays
        page.keyboard.press("PageDown")
        wait_for_link(page, kept[at] | {"present": "1"})
        at_rest(page)
        told = page.get_by_role("toolbar").get_by_role("status")
        expect(told).to_contain_text(f"{min(number, 3)} of 3")
    page.mouse.click(*tile_centre(page, 3))  # which is none of the next slide's
    page.wait_for_url("**channel=3**")
    page.keyboard.press("PageUp")
    wait_for_link(page, kept[2] | {"present": "1"})
    expect(page.get_by_text("Channel 5", exact=True)).to_be_visible()
    page.keyboard.press("PageUp")
    wait_for_link(page, kept[0] | {"present": "1"})
    page.go_back()
    wait_for_link(page, kept[2] | {"present": "1"})
    assert page.evaluate("window.untouched")  # it was one page all the time

    opened(class_page, f"{server}/?present=1&sample=star")
    class_page.keyboard.press("l")
    class_page.get_by_label("Import").set_input_files(file)
    expect(class_page.get_by_role("textbox", name="Title of slide")).to_have_count(3)
    assert titles(class_page) == ['The <b>"first"</b> layer', names[2], names[1]]
    button(class_page, f"Show slide 2: {names[2]}").click()
    wait_for_link(class_page, kept[2] | {"present": "1"})


@pytest.mark.sweep("by day one press after the other: the tests here")
def test_a_remote_that_is_pressed_quickly_leads_to_the_last_slide_whole(
    page: Page, server: str
) -> None:
    """Three views of which each says something else, so that a mixed one would be seen."""
    views = (
        {"model": "ShapesNet", "layer": "stage2.first.conv", "channel": "2"},
        {"lesson": "all"},
        {"model": "ShapesNet", "sample": "star", "lens": "summary"},
    )
    opened(page, f"{server}/{SHAPESNET}")
    kept = [{"title": str(at), "query": urlencode(view)} for at, view in enumerate(views)]
    page.evaluate("kept => localStorage.setItem('hookviz-slides', JSON.stringify(kept))", kept)
    page.goto(f"{server}/?present=1&model=ShapesNet")
    wait_for_grid(page)
    at_rest(page)
    bar = page.get_by_role("toolbar").get_by_role("status")
    for key, at in (("PageDown", 2), ("PageUp", 0), ("PageDown", 2)):
        for _ in range(3):
            page.keyboard.press(key)
        expect(bar).to_contain_text(f"{at + 1} of 3")
        wait_for_link(page, views[at] | {"present": "1"})
        at_rest(page)
        wait_for_link(page, views[at] | {"present": "1"})
    page.keyboard.press("PageUp")
    wait_for_link(page, views[1] | {"present": "1"})
    at_rest(page)
    page.go_back()
    wait_for_link(page, views[2] | {"present": "1"})
    expect(bar).to_contain_text("3 of 3")


def wait_for_link(page: Page, wanted: dict[str, str]) -> None:
    page.wait_for_function(
        "wanted => JSON.stringify([...window.hookvizLink()].sort()) === wanted",
        arg=json.dumps(sorted(map(list, wanted.items())), separators=(",", ":")),
    )


# ── the link for the class ─────────────────────────────────────────────────────────────────────


def read(code: Locator) -> str:
    """What a phone reads off a QR code on the screen.

    By ZXing, as phones have it: OpenCV's reader finds nothing in one of two hundred sound codes.
    """
    with Image.open(io.BytesIO(code.screenshot())) as shown:
        [found] = zxingcpp.read_barcodes(shown.convert("L"))
    return str(found.text)


def test_the_qr_code_and_the_short_link_lead_to_what_is_shown(
    page: Page, server: str, class_page: Page
) -> None:
    view = f"{SHAPESNET}&layer=stage1.first.conv&channel=3&sample=star&present=1&sort=index"
    opened(page, f"{server}/{view}")
    page.get_by_role("toolbar", name="Presenting").wait_for()
    page.keyboard.press("q")
    code = page.get_by_role("img", name="QR code of the link below it")
    code.wait_for()
    dialog = page.get_by_role("dialog", name="For the class")
    written = dialog.get_by_text(server)
    short = written.inner_text()
    assert read(code) == short
    assert len(short) < 60
    assert settled_boxes(page, code)[0]["height"] > 0.6 * 900  # for the last row
    assert float(written.evaluate("element => parseFloat(getComputedStyle(element).fontSize)")) > 25

    opened(class_page, short)
    at_rest(class_page)
    wanted = {"model": "ShapesNet", "layer": "stage1.first.conv", "channel": "3", "sample": "star"}
    assert link_of(class_page) == wanted
    assert layer(class_page) == "stage1.first.conv"
    expect(class_page.get_by_text("Channel 3", exact=True)).to_be_visible()

    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    assert "present" in link_of(page)  # the key was the dialog's
    page.keyboard.press("q")  # and the same view has the same link
    expect(written).to_have_text(short)
    for _ in range(8):  # however soon after it was closed
        page.keyboard.press("Escape")
        page.keyboard.press("q")
        expect(dialog).to_be_visible()
        expect(written).to_have_text(short)
