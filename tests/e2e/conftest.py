"""A real Chromium on a real server."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, Page, expect

import hookviz
from hookviz.images.samples import samples
from scripts.browsing import NO_CHROMIUM, browsing, chromium
from scripts.servers import free_port, serve

expect.set_options(timeout=20_000)  # a busy machine is slow, not wrong


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def model() -> hookviz.Model:
    """The model of the link `SHAPESNET`."""
    return hookviz.load_model("shapesnet")


@pytest.fixture(scope="session")
def values(model: hookviz.Model) -> torch.Tensor:
    """What the page shows behind it: the first layer's ``(C, H, W)`` for the first sample."""
    layer = "stem.first.conv"
    return hookviz.capture(model, samples()[0].path, layer)[layer].values


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Skips where there is no Chromium, and fails where one was demanded."""
    # A camera that films a moving test picture, and nobody to ask whether it may.
    camera = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")
    path = chromium()
    if path is None and os.environ.get("HOOKVIZ_REQUIRE_BROWSER") == "1":
        pytest.fail(NO_CHROMIUM, pytrace=False)
    if path is None:
        pytest.skip(NO_CHROMIUM)
    with browsing(path, *camera) as launched:
        yield launched


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    environment = {
        "TORCH_HOME": str(tmp_path_factory.mktemp("torch")),
        "HOOKVIZ_WEIGHTS_URL": f"http://127.0.0.1:{free_port()}",
    }
    with serve(environment) as address:
        yield address


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    opened = context.new_page()
    opened.set_default_timeout(30_000)
    yield opened
    context.close()
