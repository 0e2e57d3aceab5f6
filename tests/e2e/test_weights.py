"""Weights in a real browser: downloaded with progress, out of reach, uploaded, refused."""

import hashlib
import io
import pickle
from collections.abc import Iterator
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
from tests.e2e.screen import choose, new_context
from tests.e2e.test_queue import get
from tests.pictures import encoded, picture
from tests.weights_server import Answer, WeightsServer

NAME, TITLE, LAYER = "squeezenet1_1", "SqueezeNet 1.1", "features.0"


def made(name: str) -> dict[str, Tensor]:
    """Weights of a network that are neither the pretrained nor the random ones."""
    generator = torch.Generator().manual_seed(5)
    return {
        key: torch.randn(value.shape, generator=generator) * 0.05
        for key, value in models.get_model(name).state_dict().items()
    }


def saved(state: dict[str, Tensor]) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def state() -> dict[str, Tensor]:
    return made(NAME)


@pytest.fixture(scope="module")
def body(state: dict[str, Tensor]) -> bytes:
    return saved(state)


def grid_of(checkpoint: bytes, image: Path | bytes, tmp_path: Path, name: str = NAME) -> bytes:
    path = tmp_path / "expected.pth"
    path.write_bytes(checkpoint)
    model = hookviz.load_model(name, path)
    activation = hookviz.capture(model, image, LAYER)[LAYER]
    return automatic_grid(activation).sprite


@pytest.fixture
def mirror() -> Iterator[WeightsServer]:
    with WeightsServer() as server:
        yield server


def test_a_download_shows_progress_and_ends_in_the_right_grid(
    browser: Browser, probed: Server, mirror: WeightsServer, body: bytes, tmp_path: Path
) -> None:
    file_name = f"{NAME}-{hashlib.sha256(body).hexdigest()[:8]}.pth"
    url = mirror.add(file_name, body, Answer(hold_after=2_000_000))
    get(f"{probed}/weights?{urlencode({'url': url})}")
    first, second = (new_context(browser).new_page() for _ in range(2))
    for page in (first, second):
        page.set_default_timeout(30_000)
        page.goto(f"{probed}/?model={TITLE}")
        expect(page.get_by_role("button", name="Download 5 MB")).to_be_visible()
    for page in (first, second):  # close together: 20 seconds without a byte begin it anew
        page.get_by_role("button", name="Download 5 MB").click()
        expect(page.get_by_text("2.0 of 5.0 MB")).to_be_visible(timeout=30_000)
    choose(second, "Model of this family", "ShapesNet")  # the page stays in use
    wait_for_grid(second)
    mirror.gate.set()
    assert wait_for_grid(first) == grid_of(body, samples()[0].path, tmp_path)
    assert len(mirror.requests) == 1  # one download for both
    first.close()
    second.close()


def test_a_cancelled_download_offers_what_works(
    browser: Browser, probed: Server, probed_home: Path, mirror: WeightsServer, tmp_path: Path
) -> None:
    name = "squeezenet1_0"  # which no other test downloads
    body = saved(made(name))
    file_name = f"{name}-{hashlib.sha256(body).hexdigest()[:8]}.pth"
    url = mirror.add(file_name, body, Answer(hold_after=1_000_000))
    get(f"{probed}/weights?{urlencode({'url': url})}")
    page = new_context(browser).new_page()
    page.goto(f"{probed}/?model=SqueezeNet 1.0")
    page.get_by_role("button", name="Download 5 MB").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("alert")).to_contain_text("You cancelled the download")
    assert not list(probed_home.rglob(f"*{name}*"))
    mirror.gate.set()
    page.get_by_role("button", name="Try again").click()
    assert wait_for_grid(page) == grid_of(body, samples()[0].path, tmp_path, name)
    page.close()


def test_without_a_network_one_click_goes_on(page: Page, server: str) -> None:
    page.goto(f"{server}/?model=ResNet-18")
    page.get_by_role("button", name="Download 47 MB").click()
    alert = page.get_by_role("alert")
    said = "The pretrained weights of ResNet-18 (47 MB) are not on this"
    expect(alert).to_contain_text(said, timeout=30_000)  # it has tried several times
    page.get_by_role("button", name="ResNet-18 with random weights").click()
    wait_for_grid(page)
    expect(page.get_by_text("random weights: these predictions mean nothing")).to_be_visible()


