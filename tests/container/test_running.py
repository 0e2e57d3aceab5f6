"""What the image starts, and the proxy before it, as real processes on loopback."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from scripts.children import child
from scripts.servers import free_port
from scripts.visitor import PATIENCE
from tests.container.test_image import LAST, environment, of

ROOT = Path(__file__).parent.parent.parent
SITE = "demo.example.org"


@contextmanager
def listening(server: socketserver.BaseServer) -> Iterator[None]:
    """A server of the standard library at work for the block."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Running:
    port: int
    process: subprocess.Popen[str]
    asked: list[str]
    """First lines of what the app asked of the web, through the proxy it was told to use."""


@pytest.fixture(scope="module")
def app() -> Iterator[Running]:
    """The image's command in the image's environment; a loopback proxy notes who it talks to."""
    asked: list[str] = []

    class Note(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            asked.append(self.rfile.readline().decode())

    port = free_port()
    own = {name: value for name, value in environment().items() if name.startswith("STREAMLIT_")}
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Note) as web, listening(web):
        proxy = f"http://127.0.0.1:{web.server_address[1]}"
        (command,) = of(LAST, "CMD")
        own_environment = {
            **os.environ,
            **own,
            "STREAMLIT_SERVER_PORT": str(port),
            "HOOKVIZ_HOSTS": f"https://{SITE}, 127.0.0.1",
            **dict.fromkeys(("http_proxy", "https_proxy"), proxy),
            "no_proxy": "127.0.0.1,localhost",
        }
        with child(
            [sys.executable, *json.loads(command)[1:]],
            cwd=ROOT,
            env=own_environment,
            stdout=subprocess.DEVNULL,
        ) as process:
            until_healthy(f"http://127.0.0.1:{port}/_stcore/health")
            yield Running(port, process, asked)


def until_healthy(address: str) -> None:
    deadline = time.monotonic() + 90
    while True:
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


CUT_OFF = 0


def status(address: str, **options: Any) -> int:
    """The status of the answer; `CUT_OFF` where the line went dead before one came."""
    request = urllib.request.Request(address, **options)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except urllib.error.URLError as error:
        if not isinstance(error.reason, ConnectionError):
            raise
        return CUT_OFF
    except ConnectionError:
        return CUT_OFF


def opens(port: int, origin: str | None, host: str = SITE) -> bool:
    """Whether a WebSocket opens for a page of `origin` that reaches the server as `host`."""
    try:
        with (
            socket.create_connection(("127.0.0.1", port)) as line,
            connect(
                f"ws://{host}/_stcore/stream",
                sock=line,
                origin=origin,  # type: ignore[arg-type] # a NewType of str
                subprotocols=["streamlit"],  # type: ignore[list-item] # likewise
                proxy=None,
                open_timeout=PATIENCE,
            ),
        ):
            return True
    except InvalidStatus as refusal:
        if refusal.response.status_code != 403:
            raise
        return False


def test_it_asks_nothing_of_the_web_and_accepts_the_page_of_its_site_alone(app: Running) -> None:
    """The proxy passes the browser's Host on, so the origin is the site's own."""
    assert opens(app.port, f"https://{SITE}")
    assert app.asked == []
    assert not opens(app.port, "https://elsewhere.example.net")


def test_no_session_opens_under_another_name_and_probes_need_none(app: Running) -> None:
    """A page that points its own name at this address is of its own origin."""
    assert opens(app.port, f"http://{SITE}:{app.port}", f"{SITE}:{app.port}")
    for other in (f"rebound.example.net:{app.port}", f"{SITE}.example.net", "127.0.0.2"):
        assert not opens(app.port, f"http://{other}", other), other
        assert not opens(app.port, None, other), other
    by_address = {"Host": f"10.0.0.7:{app.port}"}
    assert status(f"http://127.0.0.1:{app.port}/health/deep", headers=by_address) == 200


def test_the_health_check_tells_sick_from_well(app: Running) -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(503)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    (check,) = of(LAST, "HEALTHCHECK")
    program = json.loads(check.partition("CMD ")[2])

    def verdict(port: int) -> int:
        command = [sys.executable, *(part.replace("8501", str(port)) for part in program[1:])]
        return subprocess.run(command, capture_output=True, check=False).returncode

    sick = HTTPServer(("127.0.0.1", 0), Answer)
    with listening(sick):
        assert verdict(sick.server_address[1]) == 1
    assert verdict(free_port()) == 1
    assert verdict(app.port) == 0
    path = re.search(r":8501(/[\w/]+)", program[-1])
    assert path
    with urllib.request.urlopen(f"http://127.0.0.1:{app.port}{path[1]}") as answer:
        found = json.load(answer)  # Streamlit answers unknown paths with 200 and the page
    assert found == {"status": "ok", "script": "ok", "engine": "ok"}


