"""Servers for a block: up before it begins, and gone whatever ends it."""

import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from scripts.servers import serve
from tests.cli.command import ROOT

SMALL = """
import http.server, sys

class Healthy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(int(sys.argv[2]))
        self.end_headers()

http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Healthy).serve_forever()
"""
"""A server that starts at once, and answers all with one status."""

SUITE = f"""
import time
from scripts.servers import serve

def test_something():
    with serve(command={[sys.executable, "-c", SMALL, "PORT", "200"]!r}) as address:
        with open("address", "w") as file:
            print(address, file=file)
        print("up", flush=True)
        time.sleep(200)
"""


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_a_block_that_fails_leaves_no_server() -> None:
    addresses = []

    def fails() -> None:
        with serve(command=[sys.executable, "-c", SMALL, "PORT", "200"]) as address:
            addresses.append(address)
            assert answers(address)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert not answers(addresses[0])


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("print('no such thing'); raise SystemExit(3)", "no such thing"),
        ("import sys; sys.argv[2] = '500'" + SMALL, '"GET /_stcore/health HTTP/1.1" 500'),
    ],
    ids=["ends", "fails"],
)
def test_a_server_that_does_not_come_up_says_why(program: str, said: str) -> None:
    command = [sys.executable, "-c", program, "PORT", "200"]
    with pytest.raises(RuntimeError, match="did not come up") as caught, serve(command=command):
        pass
    assert said in str(caught.value)


def test_tests_that_are_killed_leave_no_server(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(SUITE)
    options = ("-s", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(tmp_path))
    command = [sys.executable, "-m", "pytest", *options, "test_it.py"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"},
        stdout=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdout is not None
        while "up" not in run.stdout.readline().split():
            assert run.poll() is None
        address = (tmp_path / "address").read_text().strip()
        assert answers(address)
        run.send_signal(signal.SIGTERM)
    assert run.returncode == -signal.SIGTERM
    deadline = time.monotonic() + 60
    while answers(address):
        assert time.monotonic() < deadline
        time.sleep(0.02)
