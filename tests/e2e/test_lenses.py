"""Lenses in the app: what is chosen, folded, led to, stopped and kept."""

import re
import urllib.parse

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import hookviz
from hookviz.images.samples import samples
from hookviz.lenses.contract import running
from hookviz.lenses.contract.lens import Lens
from scripts.browsing import settled_boxes
from tests.e2e.screen import at_rest, choose, look_through
from tests.pictures import encoded, picture

CLIMBING = ("maximize", "dream", "inversion", "toaster")
"""Lenses whose steps are passes there and back; a few will do."""


def opened(page: Page, server: str, lens: Lens, **query: str) -> None:
    steps = {f"{lens.slug}-steps": "8"} if lens.slug in CLIMBING else {}
    link = {"model": "ShapesNet", "lens": lens.slug, **steps, **query}
    page.goto(f"{server}/?{urllib.parse.urlencode(link)}")
    page.get_by_role("heading", name=lens.question, exact=True).wait_for()
    settle(page)


def settle(page: Page, *, or_refused: bool = False) -> None:
    """Wait until the page has run to its end: its last line says how long it took.

    A choice may mean nothing together with the others; then the lens says so in its place.
    """
    end = page.get_by_text(re.compile(r"^took [\d,]+ ms$"))
    if or_refused:
        end = end.or_(page.get_by_role("status").filter(has_text=re.compile(r"\S")))
    expect(end.first).to_be_visible(timeout=60_000)
    expect(page.locator("[data-stale=true]")).to_have_count(0, timeout=60_000)
    # What Streamlit loads when it is first needed moves what is below once it is there.
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0, timeout=60_000)
    expect(page.get_by_role("alert").filter(has_text="went wrong")).to_have_count(0)


def test_what_is_folded_away_an_image_more_and_a_region_by_keys_are_answered(
    page: Page, server: str
) -> None:
    """Each control of each lens is used in tests/ui/lenses/test_every_control.py, with no browser.

    Lenses with all kinds of panels are opened in tests/e2e/test_threats.py.
    """
    opened(page, server, running.find_lens("dream"))
    at_rest(page)  # a menu that a run is about to close is seen for a moment
    more, menu = (
        page.get_by_role("button", name="More settings"),
        page.get_by_test_id("stPopoverBody"),
    )
    more.click()
    field = menu.get_by_role("spinbutton", name="Seed")
    field.fill("2")
    field.press("Enter")
    expect(page).to_have_url(re.compile("dream-seed=2"))
    settle(page)
    opened(page, server, running.find_lens("across-images"))
    file = {"name": "another.png", "mimeType": "image/png", "buffer": encoded(picture(5))}
    at_rest(page)
    more.click()
    menu.locator("input[type=file]").set_input_files(file)  # type: ignore[arg-type]
    expect(menu.get_by_text("another.png").first).to_be_visible()
    settle(page)
    opened(page, server, running.find_lens("responds-here"))
    page.locator(".region .stage").press("ArrowLeft")
    expect(page).to_have_url(re.compile("responds-here-[a-z]+=rect"))
    settle(page)


def test_blocks_fold_by_click_and_by_key(page: Page, server: str) -> None:
    trace = running.find_lens("trace")
    opened(page, server, trace, model="ResNet-18", weights="random")
    rows = page.get_by_role("treegrid").get_by_role("row")

    def seen() -> list[str]:
        names: list[str] = rows.locator("td:first-child").filter(visible=True).all_inner_texts()
        return [name.strip() for name in names]

    children = ["conv1", "bn1", "relu", "maxpool", *(f"layer{at}" for at in range(1, 5))]
    children += ["avgpool", "fc"]
    assert seen() == children
    rows.filter(has_text="layer1").first.click()
    assert seen() == [*children[:5], "layer1.0", "layer1.1", *children[5:]]
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert seen()[6:9] == ["layer1.0.conv1", "layer1.0.bn1", "layer1.0.relu"]
    assert page.locator("tr:focus").inner_text().startswith("layer1.0.conv1")
    page.keyboard.press("ArrowLeft")  # out to its block
    page.keyboard.press("ArrowLeft")  # which closes
    assert len(seen()) == len(children) + 2
    page.keyboard.press("End")
    assert page.locator("tr:focus").inner_text().startswith("fc")
    assert "layer=" not in page.url  # the arrows are the table's as long as one is in it
    page.get_by_role("button", name="Unfold all").click()
    assert len(seen()) == 60 + 15
    page.get_by_role("button", name="Fold all", exact=True).click()
    assert seen() == children


