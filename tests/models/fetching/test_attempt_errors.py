import socket
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from hookviz.errors import WeightsError
from hookviz.models.fetching.attempt_errors import RetryLimits
from hookviz.models.fetching.downloads import fetch
from tests.models.fetching.fetched import BODY, CUT, FAST, NAME, brought, ranges, refused
from tests.weights_server import Answer, WeightsServer


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, "the server refused it (401 Unauthorized)."),
        (403, "the server refused it (403 Forbidden)."),
        (404, "the server has no such file (404 Not Found)."),
        (410, "the server did not send it (410 Gone)."),
        (204, "the server did not send it (204 No Content)."),
        (206, "the server could not go on where it broke off (206)"),
    ],
)
def test_a_refusal_is_final(
    server: WeightsServer, tmp_path: Path, status: int, reason: str
) -> None:
    text = refused(server, tmp_path, Answer(status=status, body=b""))
    assert reason in text
    assert f"{server.url}/{NAME}" in text
    assert len(server.requests) == (1 if status != 206 else 4)


def test_a_refusal_after_a_redirect_names_who_refused(
    server: WeightsServer, tmp_path: Path
) -> None:
    with WeightsServer() as other:
        url = other.add("kept", BODY, Answer(status=403))
        text = refused(server, tmp_path, Answer(status=302, headers={"Location": url}))
    assert f"127.0.0.1:{other.port}, where it was redirected to, refused it (403" in text
    circle = Answer(status=302, headers={"Location": f"{server.url}/{NAME}"})
    assert "it is redirected in a circle" in refused(server, tmp_path / "circle", circle)


def unreachable(url: str, folder: Path, limits: RetryLimits = FAST) -> str:
    with pytest.raises(WeightsError) as caught:
        fetch(url, folder / NAME, limits=limits)
    assert isinstance(
        caught.value.__cause__.__cause__.__cause__,  # type: ignore[union-attr]
        requests.RequestException,
    )
    assert list(folder.iterdir()) == []
    return str(caught.value)


def test_a_network_that_was_there_is_waited_for(server: WeightsServer, tmp_path: Path) -> None:
    away = Answer(status=302, headers={"Location": f"http://weights.invalid/{NAME}"})
    brought(server, tmp_path, CUT, away, away, Answer())
    assert ranges(server) == [None, *["bytes=70001-"] * 3]
    text = refused(server, tmp_path / "none", CUT, away)
    assert "the name weights.invalid can't be resolved" in text
    assert "(tried 4 times)" in text


def test_a_port_that_takes_no_connection(server: WeightsServer, tmp_path: Path) -> None:
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)  # the queue is full after one, and nobody accepts
        for waiting in (first, second):
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        limits = replace(FAST, connect=0.2, attempts=2)
        text = unreachable(f"http://127.0.0.1:{full.getsockname()[1]}/{NAME}", tmp_path, limits)
    assert "127.0.0.1 took no connection within 0.2 s (tried 2 times)." in text


@pytest.mark.parametrize("url", ["ftp://host/x", "weights/x", "http://", "http://[half/x"])
def test_an_address_that_is_none(tmp_path: Path, url: str) -> None:
    text = unreachable(url, tmp_path)
    assert "that is not an http or https address." in text
    assert url in text


def test_a_server_that_is_not_there_is_told_apart_from_a_name_and_a_proxy(
    server: WeightsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        text = unreachable(f"http://127.0.0.1:{unused.getsockname()[1]}/{NAME}", tmp_path)
    assert "nothing answers at 127.0.0.1 (connection refused) (tried 4 times)." in text
    nowhere = f"http://weights.invalid/{NAME}"
    text = unreachable(nowhere, tmp_path)
    assert "the name weights.invalid can't be resolved, perhaps because there is no" in text
    assert "(tried 2 times)" in text
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:3128")
    assert "the proxy of this network can't be reached" in unreachable(nowhere, tmp_path)
