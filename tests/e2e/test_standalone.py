"""A page in a file: opened from the disk with the network off, every number is the library's."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect
from torch import Tensor, nn

import hookviz
from hookviz.explorer.answering import answer
from hookviz.explorer.given import subject_given
from hookviz.explorer.question import Question
from hookviz.explorer.subject import Subject
from hookviz.explorer.view import View
from hookviz.images.samples import samples
from hookviz.standalone.saving import page_bytes
from hookviz.wording import percent
from scripts.browsing import tile_centre, tiles, wait_for_grid
from scripts.servers import Server
from tests.e2e.screen import SHAPESNET, read_number
from tests.networks import seeded

PHOTO = next(each.path for each in samples() if each.kind == "photo")
BAD = "<img src=x onerror=window.bad=1>"
_HALF = 2**-11  # of a value: what float16 may be off


class Own(nn.Module):
    """A network of one's own: groups, a norm, a swish, and a channel that is dead."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 6, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.second = nn.Conv2d(6, 8, 3, padding=1, groups=2, dilation=1, bias=False)
        self.head = nn.Linear(8, 5)

    def forward(self, images: Tensor) -> Tensor:
        maps = nn.functional.silu(self.norm(self.first(images)))
        scores: Tensor = self.head(self.second(maps).mean((2, 3)))
        return scores


def own() -> hookviz.Model:
    network = seeded(Own)
    with torch.no_grad():
        network.second.weight[3] = 0
    steps = hookviz.Preprocess(resize=64, crop=64)
    classes = (BAD, "</script>", '"b"', "'c'", "{d}")
    return hookviz.wrap(network, steps, classes, name=f"my {BAD} net")


@dataclass(frozen=True)
class Saved:
    """A page, and what it was made of."""

    file: Path
    subject: Subject
    capture: hookviz.Capture
    sums: str

    @property
    def layers(self) -> list[str]:
        return list(self.capture)

    def said(self, question: str, layer: str, **about: Any) -> Mapping[str, Any]:
        """What the library answers."""
        return answer(self.subject, View(layer=layer), Question(question, about)).facts


NETWORKS: dict[str, tuple[Callable[[], hookviz.Model], list[str]]] = {
    "squeezenet": (
        lambda: hookviz.load_model("squeezenet"),
        ["features.0", "features.6.expand3x3", "classifier.1"],
    ),
    "own": (own, ["first", "second"]),
}
_saved: dict[str, Saved] = {}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pages")


def saved(name: str, folder: Path) -> Saved:
    """A page of a network, made once."""
    if name not in _saved:
        build, layers = NETWORKS[name]
        model = build()
        capture = hookviz.capture(model, PHOTO, layers)
        file = folder / f"{name} \"quoted\" 'page' #1.html"
        sums = layers[1]
        hookviz.save_page(capture, file, image=PHOTO, sums=sums)
        _saved[name] = Saved(file, subject_given(model, PHOTO), capture, sums)
    return _saved[name]


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


def texts(place: Locator) -> list[str]:
    return [each.strip() for each in place.all_inner_texts()]


def words(parts: Any) -> str:
    return "".join(part[0] for part in parts)


