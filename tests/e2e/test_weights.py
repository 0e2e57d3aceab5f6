"""Weights in a real browser: downloaded with progress, out of reach, uploaded, refused."""

import hashlib
import io
import pickle
from pathlib import Path
from urllib.parse import urlencode

import pytest
import torch
from playwright.sync_api import Browser, Page, expect
from torch import Tensor
from torchvision import models

import hookviz
from hookviz.images.samples import samples
from scripts.automatic_grid import automatic_grid
from scripts.browsing import wait_for_grid
from scripts.servers import Server
from tests.e2e.probing import get
from tests.e2e.screen import choose, new_context, open_model_settings
from tests.weights_server import Answer, WeightsServer

NAME, TITLE, LAYER = "squeezenet1_1", "SqueezeNet 1.1", "features.0"


@pytest.fixture(scope="module")
def state() -> dict[str, Tensor]:
    """Weights of the network that are neither the pretrained nor the random ones."""
    generator = torch.Generator().manual_seed(5)
    return {
        key: torch.randn(value.shape, generator=generator) * 0.05
        for key, value in models.get_model(NAME).state_dict().items()
    }


def saved(content: object) -> bytes:
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def grid_of(checkpoint: bytes, tmp_path: Path) -> bytes:
    path = tmp_path / "expected.pth"
    path.write_bytes(checkpoint)
    model = hookviz.load_model(NAME, path)
    return automatic_grid(hookviz.capture(model, samples()[0].path, LAYER)[LAYER]).sprite


@pytest.mark.by_day
def test_a_download_is_cancelled_begun_again_and_one_for_all_who_wait(
    browser: Browser,
    probed: Server,
    probed_home: Path,
    state: dict[str, Tensor],
    tmp_path: Path,
) -> None:
    body = saved(state)
    file_name = f"{NAME}-{hashlib.sha256(body).hexdigest()[:8]}.pth"
    with WeightsServer() as mirror:
        url = mirror.add(file_name, body, Answer(hold_after=2_000_000))
        get(f"{probed}/weights?{urlencode({'url': url})}")
        first, second = (new_context(browser).new_page() for _ in range(2))
        for page in (first, second):
            page.set_default_timeout(30_000)
            page.goto(f"{probed}/?model={TITLE}")
            expect(page.get_by_role("button", name="Download 5 MB")).to_be_visible()
        first.get_by_role("button", name="Download 5 MB").click()
        expect(first.get_by_text("2.0 of 5.0 MB")).to_be_visible(timeout=30_000)
        first.get_by_role("button", name="Cancel").click()
        expect(first.get_by_role("alert")).to_contain_text("You cancelled the download")
        assert not list(probed_home.rglob(f"*{NAME}*"))
        # close together: 20 seconds without a byte begin it anew
        for page, button in ((first, "Try again"), (second, "Download 5 MB")):
            page.get_by_role("button", name=button).click()
            expect(page.get_by_text("2.0 of 5.0 MB")).to_be_visible(timeout=30_000)
        choose(second, "Model", "ShapesNet")  # the page stays in use
        seen = wait_for_grid(second)
        choose(second, "Model", TITLE)  # and the tiles stay while another model is on its way
        expect(second.get_by_text("Shown until then: ShapesNet with pretrained")).to_be_visible()
        assert wait_for_grid(second) == seen
        mirror.gate.set()
        assert wait_for_grid(first) == grid_of(body, tmp_path)
        assert len(mirror.requests) == 2  # after the cancelled one a download for both
        first.close()
        second.close()


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (print, ("a pickle was executed",))


def upload(page: Page, name: str, content: bytes, *, number: int = 0) -> None:
    label = ("Weights for", "Class names")[number]  # of which the second may be there first
    page.get_by_role("region", name=label).locator("input[type=file]").set_input_files(
        {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    )


@pytest.mark.promise
def test_uploaded_weights_are_used_and_what_is_none_leaves_those_before(
    page: Page, server: str, state: dict[str, Tensor], tmp_path: Path
) -> None:
    page.goto(f"{server}/?model={TITLE}&weights=random")
    random = wait_for_grid(page)
    open_model_settings(page)
    page.get_by_role("radio", name="your weights").click()
    expect(page.get_by_text(f"Shown until then: {TITLE} with random weights")).to_be_visible()
    upload(page, "evil.pth", pickle.dumps({"weight": Bomb()}, 2))
    expect(page.get_by_role("alert").filter(has_text="evil.pth")).to_be_visible()
    expect(page.get_by_text("Traceback")).to_have_count(0)
    expect(page.locator("[data-stale=true]")).to_have_count(0)
    assert wait_for_grid(page) == random
    upload(page, "mine.pth", saved(state))
    mine = wait_for_grid(page, random)
    assert mine == grid_of(saved(state), tmp_path)
    expect(page.get_by_role("alert")).to_have_count(0)
    names = "\n".join(f"class number {index}" for index in range(1000))
    upload(page, "names.txt", names.encode(), number=1)
    expect(page.get_by_text("class number").first).to_be_visible()
