"""The instruments around a channel: the tree, the zoom, the large map, the kernel and its walk."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from playwright.sync_api import FloatRect, Page, Route, expect

import hookviz
from hookviz.images.samples import samples
from scripts.automatic_grid import automatic_grid
from scripts.browsing import settled_box, tile_centre, tiles, wait_for_grid
from tests.e2e.screen import (
    SHAPESNET,
    Questions,
    asked_in,
    at_rest,
    choose,
    expect_caption,
    open_channel_menu,
    open_more,
    pixels,
    read_numbers,
)
from tests.e2e.test_accessibility import serious

LAYER = "stem.first.conv"


@pytest.mark.promise
def test_the_tree_finds_and_picks_layers_in_blocks_that_fold(page: Page, server: str) -> None:
    page.goto(f"{server}/{SHAPESNET}&channel=3")
    first = wait_for_grid(page)
    tree = page.get_by_role("navigation", name="Layers of the network")
    expect(tree.locator("summary")).to_have_count(4)
    current = tree.locator('button[aria-current="true"]')
    expect(current).to_contain_text("7×7 /2 · 32×64×64")
    expect(current).to_contain_text("sees 7×7 px · 4.7 k parameters · 19.3 M multiply-adds")
    expect(tree.locator("button:visible")).to_have_count(1)
    search = tree.get_by_role("searchbox")
    search.fill("second")
    expect(tree.locator("button:visible")).to_have_count(3)
    search.fill("nothing like that")
    expect(tree.get_by_text("No such layer")).to_be_visible()
    search.fill("128x8x8")
    expect(tree.locator("button:visible").first).to_contain_text("128×8×8")
    search.fill("7x7")  # the kernel of one, and what a cell of another sees
    expect(tree.locator("button:visible")).to_have_count(2)
    search.fill("7x7 /2")
    expect(tree.locator("button:visible")).to_have_count(1)
    search.fill("STAGE3.second")
    tree.locator("button:visible").click()
    conv = wait_for_grid(page, first)
    expect(page.get_by_role("combobox", name="Layer")).to_have_value("9 · stage3.second.conv")
    assert "layer=stage3.second.conv" in page.url
    expect(current).to_contain_text("second.conv")
    expect(current).to_contain_text("128×8×8")

    page.get_by_text("All maps", exact=True).click()
    page.wait_for_url("**layers=maps**")
    expect(page.get_by_role("heading", name="Channel 3")).to_be_visible()
    search.fill("")
    tree.locator('button[data-name="stage1"]').click()
    block = wait_for_grid(page, conv)
    captured = hookviz.capture(hookviz.load_model("shapesnet"), samples()[0].path, "stage1")
    assert block == automatic_grid(captured["stage1"]).sprite
    expect(page.get_by_text("is a block of")).to_be_visible()
    expect(current).to_contain_text("48×32×32")
    expect(current.locator(".preview")).to_have_css("background-image", re.compile("data:image"))
    part = tree.locator('button[data-name="stage1.first"]')
    expect(part).to_be_hidden()
    tree.get_by_role("button", name="Parts of stage1", exact=True).click()
    expect(part).to_be_visible()
    search.fill("3")
    expect(tree.locator('button[data-number="3"]')).to_be_visible()
    search.fill("stage1.relu")
    tree.locator('button[data-name="stage1.relu"]').click()
    after = wait_for_grid(page, block)
    expect(page.get_by_text("ReLU keeps what is above zero")).to_be_visible()
    assert serious(page) == []
    page.go_back()
    assert wait_for_grid(page, after) == block


def test_zooming_keeps_every_cell_sharp_and_the_numbers_right(page: Page, server: str) -> None:
    page.goto(f"{server}/{SHAPESNET}")
    wait_for_grid(page)
    canvas = page.locator("figure .stage canvas")
    before = tiles(page)
    out, closer = (
        page.get_by_role("button", name=f"Zoom {direction}") for direction in ("out", "in")
    )
    expect(out).to_be_disabled()
    closer.click()
    closer.click()
    expect(page.locator(".window.zoomed")).to_have_count(1)
    grown = tiles(page)
    assert grown.columns == before.columns
    assert grown.wide == pytest.approx(4 * before.wide, rel=0.02)  # a scroll bar takes some room
    assert grown.wide > 4 * 64
    left, top = 40 / 64 * grown.wide, 30 / 64 * grown.high  # of a cell of the first tile
    cell = pixels(canvas)[round(top) + 1 : round(top) + 5, round(left) + 1 : round(left) + 5]
    assert (cell == cell[0, 0]).all()  # one colour up to its edges
    assert page.evaluate("document.documentElement.scrollWidth") <= 1440
    window = page.locator(".window").bounding_box()
    assert window is not None
    page.mouse.move(window["x"] + 200, window["y"] + 200)
    expect(page.locator("figure output")).to_contain_text(re.compile(r"≈ .* at row \d+"))
    page.locator("figure .stage").focus()
    page.keyboard.press("0")
    assert (tiles(page).columns, tiles(page).wide) == (before.columns, before.wide)


def test_the_cell_that_is_read_is_the_cell_that_is_picked(page: Page, server: str) -> None:
    size = {"width": 1280, "height": 720}
    page.set_viewport_size(size)  # type: ignore[arg-type]
    page.goto(f"{server}/{SHAPESNET}&origin=Numbers")
    wait_for_grid(page)
    screen = page.context.new_cdp_session(page)
    options = {**size, "mobile": False, "deviceScaleFactor": 1.25}
    screen.send("Emulation.setDeviceMetricsOverride", options)
    page.wait_for_function("() => devicePixelRatio === 1.25")
    random = np.random.default_rng(0)

    def read_and_pick(box: FloatRect, output: str) -> None:
        across, down = random.random(2) * 0.96 + 0.02
        x, y = box["x"] + across * box["width"], box["y"] + down * box["height"]
        page.mouse.move(x, y)
        read = page.locator(output)
        expect(read).to_contain_text(re.compile(r"row \d+"))
        row, column = re.findall(r"row (\d+), column (\d+)", read.inner_text())[0]
        page.mouse.click(x, y)
        page.wait_for_url(re.compile(rf"cell={row}%2C{column}%2C64%2C64"))
        expect(page.get_by_role("spinbutton", name="Row")).to_have_value(row)
        expect(page.get_by_role("spinbutton", name="Column")).to_have_value(column)

    for zoom in (False, True):
        if zoom:
            page.get_by_role("button", name="Zoom in").click()
        for position in (0, 1):
            read_and_pick(tiles(page).box(position), "figure output")
        read_and_pick(settled_box(page, page.locator(".map-b .stage")), ".map-b output")


@pytest.mark.promise
def test_the_large_map_reads_exact_values_and_picks_cells(
    page: Page, server: str, values: torch.Tensor
) -> None:
    page.goto(f"{server}/{SHAPESNET}&channel=9&cell=3,4&origin=Numbers")
    wait_for_grid(page)
    stage = page.get_by_role("application", name=re.compile("The map of channel 9"))
    line = page.locator(".single output:visible")
    expect(line).to_contain_text(f"row 3, column 4 · {_six(values[9, 3, 4])}")
    stage.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    expect(line).to_contain_text(f"row 4, column 5 · {_six(values[9, 4, 5])}")
    page.keyboard.press("Enter")
    page.wait_for_url("**cell=4%2C5**")
    expect(page.get_by_role("spinbutton", name="Row")).to_have_value("4")
    box = stage.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] * 40.5 / 64, box["y"] + box["height"] * 30.5 / 64)
    page.wait_for_url("**cell=30%2C40**")
    expect(page.get_by_text("framed: what the cell sees, 7×7 px")).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("channel 9 laid over"))).to_be_visible()


def test_a_click_while_another_layer_is_on_its_way_is_about_the_one_that_is_shown(
    page: Page, server: str, values: torch.Tensor
) -> None:
    asked: list[tuple[str, str]] = []
    held: list[Route] = []

    def hold(route: Route) -> None:
        sent = asked_in(route.request)
        asked.append((sent["question"]["name"], sent["view"].get("layer", LAYER)))
        if sent["question"]["name"] == "tiles":
            held.append(route)
        else:
            route.continue_()

    questions = Questions(page)
    page.goto(f"{server}/{SHAPESNET}&channel=9&cell=3,4&origin=Numbers")
    wait_for_grid(page)
    stage = page.get_by_role("application", name=re.compile("The map of channel 9"))
    expect(page.locator(".why .sum")).not_to_be_empty()
    questions.act = hold
    page.keyboard.press("n")
    expect(page.get_by_role("combobox", name="Layer")).not_to_have_value(f"1 · {LAYER}")
    stage.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("spinbutton", name="Row")).to_have_value("4")
    line = page.locator(".single output:visible")
    expect(line).to_contain_text(f"row 4, column 4 · {_six(values[9, 4, 4])}")
    page.wait_for_function("() => window.hvQuestions >= 1")
    expect(page.locator(".why.stale")).to_have_count(0)
    assert ("cell", LAYER) in asked
    assert all(layer == LAYER for name, layer in asked if name == "cell")
    page.locator("figure .stage").click(position={"x": 5, "y": 5})  # of no layer that is chosen
    assert "channel=9" in page.url
    questions.act = None
    for route in held:
        route.continue_()
    at_rest(page)
    expect(page.get_by_role("heading", name="Channel 9")).to_be_visible()
    assert any(name == "tiles" and layer != LAYER for name, layer in asked)


def test_a_channel_that_is_picked_by_key_opens_at_its_strongest_cell(
    page: Page, server: str, values: torch.Tensor
) -> None:
    page.goto(f"{server}/{SHAPESNET}&origin=Numbers")
    wait_for_grid(page)
    page.keyboard.press("/")
    page.keyboard.type("9")
    page.keyboard.press("Enter")
    place = [page.get_by_role("spinbutton", name=name) for name in ("Row", "Column")]

    def expect_cell(at: "int | torch.Tensor") -> None:
        for field, number in zip(place, divmod(int(at), 64), strict=True):
            expect(field).to_have_value(str(number))

    highest, lowest = values[9].argmax(), values[9].argmin()
    expect_cell(highest)
    assert "cell=" not in page.url
    line = page.locator(".single output:visible")
    expect(line).to_contain_text(_six(values[9].max()))
    numbers = page.locator(".in-numbers .hv-numbers")
    numbers.get_by_role("button").first.click()
    page.wait_for_url("**cell=**")
    expect_cell(lowest)
    expect(line).to_contain_text(_six(values[9].min()))
    numbers.get_by_role("button").last.click()
    expect_cell(highest)
    page.go_back()
    expect_cell(lowest)
    choose(page, "Sort by", "max")  # by the value in that cell
    expect_cell(highest)
    assert "cell=" not in page.url
    page.get_by_role("button", name="Close").click()
    choose(page, "Sort by", "variance")
    choose(page, "Sort by", "max")
    page.locator("figure .stage").focus()
    page.keyboard.press("Enter")
    strongest = int(values.amax((1, 2)).argmax())
    expect(page.get_by_role("heading", name=f"Channel {strongest}")).to_be_visible()
    expect_cell(values[strongest].argmax())


def test_order_and_how_many_ask_nobody(page: Page, server: str, values: torch.Tensor) -> None:
    asked: list[str] = []
    page.on("request", lambda sent: asked.append(sent.url))
    page.goto(f"{server}/{SHAPESNET}&channel=9&sort=mean")
    before = wait_for_grid(page)
    at_rest(page)
    asked.clear()
    stage = page.locator("figure .stage")
    for sort, top in (("max", "16"), ("variance", "all"), ("zeros", "16"), ("index", "all")):
        choose(page, "Sort by", sort)
        choose(page, "Channels", top)
        grid = hookviz.make_grid(values, sort=sort, top=16 if top == "16" else None)
        expect(stage).to_have_attribute("aria-valuemax", str(len(grid.order) - 1))
        expect_caption(page, "16 of 32 shown." if top == "16" else "All 32 channels.")
        at = len(grid.order) - 2
        page.mouse.move(*tile_centre(page, at))
        channel = int(grid.order[at])
        expect(stage).to_have_attribute("aria-valuetext", re.compile(rf"^channel {channel}\b"))
        low, mean, high = read_numbers(stage.get_attribute("aria-valuetext") or "")[1:4]
        cells = values[channel]
        known = [cells.min().item(), cells.mean().item(), cells.max().item()]
        assert [low, mean, high] == pytest.approx(known, rel=6e-3)
    assert wait_for_grid(page) == before
    assert not [url for url in asked if "/hookviz/explorer?" in url]


def test_tiles_that_do_not_come_are_told_from_those_that_are_shown(page: Page, server: str) -> None:
    questions = Questions(page)
    page.goto(f"{server}/{SHAPESNET}")
    before = wait_for_grid(page)

    def refuse(route: Route) -> None:
        if asked_in(route.request)["question"]["name"] == "tiles":
            route.fulfill(status=507, json={"says": "There is too little memory."})
        else:
            route.continue_()

    questions.act = refuse
    page.keyboard.press("n")
    alert = page.get_by_role("alert").filter(has_text="There is too little memory.")
    expect(alert).to_be_visible()
    expect(page.locator(".grid-place")).to_have_css("opacity", "0.35")
    page.mouse.click(*tile_centre(page, 3))
    assert "channel" not in page.url  # of which layer?
    page.go_back()  # to what is known
    expect(alert).to_be_hidden()
    expect(page.locator(".grid-place")).to_have_css("opacity", "1")
    page.mouse.click(*tile_centre(page, 3))
    expect(page.get_by_role("heading", name="Channel 3")).to_be_visible()
    questions.act = None

    page.evaluate("""() => {
      const decode = Image.prototype.decode;
      Image.prototype.decode = function () {
        Image.prototype.decode = decode;
        return Promise.reject(new DOMException("", "EncodingError"));
      };
    }""")
    page.keyboard.press("n")
    broken = page.get_by_role("alert").filter(has_text="can't show the picture of the tiles")
    expect(broken).to_be_visible()
    page.keyboard.press("p")
    expect(broken).to_be_hidden()
    assert wait_for_grid(page) == before
    page.keyboard.press("n")
    assert wait_for_grid(page, before) != before


def _six(value: torch.Tensor) -> str:
    """As JavaScript's toPrecision(6) writes it; six digits are fewer than float32 has."""
    number = float(value)
    digits = 5 - int(np.floor(np.log10(abs(number))))
    return f"{number:.{digits}f}".replace("-", "−")