def check_sum(page: Page, expected: Mapping[str, Any]) -> None:
    """The sum on the screen says what the library says."""
    expect(page.locator(".why h4")).to_have_text(expected["title"])
    expect(page.locator(".why:not(.stale) .sum")).to_have_text(words(expected["sum"]))
    assert texts(page.locator(".why .steps li")) == [words(each) for each in expected["steps"]]
    assert texts(page.locator(".why .rest")) == [expected["rest"]]
    rows = page.locator(".why .rows .row")
    assert texts(rows.locator(".name")) == [f"in {row['input']}" for row in expected["rows"]]
    terms = [read_number(each) for each in texts(rows.locator(".term"))]
    assert terms == pytest.approx([row["term"] for row in expected["rows"]], rel=5e-3, abs=1e-12)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_number_is_the_library_s(name: str, browser: Browser, folder: Path) -> None:
    page_of = saved(name, folder)
    for layer in page_of.layers:
        values = page_of.capture[layer].values.numpy()
        channel = values.shape[0] // 3
        told = page_of.said("tiles", layer)
        rows, columns = told["rows"], told["columns"]
        row, column = divmod(told["strongest"][channel], columns)
        link = {"layer": layer, "channel": channel}
        with opened(browser, page_of.file, link) as page:
            # the strongest cell
            # of a layer of classes with the class's name
            expect(page.locator("h3")).to_have_text(re.compile(rf"^Channel {channel}( · .+)?$"))
            check_sum(page, page_of.said("cell", layer, channel=channel, row=row, column=column))
            line = page.locator(".map-b output")
            expect(line).to_contain_text(f"row {row}, column {column} · ≈")
            exact = values[channel, row, column]
            shown = read_number(line.inner_text().rpartition("≈")[2])
            assert shown == pytest.approx(exact, rel=_HALF + 5e-4)
            # its numbers
            said = page_of.said("channel", layer, channel=channel)
            numbers = texts(page.locator(".hv-numbers > *"))
            assert numbers == [text for line in said["numbers"] for text in line[:2]]
            assert texts(page.locator(".hv-ends span")) == [
                said["histogram"]["low"],
                said["histogram"]["high"],
            ]
            bars = page.locator(".hv-histogram span").evaluate_all(
                "all => all.map((each) => parseFloat(each.style.height))"
            )
            assert bars == [bar[0] for bar in said["histogram"]["bars"]]
            # what is read under the pointer
            at = channel + 1
            box = tiles(page).box(at)
            # in no row of the number of its column
            page.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 0.3 * box["height"])
            output = page.locator("figure .head output").first
            expect(output).to_contain_text(f"channel {at} · ≈")
            text = output.inner_text()
            found = re.search(r"row (\d+), column (\d+)", text)
            assert found, text
            assert found[1] != found[2]
            there = values[at, int(found[1]), int(found[2])]
            assert read_number(text.partition("≈")[2]) == pytest.approx(there, rel=_HALF + 5e-3)
            # the classes
            likeliest = page_of.capture.likeliest(5)
            labels = texts(page.locator(".classes .label"))
            assert labels == [_name(page_of.capture, index) for index, _ in likeliest]
            shares = texts(page.locator(".classes .share"))
            assert shares == [percent(share) for _, share in likeliest]
        # any cell
        other = {"row": rows // 2, "column": columns // 3}
        cell = f"{other['row']},{other['column']},{rows},{columns}"
        with opened(browser, page_of.file, {**link, "cell": cell}) as page:
            line = page.locator(".map-b output")
            expect(line).to_contain_text(f"row {other['row']}, column {other['column']} · ≈")
            exact = values[channel, other["row"], other["column"]]
            shown = read_number(line.inner_text().rpartition("≈")[2])
            assert shown == pytest.approx(exact, rel=_HALF + 5e-4, abs=1e-7)
            if layer == page_of.sums:
                check_sum(page, page_of.said("cell", layer, channel=channel, **other))
            else:
                info = page.locator(".why .info")
                expect(info).to_contain_text(f"row {row}, column {column}")
                expect(info).to_contain_text(f"--sums {layer}")


def _name(capture: hookviz.Capture, index: int) -> str:
    return capture.categories[index] if index < len(capture.categories) else f"class {index}"


@pytest.mark.promise
def test_a_click_a_key_and_back_go_where_the_address_says(browser: Browser, folder: Path) -> None:
    page_of = saved("squeezenet", folder)
    first, second, _ = page_of.layers
    with opened(browser, page_of.file, {"layer": first}) as page:
        page.mouse.click(*tile_centre(page, 5))
        expect(page.locator("h3")).to_have_text("Channel 5")
        expect(page).to_have_url(re.compile(r"channel=5"))
        listed = page.locator(".layer-row select.layers")
        # where no other cell's sum is kept a click looks at the strongest
        assert "cell=" not in page.url
        page.keyboard.press("n")
        expect(page.locator(".layer-row select.layers")).to_have_value(
            re.compile(re.escape(second))
        )
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
        page.locator("figure .stage").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        expect(page.locator("h3")).to_have_text("Channel 8")
        page.keyboard.press("Escape")
        expect(page.locator("h3")).to_be_hidden()
        page.locator("[data-word=sort]").select_option("max")
        order = page_of.said("tiles", second)["orders"]["max"]
        expect(page.locator("figure .head output").first).to_contain_text(f"channel {order[0]} ")


def test_it_stands_in_a_frame_with_tiles_and_inspector_alone(
    browser: Browser, folder: Path
) -> None:
    page_of = saved("squeezenet", folder)
    link = urlencode({"layer": page_of.layers[1], "channel": 3, "embed": 1})
    article = folder / "article.html"
    source = f"{page_of.file.as_uri()}#{link}"  # which is read as what follows a question mark
    article.write_text(
        f'<!doctype html><title>x</title><iframe title="x" width=900 height=600 src="{source}">',
        "utf-8",
    )
    context = browser.new_context(viewport={"width": 1000, "height": 700})
    context.set_offline(True)
    page = context.new_page()
    page.goto(article.as_uri())
    frame = page.frame_locator("iframe")
    expect(frame.locator("h3")).to_have_text("Channel 3")
    expect(frame.locator("figure .stage")).to_be_visible()
    for gone in (".seen-head", ".tree-side", ".layer-row", ".view-row", "footer"):
        expect(frame.locator(gone)).to_be_hidden()
    frame.locator("figure .stage").click(position={"x": 20, "y": 20})
    expect(frame.locator("h3")).to_have_text("Channel 0")
    context.close()


@pytest.mark.by_day
def test_it_has_the_browser_s_language_and_colours_and_those_that_are_chosen(
    browser: Browser, folder: Path
) -> None:
    page_of = saved("squeezenet", folder)
    link = {"channel": 3}
    with opened(browser, page_of.file, link, locale="zh-CN", color_scheme="dark") as page:
        expect(page.locator("h3")).to_have_text("通道 3")
        expect(page.locator(".why h4")).to_contain_text("为什么")
        expect(page.locator("footer")).to_contain_text("hookviz run")
        assert page.locator("html").get_attribute("lang") == "zh-CN"
        page.get_by_role("combobox", name="语言").select_option(label="English")
        expect(page.locator("h3")).to_have_text("Channel 3")
        expect(page.locator(".legend")).to_contain_text("below zero")
        assert "lang=en" in page.url
        expect(page.get_by_role("combobox", name="Language")).to_be_focused()
        expect(page.locator(".legend")).to_contain_text("black is zero")
        dark = page.locator(".scale img").first.get_attribute("src")
        page.get_by_role("button", name="Light").click()
        expect(page.locator(".legend")).to_contain_text("white is zero")
        expect(page.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")
        assert page.locator(".scale img").first.get_attribute("src") != dark
        page.get_by_role("button", name="Dark").click()
        expect(page.locator(".legend")).to_contain_text("black is zero")


def test_no_text_of_a_class_a_network_or_a_file_runs(browser: Browser, folder: Path) -> None:
    page_of = saved("own", folder)
    photo = folder / "a \"b\" 'c' <img src=x onerror=window.bad=1>.jpg"
    photo.write_bytes(PHOTO.read_bytes())
    file = folder / f"{BAD.replace('/', '')}.html"
    hookviz.save_page(page_of.capture, file, image=photo)
    model = page_of.subject.model
    for link in ({"channel": 1}, {"layer": BAD, "channel": BAD, "lang": BAD, "theme": BAD}):
        with opened(browser, file, link) as page:
            expect(page.locator(".titles b")).to_have_text(photo.name)
            expect(page.locator(".titles span")).to_have_text(model.title)
            assert BAD in texts(page.locator(".classes .label"))
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


def test_the_policy_lets_nothing_else_run(browser: Browser, folder: Path) -> None:
    """Were there a way for markup into the page, it would do nothing."""
    context = browser.new_context(offline=True)
    page = context.new_page()
    refused = list[str]()
    page.on("console", lambda said: refused.append(said.text) if said.type == "error" else None)
    page.goto(saved("own", folder).file.as_uri())
    painted(page)
    assert page.evaluate(_TRIED) == ["refused", None]
    kinds = ("script-src", "connect-src", "frame-src")
    assert [kind for kind in kinds if not any(kind in said for said in refused)] == []
    context.close()


_VIOLATIONS = """async () => (await axe.run({resultTypes: ["violations"]})).violations
  .map(({id, nodes}) => [id, nodes.map(({html}) => html)])"""


@pytest.mark.parametrize(("width", "height", "scheme"), [(720, 450, "light"), (390, 844, "dark")])
def test_nothing_is_cut_off_at_200_percent_and_on_a_phone_and_axe_finds_nothing(
    browser: Browser, folder: Path, width: int, height: int, scheme: str
) -> None:
    """A window of 1440×900 at 200 % has 720×450 pixels of a page."""
    page_of = saved("squeezenet", folder)
    looks = {"viewport": {"width": width, "height": height}, "color_scheme": scheme}
    for link in ({}, {"layer": page_of.sums, "channel": 3}):
        with opened(browser, page_of.file, link, **looks) as page:
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


def test_it_begins_with_the_view_that_it_was_saved_with(browser: Browser, folder: Path) -> None:
    page_of = saved("own", folder)
    subject, file = page_of.subject, folder / "view.html"
    layers = subject.trace.convs
    view = View(layer="second", channel=2, sort="max", scale="channel", patches=True)
    file.write_bytes(page_bytes(subject, layers, view=view))
    with opened(browser, file, {}) as page:
        expect(page.locator("h3")).to_have_text("Channel 2")
        expect(page.locator(".layer-row select.layers")).to_have_value("2 · second")
        assert page.url.partition("?")[2] == "layer=second&sort=max&channel=2"
    with opened(browser, file, {"layer": "first"}) as page:
        expect(page.locator(".layer-row select.layers")).to_have_value("1 · first")
        expect(page.locator("h3")).to_be_hidden()


def test_a_file_that_is_not_whole_says_so(browser: Browser, folder: Path) -> None:
    html = saved("own", folder).file.read_text("utf-8")
    file = folder / "cut.html"
    block = '<script type="application/octet-stream" id="page">'
    file.write_text(html.replace(block, f"{block}AAAA", 1), "utf-8")
    page = browser.new_context(locale="zh-CN").new_page()
    page.goto(file.as_uri())
    failed = page.get_by_role("alert")
    expect(failed).to_contain_text("This page could not be shown")
    expect(failed).to_contain_text("这个网页无法显示")
    page.context.close()


def test_what_is_on_the_screen_can_be_downloaded_as_a_page(
    page: Page, server: Server, browser: Browser, tmp_path: Path
) -> None:
    page.goto(f"{server}/{SHAPESNET}&sample=star&layer=stage1.first.conv")
    wait_for_grid(page)
    page.get_by_role("button", name="Download").click()
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
