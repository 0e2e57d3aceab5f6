"""What comes over a line that misbehaves, against a real server on loopback."""

import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from hookviz.errors import WeightsError
from hookviz.language.speaking import speaking
from hookviz.models.fetching import transfers
from hookviz.models.fetching.downloads import fetch, start
from hookviz.models.fetching.transfers import Meter, RetryLimits, TransferStatus, hash_in_name
from tests.models.fetching.fetched import BODY, CUT, FAST, NAME, STALLING, brought, ranges, refused
from tests.weights_server import Answer, WeightsServer, hashed_name, random_bytes


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


def patience(answer: Answer) -> RetryLimits:
    """Little where the server is about to stall, much where it could only seem to."""
    return STALLING if answer.mute or answer.hold_after is not None else FAST


@pytest.mark.parametrize("length", ["known", "chunked", "unknown"])
def test_a_file_comes_whole(server: WeightsServer, tmp_path: Path, length: str) -> None:
    brought(server, tmp_path, Answer(length=length))  # type: ignore[arg-type]
    assert ranges(server) == [None]
    assert server.requests[0].headers["accept-encoding"] == "identity"
    path = fetch(server.add("empty.txt", b""), tmp_path / "empty.txt", limits=FAST)
    assert path.read_bytes() == b""
    away = Answer(status=302, headers={"Location": server.add("elsewhere", BODY)})
    brought(server, tmp_path / "away", away)


def test_a_cut_off_file_goes_on_where_it_broke_off(server: WeightsServer, tmp_path: Path) -> None:
    brought(server, tmp_path, CUT, Answer())
    assert ranges(server) == [None, "bytes=70001-"]
    assert server.requests[1].headers["if-range"] == '"first"'
    shorter = Answer(body=BODY[:50_000], etag='"second"')  # nothing of the longer one remains
    path = fetch(server.add("net.pth", BODY, CUT, shorter), tmp_path / "net.pth", limits=FAST)
    assert path.read_bytes() == BODY[:50_000]


def test_the_date_of_the_last_change_does_for_an_etag(
    server: WeightsServer, tmp_path: Path
) -> None:
    day = "Sat, 01 Aug 2026 10:00:00 GMT"
    weak = Answer(etag='W/"weak"', modified=day)
    brought(server, tmp_path, replace(weak, cut_after=70_001), weak)
    assert ranges(server) == [None, "bytes=70001-"]
    assert server.requests[1].headers["if-range"] == day


@pytest.mark.parametrize(
    ("first", "second", "asked"),
    [
        pytest.param(CUT, Answer(ranges=False), "bytes=70001-", id="ignores Range"),
        pytest.param(CUT, Answer(etag='"second"'), "bytes=70001-", id="has another version"),
        pytest.param(replace(CUT, etag=None), Answer(etag=None), None, id="names no version"),
    ],
)
def test_it_begins_anew_where_the_server(
    server: WeightsServer, tmp_path: Path, first: Answer, second: Answer, asked: str | None
) -> None:
    brought(server, tmp_path, first, second)
    assert ranges(server) == [None, asked]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Answer(status=416), id="416"),
        pytest.param(
            Answer(headers={"Content-Range": "bytes 5-199999/200000"}), id="another place"
        ),
        pytest.param(
            Answer(headers={"Content-Range": "bytes 70001-199998/199999"}), id="another size"
        ),
        pytest.param(Answer(headers={"Content-Range": "nonsense"}), id="nonsense"),
    ],
)
def test_it_begins_anew_where_the_rest_can_not_be_had(
    server: WeightsServer, tmp_path: Path, answer: Answer
) -> None:
    brought(server, tmp_path, CUT, answer, Answer())
    assert ranges(server) == [None, "bytes=70001-", None]


def test_a_rest_that_comes_in_parts(server: WeightsServer, tmp_path: Path) -> None:
    part = Answer(body=BODY[:90_000], headers={"Content-Range": "bytes 70001-89999/200000"})
    brought(server, tmp_path, CUT, part, Answer())
    assert ranges(server) == [None, "bytes=70001-", "bytes=90000-"]


