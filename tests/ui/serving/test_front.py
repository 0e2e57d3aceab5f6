"""What stands before all of the app."""

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from hookviz.ui.serving.early_server import with_routes
from hookviz.ui.serving.front import Front


async def here(_request: Request) -> PlainTextResponse:
    return PlainTextResponse("here")


@pytest.fixture
def client() -> TestClient:
    inner = ExceptionMiddleware(Route("/{path:path}", here, methods=["GET", "POST", "OPTIONS"]))
    app = with_routes([Route("/ours", here, methods=["POST"])], inner)
    return TestClient(Starlette(middleware=[Middleware(Front), Middleware(lambda _: app)]))


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "OPTIONS", "PUT"])
@pytest.mark.parametrize("path", ["/_stcore/metrics", "/base/_stcore/metrics/", "/_stcore/agent/a"])
def test_what_the_machine_alone_is_to_see_is_not_there(
    client: TestClient, method: str, path: str
) -> None:
    assert client.request(method, path).status_code == 404


@pytest.mark.parametrize("path", ["/health/deep", "/base/health/deep/"])
def test_the_deep_health_is_no_visitors(client: TestClient, path: str) -> None:
    assert client.get(path).text == "here"
    assert client.get(path, headers={"X-Forwarded-For": "192.0.2.1"}).status_code == 404


def test_a_wrong_method_is_told_the_right_one(client: TestClient) -> None:
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
