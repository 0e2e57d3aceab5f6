"""A page in a file: opened from the disk with the network off, every number is the library's."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

import hookviz
from hookviz.explorer.answering import answer
from hookviz.explorer.question import Question
from hookviz.explorer.subject import Subject, make_subject
from hookviz.explorer.view import View
from hookviz.images.samples import samples
from hookviz.standalone.saving import page_bytes
from hookviz.wording import percent
from scripts.browsing import tile_centre, tiles, wait_for_grid
from scripts.servers import Server
from tests.e2e.screen import SHAPESNET, choose, open_more, read_number
from tests.networks import Tiny, seeded

PHOTO = next(each.path for each in samples() if each.kind == "photo")
BAD = "<img src=x onerror=window.bad=1>"
_HALF = 2**-11  # of a value: what float16 may be off


@dataclass(frozen=True)
class Saved:
    """A page, and what it was made of."""

    file: Path
    subject: Subject
    capture: hookviz.Capture

    @property
    def layers(self) -> list[str]:
        return list(self.capture)

    def said(self, question: str, **about: Any) -> Mapping[str, Any]:
        """What the library answers about the layer with sums."""
        view = View(layer=self.layers[1])
        return answer(self.subject, view, Question(question, about)).facts


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


def save(model: hookviz.Model, folder: Path, *layers: str) -> Saved:
    capture = hookviz.capture(model, PHOTO, layers)
    file = folder / f"{len(layers)} \"quoted\" 'page' #1.html"
    hookviz.save_page(capture, file, image=PHOTO, sums=layers[1])
    return Saved(file, make_subject(model, PHOTO), capture)


@pytest.fixture(scope="session")
def squeezenet(folder: Path) -> Saved:
    layers = "features.0", "features.6.expand3x3", "classifier.1"
    return save(hookviz.load_model("squeezenet"), folder, *layers)


@pytest.fixture(scope="session")
def hostile(folder: Path) -> Saved:
    """A network whose name and classes are markup."""
    classes = (BAD, "</script>", '"b"', "'c'", "{d}")
    steps = hookviz.Preprocess(resize=64, crop=64)
    model = hookviz.wrap(seeded(Tiny), steps, classes, name=f"my {BAD} net")
    return save(model, folder, "conv1", "conv2")


@contextmanager
def opened(browser: Browser, file: Path, link: Mapping[str, Any], **options: Any) -> Iterator[Page]:
    """A page from the disk with the network off, which asks for nothing from elsewhere."""
    size = {"width": 1440, "height": 900}
    context = browser.new_context(**{"viewport": size, "reduced_motion": "reduce", **options})
    context.set_offline(True)
    page = context.new_page()
    asked, wrong = list[str](), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("dialog", lambda dialog: wrong.append(dialog.message))
    page.goto(f"{file.as_uri()}?{urlencode(link)}")
    painted(page)
    yield page
    assert {url.partition(":")[0] for url in asked} <= {"file", "data", "blob"}
    assert len([url for url in asked if url.startswith("file:")]) == len(
        [url for url in asked if url.startswith(file.as_uri())]
    )
    assert wrong == []
    context.close()


def painted(page: Page) -> None:
    """Wait until the tiles that are shown are those that are asked for."""
    page.locator(".main:not(.stale) .picture[data-key]").wait_for(state="attached")


def test_the_numbers_on_the_screen_are_the_library_s(browser: Browser, squeezenet: Saved) -> None:
    """That a page answers all questions as the library does is shown in test_recording.py."""
    layer, channel = squeezenet.layers[1], 85
    values = squeezenet.capture[layer].values
    rows, columns = values.shape[1:]
    for row, column in (divmod(int(values[channel].argmax()), columns), (rows // 2, columns // 3)):
        cell = f"{row},{column},{rows},{columns}"
        link = {"layer": layer, "channel": channel, "cell": cell}
        with opened(browser, squeezenet.file, link) as page:
            line = page.locator(".map-b output")
            expect(line).to_contain_text(f"row {row}, column {column} · ≈")
            shown = read_number(line.inner_text().rpartition("≈")[2])
            exact = values[channel, row, column].item()
            assert shown == pytest.approx(exact, rel=_HALF + 5e-4, abs=1e-7)
            expected = squeezenet.said("cell", channel=channel, row=row, column=column)
            expect(page.locator(".why h4")).to_have_text(expected["title"])
            total = "".join(part[0] for part in expected["sum"])
            expect(page.locator(".why:not(.stale) .sum")).to_have_text(total)
            said = squeezenet.said("channel", channel=channel)["numbers"]
            numbers = [each.strip() for each in page.locator(".hv-numbers > *").all_inner_texts()]
            assert numbers == [text for each in said for text in each[:2]]
            likeliest = squeezenet.capture.likeliest(5)
            names = [squeezenet.capture.categories[at] for at, _ in likeliest]
            expect(page.locator(".classes .label")).to_have_text(names)
            shares = page.locator(".classes .share")
            expect(shares).to_have_text([percent(share) for _, share in likeliest])
    # of another layer the strongest cell's sum alone is there
    first = squeezenet.layers[0]
    with opened(browser, squeezenet.file, {"layer": first, "channel": 3, "cell": "1,1"}) as page:
        expect(page.locator(".why .info")).to_contain_text(f"--sums {first}")


@pytest.mark.promise
def test_a_click_a_key_and_back_go_where_the_address_says(
    browser: Browser, squeezenet: Saved
) -> None:
    first, second, _ = squeezenet.layers
    with opened(browser, squeezenet.file, {"layer": first}) as page:
        page.mouse.click(*tile_centre(page, 5))
        expect(page.locator("h3")).to_have_text("Channel 5")
        expect(page).to_have_url(re.compile(r"channel=5"))
        listed = page.locator(".layer-row select.layers")
        # where no other cell's sum is kept a click looks at the strongest
        assert "cell=" not in page.url
        page.keyboard.press("n")
        expect(listed).to_have_value(re.compile(re.escape(second)))
        painted(page)
        page.mouse.click(*tile_centre(page, 7))
        expect(page).to_have_url(re.compile(r"channel=7&cell=\d+|cell=\d+.*channel=7"))
        expect(page.locator(".why h4")).to_contain_text("Why")
        link = page.url
        page.go_back()
        page.go_back()
        expect(page).to_have_url(re.compile(r"channel=5"))
        expect(listed).to_have_value(re.compile(re.escape(first)))
        page.goto(link)
        painted(page)
        expect(page.locator("h3")).to_have_text("Channel 7")
        page.keyboard.press("Escape")
        expect(page.locator("h3")).to_be_hidden()
        choose(page, "Sort by", "max")
        order = squeezenet.said("tiles")["orders"]["max"]
        expect(page.locator("figure .head output").first).to_contain_text(f"channel {order[0]} ")


@pytest.mark.by_day
def test_it_has_the_browser_s_language_and_colours_and_those_that_are_chosen(
    browser: Browser, squeezenet: Saved
) -> None:
    link = {"channel": 3}
    with opened(browser, squeezenet.file, link, locale="zh-CN", color_scheme="dark") as page:
        expect(page.locator("h3")).to_have_text("通道 3")
        expect(page.locator(".why h4")).to_contain_text("为什么")
        expect(page.locator("footer")).to_contain_text("hookviz run")
        assert page.locator("html").get_attribute("lang") == "zh-CN"
        page.get_by_role("combobox", name="语言").select_option(label="English")
        expect(page.locator("h3")).to_have_text("Channel 3")
        assert "lang=en" in page.url
        expect(page.get_by_role("combobox", name="Language")).to_be_focused()
        expect(page.locator(".legend")).to_contain_text("black is zero")
        page.get_by_role("button", name="Light").click()
        expect(page.locator(".legend")).to_contain_text("white is zero")
        expect(page.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")


def test_no_text_of_a_class_a_network_or_a_file_runs(
    browser: Browser, folder: Path, hostile: Saved
) -> None:
    photo = folder / "a \"b\" 'c' <img src=x onerror=window.bad=1>.jpg"
    photo.write_bytes(PHOTO.read_bytes())
    file = folder / f"{BAD.replace('/', '')}.html"
    hookviz.save_page(hostile.capture, file, image=photo)
    model = hostile.subject.model
    for link in ({"channel": 1}, {"layer": BAD, "channel": BAD, "lang": BAD, "theme": BAD}):
        with opened(browser, file, link) as page:
            expect(page.locator(".titles b")).to_have_text(photo.name)
            expect(page.locator(".titles span")).to_have_text(model.title)
            assert BAD in page.locator(".classes .label").all_inner_texts()
            assert photo.name in page.title()
            assert page.evaluate("window.bad") is None
            assert page.evaluate("document.querySelectorAll('img, iframe, object').length") == 0


# Each would set `window.bad` if it ran, or read something.
_TRIED = """async () => {
  const failed = (name) => (error) => name;
  const script = Object.assign(document.createElement("script"), {textContent: "window.bad = 1"});
  document.body.append(script);
  document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.bad = 1'>");
  document.body.insertAdjacentHTML("beforeend", "<a href='javascript:window.bad = 1'>x</a>");
  document.querySelector("a").click();
  setTimeout("window.bad = 1", 0);
  const read = await fetch("data:,x").then(() => "read", failed("refused"));
  const frame = document.createElement("iframe");
  const loaded = new Promise((done) => { frame.onload = frame.onerror = done; });
  frame.src = "data:text/html,x";
  document.body.append(frame);
  await loaded;
  await new Promise((done) => setTimeout(done, 0));
  return [read, window.bad ?? null];
}"""


def test_the_policy_lets_nothing_else_run(browser: Browser, hostile: Saved) -> None:
    """Were there a way for markup into the page, it would do nothing."""
    context = browser.new_context(offline=True)
    page = context.new_page()
    refused = list[str]()
    page.on("console", lambda said: refused.append(said.text) if said.type == "error" else None)
    page.goto(hostile.file.as_uri())
    painted(page)
    assert page.evaluate(_TRIED) == ["refused", None]
    kinds = ("script-src", "connect-src", "frame-src")
    assert [kind for kind in kinds if not any(kind in said for said in refused)] == []


_VIOLATIONS = """async () => (await axe.run({resultTypes: ["violations"]})).violations
  .map(({id, nodes}) => [id, nodes.map(({html}) => html)])"""


@pytest.mark.parametrize(("width", "height", "scheme"), [(720, 450, "light"), (390, 844, "dark")])
def test_nothing_is_cut_off_at_200_percent_and_on_a_phone_and_axe_finds_nothing(
    browser: Browser, squeezenet: Saved, width: int, height: int, scheme: str
) -> None:
    """A window of 1440×900 at 200 % has 720×450 pixels of a page."""
    looks = {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
    for link in ({}, {"layer": squeezenet.layers[1], "channel": 3}):
        with opened(browser, squeezenet.file, link, **looks) as page:
            assert tiles(page).columns > 1
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            for part in page.locator("button:visible, select:visible, h3:visible").all():
                box = part.bounding_box()
                assert box is None or box["x"] + box["width"] <= width + 1
            if link:
                place = page.locator(".inspector-place")
                assert place.evaluate("place => place.scrollWidth <= place.clientWidth")
                expect(page.locator(".why .sum")).not_to_be_empty()
            page.evaluate(Axe().axe_script)
            assert page.evaluate(_VIOLATIONS) == []


def test_it_begins_with_the_view_that_it_was_saved_with(
    browser: Browser, folder: Path, hostile: Saved
) -> None:
    subject, file = hostile.subject, folder / "view.html"
    layers = subject.trace.convs
    view = View(layer="conv2", channel=2, sort="max", scale="channel", patches=True)
    file.write_bytes(page_bytes(subject, layers, view=view))
    with opened(browser, file, {}) as page:
        expect(page.locator("h3")).to_have_text("Channel 2")
        expect(page.locator(".layer-row select.layers")).to_have_value("2 · conv2")
        assert page.url.partition("?")[2] == "layer=conv2&sort=max&channel=2"
    with opened(browser, file, {"layer": "conv1"}) as page:
        expect(page.locator(".layer-row select.layers")).to_have_value("1 · conv1")
        expect(page.locator("h3")).to_be_hidden()


def test_a_file_that_is_not_whole_says_so(page: Page, folder: Path, hostile: Saved) -> None:
    html = hostile.file.read_text("utf-8")
    file = folder / "cut.html"
    block = '<script type="application/octet-stream" id="page">'
    file.write_text(html.replace(block, f"{block}AAAA", 1), "utf-8")
    page.goto(file.as_uri())
    failed = page.get_by_role("alert")
    expect(failed).to_contain_text("This page could not be shown")
    expect(failed).to_contain_text("这个网页无法显示")


def test_what_is_on_the_screen_can_be_downloaded_as_a_page(
    page: Page, server: Server, browser: Browser, tmp_path: Path
) -> None:
    page.goto(f"{server}/{SHAPESNET}&sample=star&layer=stage1.first.conv")
    wait_for_grid(page)
    open_more(page, "Download")
    page.get_by_role("button", name="Make a page").click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Page as HTML").click()
    waiting.value.save_as(tmp_path / "page.html")
    model = hookviz.load_model("shapesnet")
    convs = [layer.name for layer in hookviz.list_layers(model)]
    with opened(browser, tmp_path / "page.html", {}) as saved_page:
        expect(saved_page.locator(".layer-row select.layers")).to_have_value(
            re.compile("stage1.first.conv$")
        )
        listed = saved_page.get_by_role("combobox", name="Layer").locator("option")
        assert listed.all_text_contents() == [f"{at + 1} · {each}" for at, each in enumerate(convs)]
        expect(saved_page.locator(".classes .class").first).to_contain_text("star")