def upload(page: Page, name: str, content: bytes, *, number: int = 0) -> None:
    label = ("Weights for", "Class names")[number]  # of which the second may be there first
    page.get_by_role("region", name=label).locator("input[type=file]").set_input_files(
        {"name": name, "mimeType": "application/octet-stream", "buffer": content}
    )


@pytest.mark.by_day
def test_an_uploaded_checkpoint_is_used(
    page: Page, server: str, state: dict[str, Tensor], body: bytes, tmp_path: Path
) -> None:
    wrapped = io.BytesIO()
    torch.save({"epoch": 3, "state_dict": {f"module.{key}": state[key] for key in state}}, wrapped)
    page.goto(f"{server}/?model={TITLE}&weights=yours")
    expect(page.get_by_text(f"Upload weights for {TITLE}")).to_be_visible()
    upload(page, "mine.pth", wrapped.getvalue())
    first = wait_for_grid(page)
    assert first == grid_of(body, samples()[0].path, tmp_path)
    names = "\n".join(f"class number {index}" for index in range(1000))
    upload(page, "names.txt", names.encode(), number=1)
    expect(page.get_by_text("class number").first).to_be_visible()


def test_the_wrong_checkpoint_is_refused_with_the_right_model(page: Page, server: str) -> None:
    buffer = io.BytesIO()
    torch.save(models.squeezenet1_0().state_dict(), buffer)
    page.goto(f"{server}/?model={TITLE}&weights=yours")
    expect(page.get_by_text(f"Upload weights for {TITLE}")).to_be_visible()
    upload(page, "other.pth", buffer.getvalue())
    alert = page.get_by_role("alert").filter(has_text="other.pth")
    expect(alert).to_contain_text("SqueezeNet 1.0")


@pytest.mark.sweep("by day without a browser: tests/models/checkpoints")
def test_a_broken_checkpoint_or_list_leaves_the_model_before(
    page: Page, server: str, body: bytes, tmp_path: Path
) -> None:
    page.goto(f"{server}/?model={TITLE}&weights=random")
    random = wait_for_grid(page)
    page.get_by_role("radio", name="your weights").click()
    expect(page.get_by_text(f"Shown until then: {TITLE} with random weights")).to_be_visible()
    upload(page, "broken.pth", b"no checkpoint at all")
    alert = page.get_by_role("alert").filter(has_text="broken.pth")
    expect(alert).to_be_visible()
    expect(page.locator("[data-stale=true]")).to_have_count(0)
    assert wait_for_grid(page) == random
    upload(page, "mine.pth", body)
    mine = wait_for_grid(page, random)
    assert mine == grid_of(body, samples()[0].path, tmp_path)
    expect(alert).to_have_count(0)
    upload(page, "names.txt", b"one name alone", number=1)
    expect(page.get_by_role("alert").filter(has_text="file of labels")).to_be_visible()
    expect(page.get_by_text(f"Shown until then: {TITLE} with your last weights")).to_be_visible()
    assert wait_for_grid(page) == mine
    upload(page, "broken.pth", b"no checkpoint at all")
    expect(alert).to_be_visible()
    assert wait_for_grid(page) == mine


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (print, ("a pickle was executed",))


@pytest.mark.promise
def test_a_pickle_that_runs_code_is_refused(page: Page, server: str) -> None:
    """What is no checkpoint at all is refused in the test above."""
    content = pickle.dumps({"weight": Bomb()}, 2)
    page.goto(f"{server}/?model={TITLE}&weights=yours")
    expect(page.get_by_text(f"Upload weights for {TITLE}")).to_be_visible()
    upload(page, "evil.pth", content)
    expect(page.get_by_role("alert").filter(has_text="evil.pth")).to_be_visible()
    expect(page.get_by_text("Traceback")).to_have_count(0)
    page.get_by_role("radio", name="random").click()
    assert wait_for_grid(page) != encoded(picture())
