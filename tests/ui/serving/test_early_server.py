"""Tests for the server that answers while the page is being loaded: real processes and sockets."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.types import Message, Receive, Scope, Send

from hookviz.ui.serving import early_server
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


@contextmanager
def serving(**environment: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [*(sys.executable, "-m", "streamlit", "run", str(APP)), f"--server.port={port}"],
        env=os.environ | environment,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield f"http://127.0.0.1:{port}", server
    finally:
        server.terminate()
        server.communicate(timeout=60)


def get(address: str) -> bytes:
    """Return what the server answers, once it listens."""
    until = time.monotonic() + 60
    while True:
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                content: bytes = answer.read()
                return content
        except urllib.error.HTTPError:
            raise
        except OSError:
            assert time.monotonic() < until, address


def test_a_server_tells_its_health_and_runs_the_page_when_it_is_there() -> None:
    with serving() as (address, _):
        assert get(f"{address}/_stcore/health") == b"ok"
        assert b"<div" in get(address)
        assert json.loads(get(f"{address}/health/deep")) == {
            "status": "ok",
            "script": "ok",
            "engine": "ok",
        }


def test_a_server_whose_page_can_not_be_loaded_ends_and_says_why() -> None:
    with serving(HOOKVIZ_START="resnet81") as (_, server):
        said = server.communicate(timeout=120)[1]
    assert server.returncode != 0
    assert "There is no model called 'resnet81'" in said
