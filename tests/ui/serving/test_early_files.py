"""The page's HTML with the files that its first elements need; a browser's are in tests/e2e."""

import re

import pytest
from starlette.responses import HTMLResponse, Response
from starlette.types import Message, Receive, Scope, Send

from hookviz.ui.serving import early_files
from hookviz.ui.serving.early_files import EarlyFiles
from tests.loops import in_a_loop_of_its_own

PAGE = "<html><head><title>…</title></head><body></head></body></html>"


def answered(response: Response, path: str = "/") -> tuple[Message, bytes]:
    """Return what is sent of a response: the beginning, and the body."""
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await response(scope, receive, send)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "headers": []}
    in_a_loop_of_its_own(EarlyFiles(app)(scope, receive, send))
    return sent[0], b"".join(message["body"] for message in sent[1:])


def test_the_page_has_the_links_at_the_end_of_its_head_and_its_length_says_so() -> None:
    response = HTMLResponse(PAGE, headers={"ETag": '"1"', "Cache-Control": "no-cache"})
    start, body = answered(response)
    links = early_files.early_links()
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
    names = re.findall(r'href="\./static/js/([^"]+)"', early_files.early_links().decode())
    own = (early_files._FOLDER / "index.html").read_text("utf-8")
    assert len(names) == len(set(names)) > len(early_files._ELEMENTS)
    assert not [name for name in names if name in own]
    for element in early_files._ELEMENTS:
        assert any(name.startswith(f"{element}.") for name in names), element
