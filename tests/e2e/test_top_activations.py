"""What excites a channel, beside it on the page: patches that lead to their images."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

import hookviz
from hookviz.atlas.reading import atlas_of
from hookviz.drawing.pictures import patch_sheet
from hookviz.images.samples import samples
from scripts.browsing import wait_for_grid
from tests.e2e.screen import SHAPESNET, choose, read_number

LAYER, CHANNEL = "stage3.second.conv", 9


def patches(page: Page) -> Locator:
    return page.get_by_role("group", name=f"What excites channel {CHANNEL} most").get_by_role(
        "button"
    )


@pytest.mark.by_day
def test_a_strong_patch_beside_the_channel_leads_to_its_image_where_the_cell_has_that_value(
    page: Page, server: str
) -> None:
    atlas = atlas_of(hookviz.load_model("shapesnet"))
    assert atlas is not None
    excitations = atlas.top_activations(LAYER, CHANNEL)
    page.goto(f"{server}/{SHAPESNET}&layer={LAYER}&channel={CHANNEL}")
    before = wait_for_grid(page)
    expect(patches(page)).to_have_count(len(excitations))
    for rank, excitation in enumerate(excitations):
        row, column = excitation.cell
        expect(patches(page).nth(rank)).to_have_accessible_name(
            re.compile(f"^{re.escape(excitation.image.name)}: .* at row {row}, column {column}$")
        )
    first = excitations[0]
    patches(page).first.click()
    after = wait_for_grid(page, before)
    row, column = first.cell
    query = parse_qs(urlsplit(page.url).query)
    assert query["cell"][0].split(",")[:2] == [str(row), str(column)]
    assert query["channel"] == [str(CHANNEL)]
    line = page.locator(".single output:visible")
    expect(line).to_contain_text(f"row {row}, column {column}")
    said = read_number(line.inner_text().rpartition("·")[2])
    assert said == pytest.approx(first.value, rel=1e-5)
    page.go_back()
    expect(page.get_by_role("heading", name=f"Channel {CHANNEL}")).to_be_visible()
    assert wait_for_grid(page, after) == before
    page.get_by_role("radio", name="random").click()  # which no atlas is of
    expect(page.get_by_role("button", name="among your images…")).to_be_visible()
    expect(patches(page)).to_have_count(0)


def test_the_channels_that_answer_to_a_class_or_to_the_image(page: Page, server: str) -> None:
    atlas = atlas_of(hookviz.load_model("shapesnet"))
    assert atlas is not None
    page.goto(f"{server}/{SHAPESNET}&layer={LAYER}&patches=true")
    before = wait_for_grid(page)
    everything = sum(atlas.layers.values()) * atlas.top
    digest = hookviz.read_image(samples()[0].path).digest
    patches = atlas.first_patches(LAYER)
    for option, answers in (
        ("triangle", atlas.channels_of_class("triangle", everything)),
        ("those for this image", atlas.channels_of_image(digest, everything)),
    ):
        choose(page, "Which channels", option)
        before = wait_for_grid(page, before)
        channels = [each.channel for each in answers if each.layer == LAYER]
        assert 0 < len(channels) < 128
        expected = patch_sheet([patches[each] for each in channels], atlas.options["patch"])
        assert before == expected.png
        expect(page.get_by_text(f"{len(channels)} of 128 shown")).to_be_visible()
