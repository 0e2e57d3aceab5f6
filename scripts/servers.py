"""Real servers of the app on loopback, for tests, benchmarks and pictures."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent


def free_port() -> int:
    """A port that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serve(
    environment: Mapping[str, str] | None = None, command: Sequence[str] = ()
) -> Iterator[str]:
    """The address of an app started for the block; its output is shown if it does not come up."""
    port = free_port()
    command = command or (
        *(sys.executable, "-m", "streamlit", "run", "app.py"),
        *("--server.port", str(port), "--server.address", "127.0.0.1"),
    )
    command = [part.replace("PORT", str(port)) for part in command]
    server = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_until_healthy(server, address)
        yield address
    finally:
        server.send_signal(signal.SIGINT)
        try:
            server.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            server.kill()
            server.communicate()


def _wait_until_healthy(server: subprocess.Popen[str], address: str) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.05)
    server.kill()
    output, _ = server.communicate()
    raise RuntimeError(f"The app did not come up:\n{output}")
