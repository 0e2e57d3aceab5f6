"""A real Chromium on a real server."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from playwright.sync_api import Browser, BrowserContext, Page

import hookviz
from hookviz.images.samples import samples
from scripts.browsing import NO_CHROMIUM, browsing, chromium
from scripts.servers import Server, serve
from tests.e2e.patience import look_often
from tests.e2e.screen import new_context

look_often()


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
def probed_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where `probed` keeps weights."""
    return tmp_path_factory.mktemp("torch")


@pytest.fixture(scope="session")
def probed(probed_home: Path) -> Iterator[Server]:
    """The app with a window into its memory and its queue, see `probed_app`."""
    command = [
        *(sys.executable, "-m", "streamlit", "run", "tests/e2e/probed_app.py"),
        *("--server.port", "PORT", "--server.address", "127.0.0.1"),
    ]
    with serve({"TORCH_HOME": str(probed_home)}, command) as address:
        yield address


@pytest.fixture(autouse=True)
def no_window_stays(request: pytest.FixtureRequest) -> Iterator[None]:
    """A window that a failed test left open would go on running beside all later ones."""
    if "browser" not in request.fixturenames:
        yield
        return
    browser: Browser = request.getfixturevalue("browser")
    before = list(browser.contexts)
    yield
    for context in browser.contexts:
        if context not in before:
            context.close()


# What an earlier tab kept in this browser is gone when a tab first comes to an address.
_NOTHING_KEPT = """
try {
  if (!sessionStorage.getItem("as new")) localStorage.clear();
  sessionStorage.setItem("as new", "yes");
} catch { /* a page that may keep nothing */ }
"""


@pytest.fixture(scope="session")
def usual(browser: Browser) -> Iterator[BrowserContext]:
    """Where `page` opens its tabs: scripts that were loaded and compiled once are had again.

    That is a third of what a page costs.
    """
    context = new_context(browser, viewport={"width": 1440, "height": 900})
    context.add_init_script(_NOTHING_KEPT)
    yield context
    context.close()


@pytest.fixture
def page(usual: BrowserContext, browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A person's window, which knows nothing of those before.

    In tests that are marked ``moving`` what may move does.
    """
    if request.node.get_closest_marker("moving") is not None:
        context = new_context(
            browser,
            viewport={"width": 1440, "height": 900},
            reduced_motion="no-preference",
        )
    else:
        context = usual
        context.clear_cookies()
    opened = context.new_page()
    opened.set_default_timeout(30_000)
    yield opened
    opened.close()
    if context is not usual:
        context.close()