def test_the_layer_at_the_side_is_the_lens_s_layer(page: Page, server: str) -> None:
    kernels = running.find_lens("kernels")
    opened(page, server, kernels, layer="stage1.first.conv")
    expect(page.get_by_text("stage1.first.conv (Conv2d) has 48 kernels")).to_be_visible()
    choose(page, "Layer", "stage1.shortcut.conv")
    expect(page.get_by_text("stage1.shortcut.conv (Conv2d) has 48 kernels")).to_be_visible()
    page.locator("body").press("p")
    expect(page.get_by_text("stage1.second.conv (Conv2d) has 48 kernels")).to_be_visible()
    tree = page.locator("nav", has=page.get_by_placeholder("Find a layer"))
    tree.get_by_placeholder("Find a layer").fill("stem")
    tree.locator("[data-name='stem.first.conv']").click()
    expect(page.get_by_text("stem.first.conv (Conv2d) has 32 kernels")).to_be_visible()
    settle(page)
    for layer in ("stage1.second.conv", "stage1.shortcut.conv", "stage1.first.conv"):
        page.go_back()  # each of them was one step
        expect(page.get_by_text(f"{layer} (Conv2d) has 48 kernels")).to_be_visible()
        expect(page.get_by_role("combobox", name="Layer")).to_have_value(
            re.compile(rf"· {re.escape(layer)}$")
        )


def test_a_bar_and_a_tile_lead_to_their_channel_and_back_to_the_lens(
    page: Page, server: str
) -> None:
    matters = running.find_lens("channels-that-matter")
    opened(page, server, matters, layer="stage2.first.conv")
    link = page.url
    main = page.get_by_test_id("stMain")
    for element in (
        main.get_by_role("button", name=re.compile("^channel ")).nth(1),
        main.locator("figure .stage[data-painted]"),
    ):
        element.click(position={"x": 5, "y": 20})
        heading = page.get_by_role("heading", name=re.compile(r"^Channel \d+$"))
        heading.wait_for()
        expect(page.locator(".why h4")).to_be_in_viewport()
        channel = heading.inner_text().split()[1]
        assert "layer=stage2.first.conv" in page.url
        assert f"channel={channel}" in page.url
        assert "lens=" not in page.url
        page.go_back()
        settle(page)
        assert page.url == link
        expect(page.get_by_role("heading", name=matters.question, exact=True)).to_be_visible()


def test_before_and_after_are_flipped_in_one_place(page: Page, server: str) -> None:
    opened(page, server, running.find_lens("ablate"), layer="stage2.first.conv")
    stage = page.locator("figure .stage[data-painted]").first
    before = page.get_by_role("radio", name="before").first

    def below_the_top() -> float:  # of all that is there, however far it is scrolled
        box, top = settled_boxes(page, stage, page.locator(".st-key-hv-header"))
        return box["y"] - top["y"]

    painted, place = stage.get_attribute("data-painted"), below_the_top()
    before.click()
    expect(stage).not_to_have_attribute("data-painted", painted or "")
    settle(page)
    assert below_the_top() == place


@pytest.mark.promise
def test_a_long_run_leaves_nothing_of_the_lens_before_and_can_be_stopped(
    page: Page, server: str
) -> None:
    link = {"model": "ResNet-50", "weights": "random", "layer": "layer2.0.conv3"}
    page.goto(f"{server}/?{urllib.parse.urlencode({**link, 'lens': 'gradients'})}")
    main = page.get_by_test_id("stMain")
    settle(page)
    titles = main.get_by_role("heading", level=3)
    before = titles.all_inner_texts()
    assert before
    matters = running.find_lens("channels-that-matter")
    look_through(page, matters.question)
    stop = page.get_by_role("button", name="Stop", exact=True)
    expect(stop).to_be_visible(timeout=60_000)
    expect(page.get_by_role("heading", name=matters.question, exact=True)).to_be_visible()
    assert not set(before) & set(titles.all_inner_texts())
    expect(page.get_by_role("combobox", name="Ask about layer")).to_have_count(0)
    expect(main.locator(".stMain figure, [data-testid=stDataFrame], h3")).to_have_count(0)
    stop.click()
    expect(page.get_by_text("Stopped.")).to_be_visible()
    expect(stop).to_have_count(0)
    expect(page.get_by_role("button", name="Run it")).to_be_visible()
    look_through(page, "What is the network made of?")  # and the page is alive
    settle(page)


@pytest.mark.promise
def test_what_is_kept_of_a_lens_are_the_numbers_of_the_library(page: Page, server: str) -> None:
    opened(page, server, running.find_lens("grad-cam"), sample="star")
    expect(page.get_by_text(re.compile("^star: score"))).to_be_visible()
    star = next(sample for sample in samples() if sample.name == "star")
    expected = hookviz.run_lens("grad-cam", hookviz.load_model("shapesnet"), star.path)

    with page.expect_download() as waiting:
        page.get_by_role("button", name="The numbers as NPZ", exact=True).click()
    with np.load(waiting.value.path()) as values:
        np.testing.assert_array_equal(values["map"], expected.values["map"])
