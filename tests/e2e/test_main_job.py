"""An image in, a conv layer's channels on the screen: in a real browser."""

import io
import re
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from playwright.sync_api import Browser, Page, expect
from torch import Tensor

import hookviz
from hookviz.images.samples import samples
from scripts.automatic_grid import automatic_grid
from scripts.browsing import wait_for_grid
from tests.e2e.screen import SHAPESNET, choose, expect_caption, grid_pixels, link_of, new_context
from tests.pictures import encoded, picture
from tests.plain_hooks import every_output


def by_hand(image: Path | bytes, model: hookviz.Model, layer: str) -> Tensor:
    """A first layer's output, computed without a hook."""
    conv = model.network.get_submodule(layer)
    assert isinstance(conv, torch.nn.Conv2d)
    with torch.no_grad():
        values = F.conv2d(
            hookviz.prepare_input(model, image).tensor,
            conv.weight,
            conv.bias,
            conv.stride,
            conv.padding,
        )
    return values[0]


@pytest.mark.promise
def test_the_first_page_shows_the_right_grid(page: Page, server: str) -> None:
    page.goto(server)
    shown = wait_for_grid(page)
    model = hookviz.load_model(hookviz.list_models()[0].name)
    layer = "features.11.squeeze"  # on which the cat opens
    seen = every_output(model.network, hookviz.prepare_input(model, samples()[0].path).tensor)
    assert shown == automatic_grid(seen[layer][0][0]).sprite
    expect_caption(page, "All 64 channels.")
    alt = page.locator("figure img.picture").get_attribute("alt") or ""
    assert f"all 64 channels of layer {layer}" in alt
    choose(page, "Layer", "features.0")
    first = wait_for_grid(page, shown)
    assert first == automatic_grid(by_hand(samples()[0].path, model, "features.0")).sprite
    assert samples()[0].alt in alt


@pytest.mark.promise
def test_a_broken_file_is_explained_and_a_photograph_is_seen(page: Page, server: str) -> None:
    """Which words are said of which file is shown in tests/images/test_reading.py."""
    page.goto(f"{server}/{SHAPESNET}")
    before = wait_for_grid(page)

    def upload(name: str, content: bytes) -> None:
        page.get_by_role("radio", name="Upload").click()
        page.locator("input[type=file]").set_input_files(
            {"name": name, "mimeType": "image/jpeg", "buffer": content}
        )

    hostile = "![x](y) <b>.jpg"
    upload(hostile, encoded(picture(1, 400, 300), "JPEG")[:3000])
    alert = page.get_by_role("alert").filter(has_text=hostile)
    expect(alert).to_contain_text("truncated")
    expect(page.get_by_text("Traceback")).to_have_count(0)
    page.get_by_role("radio", name="Samples").click()
    expect(alert).to_have_count(0)
    assert wait_for_grid(page) == before

    photograph = encoded(picture(5, 300, 200), "JPEG", quality=95)
    upload("holiday.jpg", photograph)
    shown = wait_for_grid(page, before)
    model = hookviz.load_model("shapesnet")
    values = by_hand(photograph, model, "stem.first.conv")
    assert shown == automatic_grid(values).sprite
    expect(page.locator(".hv-classes")).to_have_attribute(
        "title", re.compile("128×128 of 300×200 pixels")
    )


@pytest.mark.promise
def test_model_layer_and_scale_change_the_pixels_as_they_should(page: Page, server: str) -> None:
    page.goto(f"{server}/?model=ShapesNet&weights=random")
    first = wait_for_grid(page)
    choose(page, "Model", "ResNet-18")
    second = wait_for_grid(page, first)
    sample = samples()[0].path
    model = hookviz.load_model("resnet18", "random")
    assert second == automatic_grid(by_hand(sample, model, "conv1")).sprite
    expect(page.get_by_text("random weights: these predictions")).to_be_visible()

    choose(page, "Layer", "layer1.0.conv2")
    third = wait_for_grid(page, second)
    captured = hookviz.capture(model, sample, "layer1.0.conv2")["layer1.0.conv2"]
    assert third == automatic_grid(captured).sprite

    choose(page, "Scale", "symmetric")
    fourth = wait_for_grid(page, third)
    assert fourth == hookviz.make_grid(captured, scale="symmetric", colormap="RdBu_r").sprite
    assert grid_pixels(page).size == Image.open(io.BytesIO(third)).size

    assert link_of(page) == {
        "model": "ResNet-18",
        "weights": "random",
        "layer": "layer1.0.conv2",
        "scale": "symmetric",
    }
    page.reload()
    assert wait_for_grid(page) == fourth


@pytest.mark.promise
def test_a_sample_is_chosen_by_click_or_key_and_kept_in_the_link(page: Page, server: str) -> None:
    page.goto(f"{server}/{SHAPESNET}")
    first = wait_for_grid(page)
    second, third = samples()[1:3]
    page.get_by_role("radio", name=second.title).click()
    clicked = wait_for_grid(page, first)
    assert f"sample={second.name}" in page.url
    page.keyboard.press("ArrowRight")
    stepped = wait_for_grid(page, clicked)
    assert f"sample={third.name}" in page.url
    page.reload()
    assert wait_for_grid(page) == stepped
    expect(page.get_by_role("radio", name=third.title)).to_be_checked()


@pytest.mark.promise
def test_the_camera_takes_a_photograph(page: Page, server: str) -> None:
    page.goto(f"{server}/{SHAPESNET}")
    before = wait_for_grid(page)
    page.get_by_role("radio", name="Camera").click()
    page.wait_for_function("() => document.querySelector('video')?.readyState >= 3")  # it films
    page.get_by_role("button", name="Take Photo").click()
    after = wait_for_grid(page, before)
    assert Image.open(io.BytesIO(after)).size == Image.open(io.BytesIO(before)).size
    expect(page.get_by_role("alert")).to_have_count(0)


@pytest.mark.promise
def test_two_people_see_their_own_images(browser: Browser, server: str) -> None:
    contexts = [new_context(browser) for _ in range(2)]
    pages = [context.new_page() for context in contexts]
    for opened, sample in zip(pages, ("coffee", "heart"), strict=True):
        opened.goto(f"{server}/{SHAPESNET}&sample={sample}")
    grids = [wait_for_grid(opened) for opened in pages]
    model = hookviz.load_model("shapesnet")
    for shown, name in zip(grids, ("coffee", "heart"), strict=True):
        path = next(sample.path for sample in samples() if sample.name == name)
        values = by_hand(path, model, "stem.first.conv")
        assert shown == automatic_grid(values).sprite
    for context in contexts:
        context.close()