def test_a_file_put_together_of_two_versions_is_fetched_again(
    server: WeightsServer, tmp_path: Path
) -> None:
    lies = Answer(body=random_bytes(len(BODY), seed=1))
    brought(server, tmp_path, CUT, lies, Answer())
    assert ranges(server) == [None, "bytes=70001-", None]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Answer(hang_up=True), id="hangs up"),
        pytest.param(Answer(mute=True), id="is silent"),
        pytest.param(Answer(status=500), id="500"),
        pytest.param(Answer(status=503, headers={"Retry-After": "3600"}), id="503"),
        pytest.param(Answer(status=429, headers={"Retry-After": "Sat, 01 Aug 2026"}), id="429"),
        pytest.param(CUT, id="cut off"),
        pytest.param(replace(CUT, length="chunked"), id="cut off in chunks"),
        pytest.param(Answer(hold_after=70_001), id="stalls"),
        pytest.param(Answer(hold_after=0), id="stalls at once"),
    ],
)
def test_it_tries_again_after_a_server_that(
    server: WeightsServer, tmp_path: Path, answer: Answer
) -> None:
    brought(server, tmp_path, answer, Answer(), limits=patience(answer))
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(hang_up=True), "the connection to 127.0.0.1 broke off"),
        (Answer(status=500), "the server has a fault of its own (500 Internal Server Error)"),
        (Answer(status=429), "the server is too busy (429 Too Many Requests)"),
        (
            replace(CUT, ranges=False),
            "the transfer was cut off after 70.0 of 200.0 kB",
        ),
        (
            Answer(hold_after=70_001, ranges=False),
            "it stalled: nothing came for 0.5 s after 70.0 of 200.0 kB",
        ),
    ],
)
def test_it_gives_up_after_four_attempts(
    server: WeightsServer, tmp_path: Path, answer: Answer, reason: str
) -> None:
    text = refused(server, tmp_path, answer, limits=patience(answer))
    assert f"{reason} (tried 4 times)." in text
    assert len(server.requests) == 4


def test_a_line_that_always_breaks_but_brings_something_gets_there(
    server: WeightsServer, tmp_path: Path
) -> None:
    brought(server, tmp_path, Answer(cut_after=20_000), limits=replace(FAST, headway=20_000))
    assert len(server.requests) == 10
    little, limits = Answer(cut_after=10), replace(FAST, headway=20_000)
    text = refused(server, tmp_path / "little", little, limits=limits)
    assert "cut off after 0.0 of 200.0 kB (tried 4 times)." in text