@pytest.mark.promise
def test_what_is_kept_of_a_view_is_what_is_on_the_screen(
    page: Page, server: str, model: hookviz.Model, tmp_path: Path
) -> None:
    layer = "stage1.first.conv"
    page.goto(f"{server}/{SHAPESNET}&scale=symmetric&sort=max&top=16")
    before = wait_for_grid(page)
    choose(page, "Layer", layer)  # after which the menus are as they were
    wait_for_grid(page, before)
    page.locator("figure .stage").focus()
    page.keyboard.press("Enter")

    def kept(label: str) -> Path:
        with page.expect_download() as waiting:
            page.get_by_role("button", name=label, exact=True).click()
        file = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(file)
        return file

    open_more(page, "Download")
    grid = kept("Grid as PNG").rename(tmp_path / "grid.png")
    with Image.open(kept("Figure as PNG")) as figure:
        assert figure.width > 2000
    assert kept("Figure as PDF").read_bytes().startswith(b"%PDF")
    values = hookviz.capture(model, samples()[0].path, layer)[layer].values
    with np.load(kept("Activations as NPZ")) as arrays:
        np.testing.assert_array_equal(arrays[layer], values.numpy())
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("stPopoverBody").filter(visible=True)).to_have_count(0)

    open_channel_menu(page)
    assert kept("Channel as PNG").read_bytes().startswith(b"\x89PNG")
    assert kept("Channel as PDF").read_bytes().startswith(b"%PDF")
    numbers = np.loadtxt(kept("Numbers as CSV"), delimiter=",", dtype="float32")
    np.testing.assert_array_equal(numbers, values[values.amax((1, 2)).argmax()].numpy())

    open_more(page, "Copy as code")
    expect(page.get_by_text("without HookViz, pixel for pixel")).to_be_visible()
    for label in ("The image", "The weights"):
        kept(label)
    script = kept("The script")
    program = [sys.executable, "-I", script.name]
    subprocess.run(program, cwd=tmp_path, check=True, capture_output=True)
    drawn = Image.open(tmp_path / f"shapesnet-{layer}.png").convert("RGBA")
    screen = Image.open(grid).convert("RGBA")
    assert drawn.size == screen.size
    opaque = np.asarray(screen)[..., 3] > 0
    np.testing.assert_array_equal(np.asarray(drawn)[opaque], np.asarray(screen)[opaque])
