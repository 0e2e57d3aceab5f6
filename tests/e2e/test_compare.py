"""Something pinned as A against what is looked at: flipped, split, subtracted, and in numbers."""

import re

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page, Request, expect

import hookviz
from hookviz.images.samples import samples
from scripts.browsing import STAGE, settled_boxes, tile_centre, tiles, wait_for_grid
from tests.e2e.screen import (
    SHAPESNET,
    asked_in,
    at_rest,
    choose,
    compare,
    expect_caption,
    link_of,
    new_context,
    open_model_settings,
    pixels,
    read_numbers,
)

LAYER = "stem.first.conv"


@pytest.fixture(scope="module")
def untrained() -> torch.Tensor:
    """The first layer's values with random weights, for the first sample."""
    model = hookviz.load_model("shapesnet", "random")
    return hookviz.capture(model, samples()[0].path, LAYER)[LAYER].values


def pin(page: Page, address: str) -> bytes:
    """Compare what an address shows with itself; the grid of both."""
    page.goto(address)
    single = wait_for_grid(page)
    compare(page)
    expect_caption(page, "There is no B yet.")
    return wait_for_grid(page, single)


def against_random(page: Page, server: str) -> None:
    """Pretrained weights are A, random ones are B."""
    before = pin(page, f"{server}/{SHAPESNET}")
    open_model_settings(page)
    page.get_by_role("radio", name="random").click()
    expect_caption(page, f"A Cat · ShapesNet · {LAYER} B ShapesNet, random")
    wait_for_grid(page, before)
    expect(page.locator(".compare-row .seen > span img")).to_have_count(2)


def show(page: Page, name: str) -> None:
    page.get_by_role("radiogroup", name="What is shown of the two").get_by_text(
        name, exact=True
    ).click()
    face = {"A": "a", "B": "b", "Split": "split"}[name]
    expect(page.locator(STAGE)).to_have_attribute("data-face", re.compile(f"^{face} "))


def canvas(page: Page) -> NDArray[np.uint8]:
    page.mouse.move(1, 1)  # so that no tile is framed
    tiles(page)
    return pixels(page.locator(f"{STAGE} canvas"))


@pytest.mark.promise
def test_flip_and_split_show_the_tiles_of_either_and_the_link_holds_both(
    page: Page, browser: Browser, server: str
) -> None:
    against_random(page, server)
    asked: list[str] = []

    def note(sent: Request) -> None:
        if "/explorer?" in sent.url:
            asked.append(asked_in(sent)["question"]["name"])

    page.on("request", note)
    show(page, "A")
    only_a = canvas(page)
    stand = [
        page.locator(part) for part in (f"{STAGE} canvas", ".zoom", ".flip", ".compare-row .says")
    ]
    stood = settled_boxes(page, *stand)
    show(page, "B")
    only_b = canvas(page)
    assert settled_boxes(page, *stand) == stood
    assert (only_a != only_b).any(axis=2).mean() > 0.5
    page.keyboard.down("f")
    assert np.array_equal(canvas(page), only_a)
    page.keyboard.up("f")
    assert np.array_equal(canvas(page), only_b)
    flip = page.get_by_role("button", name="Flip")
    flip.focus()
    page.keyboard.down(" ")
    expect(flip).to_have_attribute("aria-pressed", "true")
    assert np.array_equal(canvas(page), only_a)
    page.keyboard.up(" ")
    expect(flip).to_have_attribute("aria-pressed", "false")
    show(page, "Split")
    assert not asked  # for the picture holds both
    assert settled_boxes(page, *stand) == stood
    page.locator(".split input").fill("25")
    split, first = canvas(page), tiles(page)
    edge = round(first.wide / 4)
    high = int(first.high)
    assert np.array_equal(split[16:high, : edge - 1], only_a[16:high, : edge - 1])
    beyond = slice(edge + 1, int(first.wide))
    assert np.array_equal(split[16:high, beyond], only_b[16:high, beyond])

    elsewhere = new_context(browser, viewport={"width": 390, "height": 844})
    other = elsewhere.new_page()
    other.goto(page.url)
    assert wait_for_grid(other) == wait_for_grid(page)
    expect(other.locator(STAGE)).to_have_attribute("data-face", re.compile("^split"))
    assert other.evaluate("document.documentElement.scrollWidth") <= 390
    other.get_by_role("button", name="Unpin A").click()
    expect(other.get_by_role("button", name="Unpin A")).to_have_count(0)
    assert "a" not in link_of(other)
    page.go_back()
    expect(page.locator(STAGE)).to_have_attribute("data-face", re.compile("^b"))


