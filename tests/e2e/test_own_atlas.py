"""An atlas of a visitor's own images: made beside the page, shown to its session, gone with it."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, FilePayload, Locator, Page, expect

import hookviz
from scripts.browsing import wait_for_grid
from tests.atlas.folders import save_folder
from tests.e2e.screen import (
    SHAPESNET,
    link_of,
    new_context,
    open_channel_menu,
    open_model_settings,
    read_number,
)

LAYER, CHANNEL = "stage3.second.conv", 9
LINK = f"{SHAPESNET}&layer={LAYER}&channel={CHANNEL}"


def patches(page: Page) -> Locator:
    return page.get_by_role("group", name=f"What excites channel {CHANNEL} most").get_by_role(
        "button"
    )


def menu(page: Page, label: str) -> None:
    """Open the menu of images to look through, while `label` is over the patches."""
    page.get_by_text(label, exact=True).wait_for()
    open_channel_menu(page)
    page.get_by_role("button", name="Find what excites it…").click()


def upload(page: Page, files: list[FilePayload], count: int) -> None:
    """Have an atlas made of these files, `count` of them to be expected."""
    page.get_by_label("An atlas of your own images").locator("input").set_input_files(files)
    page.get_by_role("button", name=f"Make it of {count} images").click()


def payload(paths: list[Path]) -> list[FilePayload]:
    return [
        {"name": path.name, "mimeType": "image/png", "buffer": path.read_bytes()} for path in paths
    ]


def test_ones_own_images_are_looked_through_and_lead_to_themselves(
    page: Page, browser: Browser, server: str, tmp_path: Path
) -> None:
    """Of two real sessions at once, each sees the atlas of its own files."""
    own = save_folder(tmp_path / "own", 6)
    other = new_context(browser).new_page()
    for visitor in (page, other):
        visitor.goto(f"{server}/{LINK}")
        wait_for_grid(visitor)
    menu(page, "among 114 images")
    hostile = "<img src=x onerror=alert(1)>$x$.png"
    words: FilePayload = {"name": hostile, "mimeType": "image/png", "buffer": b"words"}
    upload(page, [*payload(own), words], 7)
    menu(other, "among 114 images")
    theirs = save_folder(tmp_path / "theirs", 3, first=50)
    upload(other, payload(theirs), 3)
    expect(page.get_by_text("among your 6 images")).to_be_visible()
    expect(other.get_by_text("among your 3 images")).to_be_visible()

    for visitor, paths in ((page, own), (other, theirs)):
        atlas = hookviz.make_atlas(
            hookviz.load_model("shapesnet"), paths, tmp_path / f"{len(paths)}.atlas", batch=1
        )
        expected = atlas.top_activations(LAYER, CHANNEL)
        expect(patches(visitor)).to_have_count(len(paths))
        for rank, excitation in enumerate(expected):
            row, column = excitation.cell
            says = f"^{re.escape(excitation.image.name)}: .* at row {row}, column {column}$"
            expect(patches(visitor).nth(rank)).to_have_accessible_name(re.compile(says))
        if visitor is other:
            continue
        before = wait_for_grid(page)
        patches(page).first.click()
        wait_for_grid(page, before)
        query = link_of(page)
        row, column = expected[0].cell
        assert query["cell"].split(",")[:2] == [str(row), str(column)]
        assert (query["image"], query["channel"]) == ("Upload", str(CHANNEL))
        line = page.locator(".single output:visible")
        expect(line).to_contain_text(f"row {row}, column {column}")
        expect(line).not_to_contain_text("≈")  # which stands until the number itself has come
        said = read_number(line.inner_text().rpartition("·")[2])
        assert said == pytest.approx(expected[0].value, rel=1e-5)

    menu(page, "among your 6 images")
    expect(page.get_by_text(f"Left out: '{hostile}' is no image")).to_be_visible()
    page.get_by_role("radio", name="114 others").click()
    expect(page.get_by_text("among 114 images")).to_be_visible()
    mine = wait_for_grid(page)
    patches(page).first.click()  # of a drawing that comes with the network
    wait_for_grid(page, mine)
    page.go_back()
    expect(page.get_by_role("heading", name=f"Channel {CHANNEL}")).to_be_visible()
    open_model_settings(page)
    page.get_by_role("radio", name="random").click()  # which no atlas is of
    expect(page.get_by_role("button", name="among your images…")).to_be_visible()
