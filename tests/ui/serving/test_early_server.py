"""Tests for the server that answers while the page is being loaded: real processes and sockets."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from hookviz.ui.serving import early_server
from hookviz.ui.serving.early_server import EarlyFiles, Front, with_routes
from scripts.servers import free_port
from tests.loops import in_a_loop_of_its_own
from tests.ui.serving.asgi import sent_by, talk

APP = Path(__file__).parents[3] / "app.py"
PAGE = "<html><head><title>…</title></head><body></head></body></html>"


HTTP: dict[str, Any] = {"type": "http", "method": "GET", "headers": []}
REQUEST: Message = {"type": "http.request", "body": b"", "more_body": False}


async def plain(_scope: Scope, _receive: Receive, send: Send) -> None:
    await send({"type": "served"})


def test_files_are_served_before_the_page_is_loaded_and_what_needs_it_waits() -> None:
    async def wait() -> None:
        server = early_server.WaitForPage(plain)
        for path in ("/", "/_stcore/health", "/static/js/index.js"):
            assert await talk(server, HTTP | {"path": path}, REQUEST) == [{"type": "served"}]
        for path in ("/hookviz/explorer", "/go/abcd", "/health/deep"):
            request = asyncio.create_task(talk(server, HTTP | {"path": path}, REQUEST))
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


async def here(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("here")


@pytest.fixture
def client() -> TestClient:
    inner = ExceptionMiddleware(Route("/{path:path}", here, methods=["GET", "POST", "OPTIONS"]))
    app = with_routes([Route("/ours", here, methods=["POST"])], inner)
    return TestClient(Starlette(middleware=[Middleware(Front), Middleware(lambda _: app)]))


@pytest.mark.parametrize("path", ["/_stcore/metrics", "/base/_stcore/metrics/", "/_stcore/agent/a"])
def test_what_the_machine_alone_is_to_see_is_not_there(client: TestClient, path: str) -> None:
    for method in ("GET", "POST", "HEAD", "OPTIONS", "PUT"):
        assert client.request(method, path).status_code == 404


def test_the_deep_health_is_no_visitors_and_a_wrong_method_is_told_the_right_one(
    client: TestClient,
) -> None:
    for path in ("/health/deep", "/base/health/deep/"):
        assert client.get(path).text == "here"
        assert client.get(path, headers={"X-Forwarded-For": "192.0.2.1"}).status_code == 404
    answer = client.get("/ours")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert client.post("/ours").text == "here"


@pytest.mark.parametrize("path", ["/", "/ours", "/_stcore/metrics"])
def test_every_answer_has_the_headers_of_safety(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = dict(each.split(" ", 1) for each in headers["content-security-policy"].split("; "))
    assert policy["frame-ancestors"] == policy["form-action"] == policy["default-src"] == "'self'"
    assert not [where for where in policy.values() if "http" in where or "*" in where]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"


def answered(response: Response, path: str = "/") -> tuple[Message, bytes]:
    start, *rest = sent_by(EarlyFiles(response), HTTP | {"path": path}, REQUEST)
    return start, b"".join(message["body"] for message in rest)


def test_the_page_has_the_links_at_the_end_of_its_head_and_its_length_says_so() -> None:
    response = HTMLResponse(PAGE, headers={"ETag": '"1"', "Cache-Control": "no-cache"})
    start, body = answered(response)
    links = early_server.early_links()
    assert body == PAGE.encode().replace(b"</head>", links + b"</head>", 1)
    headers = dict(start["headers"])
    assert headers[b"content-length"] == str(len(body)).encode()
    assert headers[b"cache-control"] == b"no-cache"
    assert b"etag" not in headers  # of a text that this is not


@pytest.mark.parametrize(
    ("response", "path"),
    [
        (HTMLResponse(PAGE), "/other"),
        (HTMLResponse(PAGE, status_code=404), "/"),
        (HTMLResponse(PAGE, headers={"Content-Encoding": "br"}), "/"),
        (Response(PAGE, media_type="text/plain"), "/"),
        (Response(status_code=304), "/"),
    ],
)
def test_everything_else_is_sent_as_it_is(response: Response, path: str) -> None:
    start, body = answered(response, path)
    assert body == response.body
    assert start["headers"] == response.raw_headers


def test_each_file_is_named_once_and_is_none_that_the_page_names_already() -> None:
    names = re.findall(r'href="\./static/js/([^"]+)"', early_server.early_links().decode())
    own = (early_server._FOLDER / "index.html").read_text("utf-8")
    assert len(names) == len(set(names)) > len(early_server._ELEMENTS)
    assert not [name for name in names if name in own]
    for element in early_server._ELEMENTS:
        assert any(name.startswith(f"{element}.") for name in names), element