def test_the_pauses_double_and_are_bounded(
    server: WeightsServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    limits = replace(FAST, attempts=5, backoff=0.1, longest_pause=0.3)
    with speaking("zh_CN"), caplog.at_level("INFO", "hookviz.models.fetching.transfers"):
        text = refused(server, tmp_path, Answer(status=500), limits=limits)
    assert "服务器" in text  # a person reads their language, and the log is English
    assert all(message.isascii() for message in caplog.messages)
    assert "the server has a fault of its own (500 Internal Server Error)" in caplog.messages[0]
    pauses = [re.findall(r"trying again in ([\d.]+) s", text) for text in caplog.messages]
    assert pauses == [["0.1"], ["0.2"], ["0.3"], ["0.3"]]


def test_a_server_that_asks_for_a_pause_gets_it(
    server: WeightsServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    busy = Answer(status=503, headers={"Retry-After": "1"})
    with caplog.at_level("INFO", "hookviz.models.fetching.transfers"):
        brought(server, tmp_path, busy, Answer(), limits=replace(FAST, longest_pause=0.7))
    assert "trying again in 0.7 s" in caplog.text


def test_a_wrong_hash_leaves_nothing_behind(server: WeightsServer, tmp_path: Path) -> None:
    wrong = random_bytes(len(BODY), seed=1)
    text = refused(server, tmp_path, Answer(body=wrong))
    expected, got = hash_in_name(NAME), hash_in_name(hashed_name(wrong))
    assert f"expected {expected}, got {got}" in text
    assert "(200.0 kB)" in text
    assert len(server.requests) == 1
    for answer, name, reason in (
        (replace(CUT, length="unknown"), NAME, "expected"),  # which nobody could tell
        (
            Answer(body=b"<html>Wi-Fi", headers={"Content-Type": "text/html; charset=utf-8"}),
            NAME,
            "perhaps the login page of this network",
        ),
        (
            Answer(headers={"Content-Encoding": "gzip"}),
            "plain.bin",
            "the server sent it packed (gzip)",
        ),
    ):
        text = refused(server, tmp_path, answer, name=name)
        assert reason in text


def test_what_is_secret_in_an_address_is_not_shown(server: WeightsServer, tmp_path: Path) -> None:
    url = server.add(NAME, BODY, Answer(status=403)).replace("//", "//me:secret@")
    with pytest.raises(WeightsError) as caught:
        fetch(f"{url}?key=secret", tmp_path / NAME)
    assert "secret" not in str(caught.value)
    assert f"{server.url}/{NAME}" in str(caught.value)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that signs itself, and its key, in one file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("there is no openssl to make a certificate")
    both = tmp_path_factory.mktemp("tls") / "both.pem"
    options = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=loopback"
    names = "-addext subjectAltName=IP:127.0.0.1"
    command = [openssl, "req", "-x509", *options.split(), *names.split()]
    subprocess.run(
        [*command, "-keyout", str(both), "-out", str(both)], check=True, capture_output=True
    )
    return both


@pytest.fixture
def secure(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WeightsServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with WeightsServer(certificate) as server:
        yield server


def test_a_certificate_that_nobody_trusts(secure: WeightsServer, tmp_path: Path) -> None:
    text = refused(secure, tmp_path, Answer())
    assert "the TLS certificate of 127.0.0.1 can't be verified." in text
    assert secure.requests == []


def test_a_stalled_transfer_over_tls_can_be_cancelled(
    secure: WeightsServer, certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    url = secure.add(NAME, BODY, Answer(hold_after=70_001))
    download = start(url, tmp_path / NAME, limits=replace(FAST, stall=120.0))
    while download.progress.received < 70_001:
        assert not download.finished
        time.sleep(0.01)
    assert download.cancel("me")
    for thread in threading.enumerate():
        if thread.name == f"download {NAME}":
            thread.join(30)
            assert not thread.is_alive()
    assert list(tmp_path.iterdir()) == []
    secure.requests.clear()
    brought(secure, tmp_path, CUT, Answer())
    assert ranges(secure) == [None, "bytes=70001-"]


@pytest.mark.parametrize("length", ["unknown", "chunked", "known"])
def test_a_file_that_goes_on_and_on_is_left(
    server: WeightsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: str
) -> None:
    monkeypatch.setattr(transfers, "_MOST", 100_000)
    answer = Answer(length=length)  # type: ignore[arg-type]
    with pytest.raises(WeightsError, match="beyond 100,000 bytes"):
        fetch(server.add(NAME, BODY, answer), tmp_path / NAME, limits=FAST)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (TransferStatus("f", 12_300_000, 87_300_000, 4.5e6), "12.3 of 87.3 MB · 4.5 MB/s"),
        (TransferStatus("f", 300_000, 87_300_000, 52_000), "0.3 of 87.3 MB · 52.0 kB/s"),
        (TransferStatus("f", 12_300_000, None, 0), "12.3 MB · 0 bytes/s"),
        (TransferStatus("f", 70_001, 200_000, 0, "connecting"), "70.0 of 200.0 kB · connecting"),
        (TransferStatus("f", 5, 10, 1), "5 of 10 bytes · 1 bytes/s"),
    ],
)
def test_the_text_is_in_a_persons_units(status: TransferStatus, text: str) -> None:
    assert status.text == text
    assert TransferStatus("f", 1, 4, 0).share == 0.25
    assert TransferStatus("f", 1, None, 0).share is TransferStatus("f", 0, 0, 0).share is None
    assert TransferStatus("net.pth", 0, None, 0).title == "net.pth"
    assert TransferStatus("net.pth", 0, 87_306_240, 0).title == "net.pth (87.3 MB)"


def test_a_stall_shows_in_the_speed() -> None:
    now = 100.0
    meter = Meter("net.pth", clock=lambda: now)
    for second in range(1, 11):
        now = 100.0 + second
        meter.count(second * 1000)
    assert meter.read().bytes_per_second == pytest.approx(1000, rel=0.01)
    now += 97
    assert meter.read().bytes_per_second < 50
    meter = Meter("net.pth", clock=lambda: now)
    assert meter.read() == TransferStatus("net.pth", 0, None, 0.0)
    for received in (5000, 0, 100):  # to begin anew is no negative speed
        now += 1
        meter.count(received)
    assert meter.read() == TransferStatus("net.pth", 100, None, 100.0)
    meter.expect(1000)
    meter.count(600)
    meter.note("connecting")
    read = meter.read()
    assert (read.received, read.total, read.note) == (600, 1000, "connecting")
    assert 0 < read.bytes_per_second <= 6000  # however short the moment was


def test_a_meter_can_be_read_while_it_is_told() -> None:
    meter = Meter("net.pth")

    def tell() -> None:
        for count in range(20_000):
            meter.count(count)

    told = threading.Thread(target=tell)
    told.start()
    seen = [meter.read().received for _ in range(2000)]
    told.join()
    assert seen == sorted(seen)
    assert meter.read().received == 19_999


def test_a_file_that_is_larger_than_the_disk(server: WeightsServer, tmp_path: Path) -> None:
    huge = Answer(headers={"Content-Length": str(10**18)})
    with pytest.raises(WeightsError, match=r"were free there") as caught:
        fetch(server.add(NAME, BODY, huge), tmp_path / NAME, limits=FAST)
    assert str(tmp_path) in str(caught.value)
    assert list(tmp_path.iterdir()) == []