@contextmanager
def proxied(port: int, hosts: Path | None = None) -> Iterator[str]:
    """The address of a Caddy with our Caddyfile, before whatever listens on that port.

    With `hosts` the proxy looks names up in that file, and the app is called "app" as in
    compose.yaml; else it is localhost.
    """
    caddy = shutil.which("caddy")
    if not caddy:
        pytest.skip("no Caddy here; Debian's package caddy brings it")
    command = [caddy, "run", "--config", "deploy/Caddyfile", "--adapter", "caddyfile"]
    variables = {"APP": "localhost"}
    if hosts is not None:
        own = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "-r", "--mount"]
        mount = f'mount --bind {shlex.quote(str(hosts))} /etc/hosts && exec "$@"'
        prefix = [*own, "sh", "-c", mount, "sh"]
        tried = subprocess.run([*prefix, "true"], capture_output=True, check=False)
        if tried.returncode:
            pytest.skip("no mount namespaces here")
        command, variables = [*prefix, *command], {}
    front = free_port()
    variables |= {"SITE": f":{front}", "UPLOAD_MB": "1", "APP_PORT": str(port)}
    with child(
        command,
        cwd=ROOT,
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ):
        until_open(front)
        yield f"http://127.0.0.1:{front}"


def until_open(port: int) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=2):
                return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def test_the_proxy_passes_the_page_and_its_websocket_and_keeps_the_rest_inside(
    app: Running,
) -> None:
    before = len(app.asked)
    with proxied(app.port) as address:
        front = int(address.rpartition(":")[2])
        assert status(f"{address}/") == 200
        assert opens(front, f"http://{SITE}")
        assert opens(front, None)
        for foreign in ("https://elsewhere.example.net", f"https://{SITE}.example.net", "null"):
            assert not opens(front, foreign), foreign
        assert len(app.asked) == before, "refused by the proxy, before Streamlit asks the web"
        for path in ("health/deep", "metrics", "_stcore/agent/openapi.json"):
            assert status(f"{address}/{path}") == 404


class Reading(BaseHTTPRequestHandler):
    """Reads all that is sent before it answers: the app may answer before the proxy has counted."""

    def do_PUT(self) -> None:
        left = int(self.headers["Content-Length"])
        while left > 0 and (part := self.rfile.read(min(left, 65536))):
            left -= len(part)
        self.send_response(405)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


def test_the_proxy_refuses_what_is_larger_than_an_upload() -> None:
    server = HTTPServer(("127.0.0.1", 0), Reading)
    with listening(server), proxied(server.server_address[1]) as address:
        large = status(f"{address}/", data=b"x" * (2 * 1024 * 1024), method="PUT")
        small = status(f"{address}/", data=b"x" * 1024 * 1024, method="PUT")
    assert large in {413, 502, CUT_OFF}  # Caddy 2.6 says 502, or hangs up on whoever sends on
    assert small == 405, "that is the server's own answer"


class Named(BaseHTTPRequestHandler):
    """Answers with the address that it was reached at: one of several copies of an app."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(self.connection.getsockname()[0]).encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


def test_a_visitor_stays_at_one_copy_and_visitors_are_spread_over_all(tmp_path: Path) -> None:
    """One name with two addresses, as --scale app=2 makes."""
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost app\n127.0.0.2 app\n")
    one = HTTPServer(("127.0.0.1", 0), Named)
    port = one.server_address[1]
    two = HTTPServer(("127.0.0.2", port), Named)
    seen = set()
    with listening(one), listening(two), proxied(port, hosts) as address:
        for _visitor in range(20):
            with urllib.request.urlopen(address) as answer:
                copy = answer.read()
                cookie = re.match(r"hookviz_copy=[^;]+", answer.headers["Set-Cookie"])
            assert cookie
            seen.add(copy)
            for _visit in range(4):
                again = urllib.request.Request(address, headers={"Cookie": cookie[0]})
                with urllib.request.urlopen(again) as answer:
                    assert answer.read() == copy
    assert seen == {b"127.0.0.1", b"127.0.0.2"}


def test_sigterm_ends_it_while_people_are_there(app: Running) -> None:
    """Last in this file: it ends the app that the others share."""
    with connect(
        f"ws://127.0.0.1:{app.port}/_stcore/stream",
        subprotocols=["streamlit"],  # type: ignore[list-item] # a NewType of str
        proxy=None,
    ):
        app.process.send_signal(signal.SIGTERM)
        # process 1 of a container ends with 0, any other by the signal
        assert app.process.wait(timeout=30) in {0, -signal.SIGTERM}
