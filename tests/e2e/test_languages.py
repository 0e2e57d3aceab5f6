"""The page in another language: every word of it, the switch, the link, the browser's own."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

import hookviz
from hookviz.language.catalogs import languages, own_name
from scripts.servers import free_port, serve
from tests.e2e.screen import at_rest, new_context, open_view
from tests.e2e.test_accessibility import serious
from tests.e2e.test_layout import right_of_layer_row
from tests.language import pseudo

_ALL_TEXT = """() => {
  const found = new Set();
  const spoken = ["aria-label", "title", "alt", "placeholder", "aria-description"];
  const others = "[data-testid='stToolbar'], [data-testid='stIconMaterial'], code, kbd";
  const look = (root) => {
    for (const each of root.querySelectorAll("*")) {
      if (["STYLE", "SCRIPT", "SVG"].includes(each.tagName) || each.closest(others)) continue;
      for (const name of spoken) if (each.getAttribute(name)) found.add(each.getAttribute(name));
      for (const node of each.childNodes) {
        const text = node.nodeType === 3 ? node.data.trim() : "";
        if (text && each.checkVisibility()) found.add(text);
      }
      if (each.shadowRoot) look(each.shadowRoot);
    }
  };
  look(document.querySelector("[data-testid='stApp']"));
  return [...found];
}"""

# What Streamlit's own widgets say; it speaks English alone.
_STREAMLIT = re.compile(
    r"^(Selected .*|Help|Open|.*Help for .*|Increment|Decrement|Clear all|Press Enter.*"
    r"|.*drag and drop.*|.*Limit \d.*|Browse files|file upload|• [A-Z\d, ]+|.*per file.*|Take Photo"
    r"|Clear photo|Switch to .* facing camera|Learn how to allow access|This app would like.*"
    r"|Toolbar|Sidebar|Skip to main content|Collapse sidebar|Expand sidebar|Fullscreen.*"
    r"|Download.*|Search|Show/hide columns|Close.*|Drag.*to resize.*|Current value:.*"
    r"|Copy to clipboard|[a-z]+(_[a-z]+)+( icon)?|(casino|download|upload)( icon)?"
    r"|Upload|Choose an option|st[A-Z].*)$"
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("languages")
    pseudo.write_catalog(folder)
    environment = {
        "HOOKVIZ_LANGUAGES": str(folder),
        "HOOKVIZ_WEIGHTS_URL": f"http://127.0.0.1:{free_port()}",
    }
    with serve(environment) as served:
        yield served


@pytest.fixture(scope="module")
def names(model: hookviz.Model) -> set[str]:
    """What is a name in any language: of a layer, a model, a colormap, a file."""
    words = {
        *(f"{layer.name} {layer.kind}" for layer in hookviz.list_layers(model, kind="all")),
        *(layer.kind for layer in hookviz.list_layers(model, kind="maps")),
        "HookViz ShapesNet SqueezeNet ImageNet ResNet Grad CAM Fourier MACO NaN",
        "Esperanto Language",
        *map(own_name, languages()),  # on the switch
    }
    return {part for word in words for part in re.findall(r"[A-Za-z]{3,}", word)}


@pytest.fixture(scope="module")
def from_link_to_link(browser: Browser) -> Iterator[Page]:
    """A window for all links: each is a page of its own, and loads in half the time."""
    context = new_context(browser, viewport={"width": 1440, "height": 900})
    yield context.new_page()
    context.close()


def untranslated(page: Page, names: set[str]) -> list[str]:
    """What stands on the page in ordinary letters, though it is no name."""
    english = []
    for text in page.evaluate(_ALL_TEXT):
        if _STREAMLIT.match(text):
            continue
        words = re.findall(r"[A-Za-z]{3,}", re.sub(r"[\w /]+\.jpg", "", text))
        if any(word not in names for word in words):
            english.append(text[:120])
    return sorted(english)


_NUMBERS = """() => {
  const found = [];
  const look = (root) => {
    for (const each of root.querySelectorAll("*")) {
      if (each.matches("style, script, code, input")) continue;
      for (const node of each.childNodes) {
        if (node.nodeType === 3 && /\\d[.,]\\d/.test(node.data)) found.push(node.data.trim());
      }
      if (each.shadowRoot) look(each.shadowRoot);
    }
  };
  look(document.querySelector("[data-testid='stMain']"));
  return found;
}"""


def expect_point(page: Page, point: str, other: str) -> None:
    """Numbers have the point of the language, those of the browser too: of a tile, of a cell."""
    expect(page.get_by_text(re.compile(rf"[−\d]\{point}\d{{5,6}}$")).first).to_be_visible()
    numbers = page.evaluate(_NUMBERS)
    assert len(numbers) > 20
    assert [each for each in numbers if re.search(other, each)] == []


@pytest.mark.parametrize(
    "link",
    [
        "channel=5&layer=stage1.first.conv",
        "channel=3&origin=Kernel&sort=mean&patches=true&weights=random",
        "lens=grad-cam",
        "image=Upload",
        "image=Live",
        "lesson=all",
        "present=1",
    ],
)
def test_every_word_is_translatable(
    address: str, from_link_to_link: Page, names: set[str], link: str
) -> None:
    page = from_link_to_link
    page.goto(f"{address}/?lang=eo&model=ShapesNet&{link}")
    expect(page.locator("[data-testid=stMain] button").first).to_be_visible()
    at_rest(page)
    assert untranslated(page, names) == []
    if link.startswith("channel=5"):
        expect_point(page, ",", r"\d\.\d")


def test_the_switch_turns_the_page_and_links_stay_english(address: str, page: Page) -> None:
    page.goto(f"{address}/?model=ShapesNet&sample=star&channel=5&sort=mean")
    sort, scale = (page.locator(f"[data-word={word}] option:checked") for word in ("sort", "scale"))
    for name, words in (
        ("简体中文", ("通道 5", "均值", "星形", "图像", "白色")),
        ("English", ("Channel 5", "mean", "star", "Sample image", "channels")),
    ):
        heading, mean, star, samples, legend = words
        page.locator(".st-key-hv-name").get_by_role("combobox").click()
        page.get_by_role("option", name=name).click()
        expect(page.get_by_role("heading", name=heading)).to_be_visible()
        expect(sort).to_have_text(mean)
        expect(page.locator(".hv-classes .label").first).to_have_text(star)
        letters = re.compile("[A-Za-z]{3}" if samples.isascii() else "[\u4e00-\u9fff]")
        group = page.locator(".st-key-gallery").get_by_role("radiogroup")
        expect(group).to_have_attribute("aria-label", re.compile(samples))
        expect(group.get_by_role("radio").first).to_have_attribute("title", letters)
        expect(page.locator(".explorer .legend")).to_contain_text(legend)
        for part in (".cost", ".field"):
            expect(page.locator(f".explorer {part}")).to_have_text(letters)
        if name != "English":
            expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
            expect(page.get_by_text(re.compile("通道 5 · 最小")).first).to_be_visible()  # a script
            open_view(page)
            page.locator("[data-word=scale]").select_option("通道")
            expect(page).to_have_url(re.compile("scale=channel"))
            assert "sort=mean" in page.url
            page.reload()
            expect(scale).to_have_text("通道")
    expect(scale).to_have_text("channel")


def test_the_page_in_chinese_is_as_wide_as_its_window_and_can_be_read_aloud(
    address: str, page: Page
) -> None:
    for width, height in ((1440, 900), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        page.goto(f"{address}/?model=ShapesNet&channel=5&lang=zh-CN")
        expect(page.get_by_role("heading", name="通道 5")).to_be_visible()
        at_rest(page)
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width
        assert right_of_layer_row(page) <= width
        assert serious(page) == []
    expect_point(page, ".", r"\d,\d\d?\b")
