"""One's own photograph becomes a toaster, and the card that is saved has that picture."""

import io
import re

import numpy as np
from PIL import Image, ImageOps
from playwright.sync_api import Page, expect

import hookviz
from hookviz.images.samples import samples
from scripts.servers import Server
from tests.e2e.screen import at_rest


def own_photograph() -> bytes:
    """A photograph that no sample is: a cup with its handle on the other side."""
    cup = next(sample.path for sample in samples() if sample.name == "coffee")
    file = io.BytesIO()
    with Image.open(cup) as image:
        ImageOps.mirror(image).convert("RGB").save(file, "PNG")
    return file.getvalue()


def saved(page: Page, name: str) -> tuple[str, np.ndarray]:
    with page.expect_download() as waiting:
        page.get_by_role("button", name=name).click()
    with Image.open(waiting.value.path()) as file:
        return waiting.value.suggested_filename, np.asarray(file.convert("RGB"))


def test_ones_own_photograph_becomes_a_toaster_and_the_card_has_it(
    page: Page, server: Server
) -> None:
    page.goto(f"{server}/?model=squeezenet&image=Upload&lens=toaster&toaster-others=false")
    page.locator("input[type=file]").first.set_input_files(
        {"name": "mine.png", "mimeType": "image/png", "buffer": own_photograph()}
    )
    expect(page.get_by_text(re.compile(r"^took [\d,]+ ms$"))).to_be_visible(timeout=120_000)
    at_rest(page)
    said = page.get_by_text("The network took this for")
    expect(said).to_contain_text("now takes it for toaster")
    found = re.search(r"more than (\d+) of 255", said.inner_text())
    assert found
    bound = int(found[1])

    model = hookviz.load_model("squeezenet")
    before = hookviz.prepare_input(model, own_photograph()).picture
    assert before is not None
    name, changed = saved(page, "The changed picture")
    assert name == "squeezenet-toaster.png"
    assert 0 < np.abs(changed.astype(int) - before).max() <= bound
    opened = hookviz.capture(model, Image.fromarray(changed), size=224, whole=True)
    assert opened.predictions(1)[0][0] == "toaster"
    name, card = saved(page, "Save as a card")  # tests/lenses/test_toaster.py looks into one
    assert name == "squeezenet-toaster-card.png"
    assert card.shape[1] > 1000
