"""Tests for the server that answers while the page is being loaded: real processes and sockets."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.types import Message, Receive, Scope, Send

from hookviz.ui.serving import early_server
from scripts.servers import free_port
from tests.loops import in_a_loop_of_its_own

APP = Path(__file__).parents[3] / "app.py"


async def asked(server: early_server.WaitForPage, path: str) -> str:
    """Return which application answered a request for `path`."""
    said: list[str] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        said.append(message["type"])

    scope = {"type": "http", "method": "GET", "path": path, "headers": []}
    await server(scope, receive, send)
    return " ".join(said)


async def plain(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "served"})


@pytest.mark.parametrize("path", ["/", "/_stcore/health", "/static/js/index.js"])
def test_files_are_served_before_the_page_is_loaded(path: str) -> None:
    assert in_a_loop_of_its_own(asked(early_server.WaitForPage(plain), path)) == "served"


def test_what_needs_the_page_waits_for_it() -> None:
    async def wait() -> None:
        server = early_server.WaitForPage(plain)
        for path in ("/hookviz/explorer", "/go/abcd", "/health/deep"):
            request = asyncio.create_task(asked(server, path))
            await asyncio.sleep(0)
            assert not request.done(), path
            request.cancel()

    in_a_loop_of_its_own(wait())


def test_it_imports_neither_torch_nor_matplotlib() -> None:
    code = "import hookviz.ui.serving.early_server, sys; print(*(sys.modules.keys() & set(%r)))"
    unwanted = ["torch", "torchvision", "matplotlib", "numpy", "reportlab", "timm"]
    said = subprocess.run(
        [sys.executable, "-c", code % unwanted], capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == []


def test_a_server_whose_page_can_not_be_loaded_ends_and_says_why() -> None:
    """One whose page can be tells its health in tests/e2e/test_queue.py."""
    ended = subprocess.run(
        [*(sys.executable, "-m", "streamlit", "run", str(APP)), f"--server.port={free_port()}"],
        env=os.environ | {"HOOKVIZ_START": "resnet81"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ended.returncode != 0
    assert "There is no model called 'resnet81'" in ended.stderr
