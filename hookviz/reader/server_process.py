"""Start the server of processes, and have it read files; on Linux alone."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from hookviz.language import catalogs
from hookviz.reader import answer_file
from hookviz.reader.answer_file import BadAnswerError
from hookviz.reader.fork_server import MOST_REQUEST
from hookviz.reader.wall import JOBS

_PATIENCE = 10.0  # seconds beyond the deadline, until the server counts as hung
_END = 5.0  # seconds that the server has to end
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[3]);"
    "from hookviz.reader.fork_server import main; main(int(sys.argv[1]), json.loads(sys.argv[2]))"
)
_INHERITED = (catalogs.SETTING, "LD_LIBRARY_PATH")
"""Environment variables that the server gets from the app; it has no other secret of the app."""
_OF_ITS_OWN = {
    # One thread: a process with others can't be forked safely.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    # Memory in pages of 2 MB that is not given back between two steps: half of a photograph's time
    # went into new pages (glibc's manual, "Memory Allocation Tunables").
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1:glibc.malloc.top_pad=16777216"
    ":glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=4294967296",
}


class ServerGoneError(Exception):
    """The server ended, or does not answer."""


@dataclass(frozen=True, eq=False, slots=True)
class Ended:
    """How a reading process ended.

    Attributes:
        code: 0, its status, or minus the signal that ended it.
        late: whether it was killed at its deadline.
        header: what it answered; None where that is no answer.
        arrays: of the answer, by their names.
        fault: what is wrong with the answer, for the log.
    """

    code: int
    late: bool
    header: Mapping[str, Any] | None = None
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    fault: str = ""


class ServerProcess:
    """The server of processes; any thread may ask it."""

    def __init__(self) -> None:
        """Start it; it answers once it has loaded what it needs."""
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = {name: os.environ[name] for name in _INHERITED if name in os.environ}
        environment |= _OF_ITS_OWN
        targets = {name: job.target for name, job in JOBS.items()}
        arguments = [str(its.fileno()), json.dumps(targets), json.dumps(sys.path)]
        with its:
            self._process = subprocess.Popen(  # noqa: S603 - our own program, and no shell
                [sys.executable, "-I", "-c", _PROGRAM, *arguments],
                env=environment,
                pass_fds=(its.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,  # a key that ends the app does not end it first
            )
        self._control, self._sending = mine, threading.Lock()

    @property
    def number(self) -> int:
        """The process's number."""
        return self._process.pid

    def read(self, request: Mapping[str, Any], data: bytes | int) -> Ended:
        """Have a file read in a process of its own.

        Args:
            request: as `hookviz.reader.fork_server` reads it.
            data: the file's bytes, or its descriptor.

        Raises:
            ServerGoneError: there is nobody to read it.
        """
        answer = answer_file.create("answer")
        try:
            file = data if isinstance(data, int) else _sealed(data)
            try:
                status = self._ask(request, file, answer)
            finally:
                if not isinstance(data, int):
                    os.close(file)
            code, late = status["code"], status["late"]
            if code:
                return Ended(code, late)
            try:
                return Ended(code, late, *answer_file.take(answer, request["memory"]))
            except (BadAnswerError, OSError) as error:
                return Ended(code, late, fault=str(error))
        finally:
            os.close(answer)

    def _ask(self, request: Mapping[str, Any], file: int, answer: int) -> Mapping[str, Any]:
        message = json.dumps(request).encode()
        if len(message) > MOST_REQUEST:
            raise ValueError(f"options of {len(message)} bytes")
        mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with mine:
            try:
                with its, self._sending:
                    socket.send_fds(self._control, [message], [its.fileno(), file, answer])
                mine.settimeout(request["deadline"] + _PATIENCE)
                ended = mine.recv(1024)
            except OSError as error:  # TimeoutError is one
                raise ServerGoneError from error
        if not ended:
            raise ServerGoneError
        status: Mapping[str, Any] = json.loads(ended)
        return status

    def end(self) -> None:
        """End it, with all its processes."""
        self._control.close()
        try:
            self._process.wait(_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _sealed(data: bytes) -> int:
    """Return a file of memory with the bytes, which nobody can change."""
    file = answer_file.create("given")
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]
    answer_file.seal(file)
    return file
