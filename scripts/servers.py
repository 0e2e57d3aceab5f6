"""Run real servers of the app on loopback, for tests, benchmarks and pictures."""

import os
import re
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from scripts.children import child

ROOT = Path(__file__).parent.parent


def free_port() -> int:
    """Return a port that nobody listened on a moment ago.

    It is below those that Linux gives to connections and to whoever asks for any, so that nobody
    gets it in the seconds which a server takes to start.
    """
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def written(output: IO[str]) -> str:
    """Return what a process has written so far, without moving where it writes."""
    file = output.fileno()
    return os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace")


_TROUBLE = re.compile(r"Traceback|\b(?:ERROR|CRITICAL)\b|Error: |\"level\": \"(?:error|critical)\"")


class Server(str):
    """Address of a server of one's own, and facts about its process. Linux only."""

    _guard: int
    _output: IO[str]

    @classmethod
    def of(cls, address: str, guard: int, output: IO[str]) -> "Server":
        """Return the server at an address, by its guarding process, and its output."""
        server = cls(address)
        server._guard, server._output = guard, output
        return server

    def pid(self) -> int:
        """Return the id of the server's process, the only one that its guard has started."""
        children = Path(f"/proc/{self._guard}/task/{self._guard}/children").read_text()
        return int(children.split()[0])

    def megabytes(self) -> float:
        """Return the server's megabytes in memory."""
        status = Path(f"/proc/{self.pid()}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1000

    def processor(self) -> float:
        """Return the processor seconds that the server has taken, all threads together."""
        fields = Path(f"/proc/{self.pid()}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def log(self) -> list[str]:
        """Return the lines of its output."""
        return written(self._output).splitlines()

    def errors(self) -> list[str]:
        """Return the lines of its output that tell of something that went wrong.

        With a traceback's first line comes the rest of it.
        """
        lines, troubles = self.log(), []
        for at, line in enumerate(lines):
            if _TROUBLE.search(line):
                rest = _rest_of(lines[at + 1 :]) if "Traceback" in line else []
                troubles.append("\n".join(each[:200] for each in (line, *rest)))
        return troubles


def _rest_of(lines: list[str]) -> list[str]:
    """Return what follows a traceback's first line: its steps, indented, and the error."""
    end = next((at for at, line in enumerate(lines) if not line.startswith(" ")), len(lines))
    return lines[: end + 1]


@contextmanager
def serve(
    environment: Mapping[str, str] | None = None, command: Sequence[str] = ()
) -> Iterator[Server]:
    """Start an app for the block and return its address; show its output if it does not come up."""
    port = free_port()
    command = command or (
        *(sys.executable, "-m", "streamlit", "run", "app.py"),
        *("--server.port", str(port), "--server.address", "127.0.0.1"),
    )
    command = [part.replace("PORT", str(port)) for part in command]
    address = f"http://127.0.0.1:{port}"
    with (
        tempfile.TemporaryFile("w+", errors="replace") as output,
        child(
            command,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as server,
    ):
        _until_healthy(server, address, output)
        yield Server.of(address, server.pid, output)


def _until_healthy(server: subprocess.Popen[str], address: str, output: IO[str]) -> None:
    """Wait until the server answers.

    Raises:
        RuntimeError: it ended, failed, or said nothing for 90 seconds; with the end of its output.
    """
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{address}/_stcore/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        except urllib.error.HTTPError as error:
            with error:
                if error.code == 500:  # it will not get better
                    break
        except OSError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"The app did not come up:\n{written(output)[-4000:]}")
