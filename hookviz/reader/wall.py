"""Read files behind the wall, where it is up: in processes of their own, with nothing to reach.

The app puts it up. Where it is not, and on systems without the means, files are read in the process
that wants them.
"""

import logging
import os
import platform
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from hookviz.language.saying import say
from hookviz.language.speaking import current
from hookviz.reader import endings, jobs

if TYPE_CHECKING:
    from hookviz.reader.server_process import Ended, ServerProcess

_log = logging.getLogger(__name__)
_DEADLINE = 3  # times the processor time: others compute as well
_PROCESSORS = ("x86_64", "aarch64")  # whose system calls `confinement` knows
_TRIAL_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, eq=False, slots=True)
class Answer:
    """What a file was read as, by a process that its sender may have taken over.

    Attributes:
        facts: as JSON has them; to be checked by whoever uses them.
        arrays: read-only, by their names; shape and dtype are to be checked too.
    """

    facts: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False)


@dataclass(slots=True)
class _State:
    """How many want the wall up, and its server."""

    users: int = 0
    server: "ServerProcess | None" = None


_state, _lock = _State(), threading.Lock()
_at_once = threading.BoundedSemaphore(8)  # files that are read; others wait


def put_up() -> None:
    """Put the wall up, for the whole process; as often as it is put up it has to be taken down.

    Where the system lacks the means, files go on to be read in this process.
    """
    with _lock:
        _state.users += 1
        if _state.server is None and _is_possible():
            _state.server = _tried(_start())


def take_down() -> None:
    """Take the wall down, and end its processes, once nobody wants it up any more."""
    with _lock:
        _state.users = max(0, _state.users - 1)
        if _state.users or _state.server is None:
            return
        server, _state.server = _state.server, None
    server.end()


def is_up() -> bool:
    """Return whether files are read behind the wall."""
    return _state.server is not None


def read(
    job: str, data: bytes | int, options: Mapping[str, Any], *, memory: int, seconds: int
) -> Answer:
    """Have a file read in a process of its own, and return what it was read as.

    Args:
        job: its name in `hookviz.reader.jobs.JOBS`.
        data: the file's bytes, or a descriptor of the file, open to read.
        options: for the job, fit for JSON and short; ``name`` is what messages call the file.
        memory: bytes that it may take; as many may come back.
        seconds: of processor time that it may take; it is ended after three times as many.

    Raises:
        HookVizError: of the job's kind, if the file ends its reader; of any kind of ours that the
            reader raises.
    """
    request = _request(job, options, memory, seconds)
    kind, name = jobs.JOBS[job].error, str(options.get("name", "file"))
    with _at_once:
        ended = _ended(request, data)
    if ended is None:
        raise kind(say("{file} can't be read at the moment. Try again.", file=endings.quoted(name)))
    endings.check(ended, kind, name, request)
    return Answer((ended.header or {})["facts"], ended.arrays)


def server_number() -> int | None:
    """Return the number of the server's process; None where the wall is down."""
    server = _state.server
    return None if server is None else server.number


def _is_possible() -> bool:
    """Return whether this is Linux on a processor whose system calls are known."""
    return (
        sys.platform == "linux"
        and platform.machine() in _PROCESSORS
        and sys.maxsize > 2**32
        and hasattr(os, "memfd_create")
    )


def _start() -> "ServerProcess":
    from hookviz.reader.server_process import ServerProcess  # noqa: PLC0415 - on Linux alone

    return ServerProcess()


def _tried(server: "ServerProcess") -> "ServerProcess | None":
    """Return the server if it can confine a process here; some containers forbid that."""
    from hookviz.reader.server_process import ServerGoneError  # noqa: PLC0415 - on Linux alone

    try:
        code = server.read(_request("nothing", {}, _TRIAL_BYTES, 10), b"").code
    except ServerGoneError:
        code = -1
    if code == 0:
        return server
    server.end()
    _log.warning(
        "No process can be confined here (%s): what visitors send is read by the app itself.", code
    )
    return None


def _request(job: str, options: Mapping[str, Any], memory: int, seconds: int) -> Mapping[str, Any]:
    return {
        "job": job,
        "options": options,
        "memory": memory,
        "seconds": seconds,
        "deadline": seconds * _DEADLINE,
        "language": current(),
    }


def _ended(request: Mapping[str, Any], data: bytes | int) -> "Ended | None":
    """Have the server read it; where that has ended a new one, once."""
    from hookviz.reader.server_process import ServerGoneError  # noqa: PLC0415 - on Linux alone

    for _ in range(2):
        server = _state.server
        if server is None:
            return None
        try:
            return server.read(request, data)
        except ServerGoneError:
            _log.warning("The server of reading processes ended, and is started anew.")
            _replace(server)
    return None


def _replace(gone: "ServerProcess") -> None:
    with _lock:
        if _state.server is gone:  # else another thread has done it
            _state.server = _start() if _state.users else None
            gone.end()
