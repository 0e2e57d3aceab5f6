"""Read files behind the wall, where it is up: in processes of their own, with nothing to reach.

The app puts it up. Where it is not, and on systems without the means, files are read in the process
that wants them. `JOBS` lists the functions that read there. A file that ends its process is refused
in a sentence that says why.
"""

import logging
import os
import platform
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from hookviz.errors import HookVizError, ImageError, ModelError, WeightsError, shorten
from hookviz.language.saying import say
from hookviz.language.speaking import current

if TYPE_CHECKING:
    from hookviz.reader.server_process import Ended, ServerProcess

_log = logging.getLogger(__name__)
_DEADLINE = 3  # times the processor time: others compute as well
_PROCESSORS = ("x86_64", "aarch64")  # whose system calls `fork_server` knows
_MEGABYTE = 1024 * 1024
_KILLED, _OUT_OF_TIME = -9, -24  # by SIGKILL and SIGXCPU, which Windows lacks
_LONGEST, _LONGEST_LINE, _MOST_LINES = 1000, 300, 10
_ERRORS = {kind.__name__: kind for kind in (HookVizError, ImageError, ModelError, WeightsError)}


BASE_BYTES = 64 * 1024 * 1024
"""Bytes of memory that any file may take."""


@dataclass(frozen=True, slots=True)
class Job:
    """Way to read a kind of file.

    Attributes:
        target: ``package.module:function``, of type `hookviz.reader.fork_server.Read`. The module
            may have a function ``preload``, run once before the first file: nothing can be imported
            behind the wall.
        error: what is raised for a file that ends its reader.
    """

    target: str
    error: type[HookVizError]


JOBS: dict[str, Job] = {
    "nothing": Job("hookviz.reader.fork_server:read_nothing", HookVizError),
    "image": Job("hookviz.images.confined:read_image", ImageError),
    "frames": Job("hookviz.images.confined:read_frames", ImageError),
    "labels": Job("hookviz.models.labels:read_behind", WeightsError),
    "pickles": Job("hookviz.models.checkpoints.guards:follow_pickles", WeightsError),
    "safetensors": Job("hookviz.models.checkpoints.guards:follow_header", WeightsError),
}


@dataclass(frozen=True, eq=False, slots=True)
class Answer:
    """Answer of a process that read a file, and that its sender may have taken over.

    Attributes:
        facts: as JSON has them; to be checked by whoever uses them.
        arrays: read-only, by their names; shape and dtype are to be checked too.
    """

    facts: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False)


@dataclass(slots=True)
class _State:
    """Number of users of the wall, its server, and the function that names the asker."""

    users: int = 0
    server: "ServerProcess | None" = None
    asker: Callable[[], tuple[str, str]] = lambda: ("", "")


_state, _lock = _State(), threading.Lock()


class _Readers:
    """Readers that work at once: half of them for an address at most, and one for a session."""

    def __init__(self, most: int) -> None:
        self._most, self._changed = most, threading.Condition()
        self._busy: list[tuple[str, str]] = []  # address and session of each

    @contextmanager
    def one(self, address: str, session: str) -> Iterator[None]:
        """Wait for a reader, and have it for the block."""
        with self._changed:
            self._changed.wait_for(lambda: self._has_one_for(address, session))
            self._busy.append((address, session))
        try:
            yield
        finally:
            with self._changed:
                self._busy.remove((address, session))
                self._changed.notify_all()

    def _has_one_for(self, address: str, session: str) -> bool:
        if session and (address, session) in self._busy:
            return False
        of_address = sum(each == address for each, _ in self._busy)
        return len(self._busy) < self._most and of_address < self._most // 2


_readers = _Readers(8)


def put_up(asker: Callable[[], tuple[str, str]] | None = None) -> None:
    """Put the wall up, for the whole process; as often as it is put up it has to be taken down.

    Where the system lacks the means, files go on to be read in this process. `asker` returns the
    address and the session for which a file is read: one has half of the readers at most, the
    other one of them.
    """
    with _lock:
        _state.users += 1
        _state.asker = asker or _state.asker
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
    """Have a file read in a process of its own, and return the answer.

    Args:
        job: its name in `JOBS`.
        data: the file's bytes, or a descriptor of the file, open to read.
        options: for the job, fit for JSON and short; ``name`` is the file's name in messages.
        memory: bytes that it may take; as many may come back.
        seconds: of processor time that it may take; it is ended after three times as many.

    Raises:
        HookVizError: of the job's kind, if the file ends its reader; of any kind of ours that the
            reader raises.
    """
    request = _request(job, options, memory, seconds)
    kind, name = JOBS[job].error, str(options.get("name", "file"))
    with _readers.one(*_state.asker()):
        ended = _ended(request, data)
    if ended is None:
        raise kind(say("{file} can't be read at the moment. Try again.", file=quoted(name)))
    _check(ended, kind, name, request)
    return Answer((ended.header or {})["facts"], ended.arrays)


def memory_for_text(size: int) -> int:
    """Return the bytes of memory in which a text or a description of `size` bytes is read.

    A hundred bytes for each of its own: Python's smallest list or number takes fifty.
    """
    return BASE_BYTES + 100 * size


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
        code = server.read(_request("nothing", {}, BASE_BYTES, 10), b"").code
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


def _check(ended: "Ended", kind: type[HookVizError], name: str, request: Mapping[str, Any]) -> None:
    """Raise unless there are facts; what the reader logged is logged.

    Args:
        ended: how the process ended.
        kind: error for a file that ended it.
        name: of the file.
        request: of the reading.

    Raises:
        HookVizError: of that kind, or the reader's own.
    """
    header = ended.header
    if header is None:
        _log.warning("%r ended its reader: %s", shorten(name), ended)
        raise kind(_why(ended, name, request))
    lines = header.get("log")
    for line in lines[:_MOST_LINES] if isinstance(lines, list) else ():
        _log.info("%s", _clean(line, _LONGEST_LINE))
    error = header.get("error")
    if error == MemoryError.__name__:
        raise kind(_too_large(name, request))
    if error is not None:
        raise _ERRORS.get(str(error), kind)(_clean(header.get("text"), _LONGEST))
    if not isinstance(header.get("facts"), dict):
        raise kind(crashed(name))


def crashed(name: str) -> str:
    """Return the sentence for a file whose reader crashed, or answered what can't be."""
    return say(
        "{file} made its reader crash: it is damaged, or was made to do so. Get the file again, "
        "or save it anew.",
        file=quoted(name),
    )


def quoted(name: str) -> str:
    """Return a file's name as sentences have it."""
    return repr(shorten(name))


def _why(ended: "Ended", name: str, request: Mapping[str, Any]) -> str:
    if ended.late or ended.code == _OUT_OF_TIME:
        return say(
            "{file} takes longer than {seconds} seconds to read. Save it anew with another "
            "program, or give another file.",
            file=quoted(name),
            seconds=request["seconds"],
        )
    if ended.code == _KILLED:  # by the kernel, which had no memory left
        return _too_large(name, request)
    return crashed(name)


def _too_large(name: str, request: Mapping[str, Any]) -> str:
    return say(
        "{file} takes more than {size:,} MB of memory to read; give a smaller version.",
        file=quoted(name),
        size=request["memory"] // _MEGABYTE,
    )


def _clean(text: object, longest: int) -> str:
    """Return a text that came out without signs that can't be shown, and no longer than that."""
    whole = str(text).encode("utf-8", "replace").decode("utf-8")
    return shorten("".join(letter if letter.isprintable() else " " for letter in whole), longest)