def test_the_difference_and_what_changed_most_and_a_channel_in_both(
    page: Page, server: str, values: torch.Tensor, untrained: torch.Tensor
) -> None:
    against_random(page, server)
    box = tiles(page).box(10)
    page.mouse.move(box["x"] + 20.5 / 64 * box["width"], box["y"] + 30.5 / 64 * box["height"])
    line = page.locator("figure output")
    expect(line).to_contain_text(re.compile("channel 10 · A ≈ .* · B ≈ .* at row"))
    _, a, b, at_row, at_column = read_numbers(line.inner_text())
    limit = max(values.abs().max().item(), untrained.abs().max().item())
    shown = read_numbers(page.locator("figure .ticks").inner_text())
    for said, exact in ((a, values[10]), (b, untrained[10])):
        clipped = exact[int(at_row), int(at_column)].clamp(min(shown), max(shown)).item()
        assert said == pytest.approx(clipped, abs=2 * limit / 253)

    change = (untrained - values).double().abs().mean((1, 2))
    expected = change.argsort(descending=True).tolist()
    rows = page.locator(".hv-changes tr")
    expect(rows.nth(1).locator("td").first).to_have_text(str(expected[0]))
    group = page.get_by_role("radiogroup", name="What is shown of the two")
    group.get_by_text("Difference", exact=True).click()
    expect_caption(page, "B − A: red where B is higher, blue where A is.")
    choose(page, "Sort by", "change")
    expect(page.locator(STAGE)).to_have_attribute(
        "aria-valuetext", re.compile(f"^channel {expected[0]} ")
    )
    spoken = page.locator(STAGE).get_attribute("aria-valuetext") or ""
    lowest, mean, highest = read_numbers(spoken)[1:4]
    difference = (untrained - values)[expected[0]]
    assert [lowest, mean, highest] == pytest.approx(
        [difference.min().item(), difference.mean().item(), difference.max().item()], rel=6e-3
    )
    page.mouse.click(*tile_centre(page, expected.index(12)))  # for it is sorted by change
    beside = page.locator(".in-common .hv-numbers")
    expect(beside).to_contain_text("correlation")
    at_rest(page)
    of_both = [pixels(page.locator(f".{side} .single .picture")) for side in ("of-a", "of-b")]
    assert all(each[..., 3].all() for each in of_both)
    assert (of_both[0] != of_both[1]).any()  # neither is the difference, whose tiles are shown
    row, column = map(int, link_of(page)["cell"].split(",")[:2])
    of_cell = page.locator(".of-difference output")
    expect(of_cell).to_contain_text(f"row {row}, column {column}")
    changed = (untrained - values)[12, row, column].item()
    assert read_numbers(of_cell.inner_text())[-1] == pytest.approx(changed, rel=1e-4)


def test_two_shapes_are_shown_one_after_the_other(
    page: Page, server: str, values: torch.Tensor
) -> None:
    pin(page, f"{server}/{SHAPESNET}")
    choose(page, "Layer", "stage2.first.conv")
    expect_caption(page, "A has 32 maps of 64×64 and B")
    group = page.get_by_role("radiogroup", name="What is shown of the two")
    expect(group.get_by_role("radio")).to_have_count(2)
    expect(page.locator(STAGE)).not_to_have_attribute("aria-valuemax", "31")
    group.get_by_text("A", exact=True).click()
    expect(page.locator(STAGE)).to_have_attribute("aria-valuemax", "31")
    box = tiles(page).box(12)
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.get_by_role("heading", name="Channel 12 of A")).to_be_visible()
    row, column = map(int, link_of(page)["cell"].split(",")[:2])
    line = page.locator(".single output:visible")
    expect(line).to_contain_text(f"row {row}, column {column}")
    expect(line).not_to_contain_text("≈")  # as read from the tile's colour, until its values come
    assert read_numbers(line.inner_text())[-1] == pytest.approx(
        values[12, row, column].item(), rel=1e-4
    )
    expect(page.get_by_text("What excites the channel")).to_be_hidden()
    group.get_by_text("B", exact=True).click()
    expect(page.get_by_role("heading", name="Channel 12", exact=True)).to_be_visible()
