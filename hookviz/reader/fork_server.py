"""Fork a process for each file, from one that has loaded the readers and nothing else.

Run as a program by `hookviz.reader.server_process`. It has no torch and one thread, reads nothing
that a stranger sent, and ends when the app's end of its socket closes.

A process that reads a file first gives up everything but its memory and two open files. The means
are the kernel's own (Linux): limits, no new privileges, and a seccomp filter, a list of the system
calls that are left, by `ctypes`: no package for it is on every platform and light.
"""

import ctypes
import gc
import json
import logging
import math
import os
import platform
import resource
import selectors
import signal
import socket
import struct
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, NamedTuple

from hookviz.errors import HookVizError
from hookviz.language import catalogs, speaking
from hookviz.reader.answer_file import AnswerWriter

_SET_DEATH_SIGNAL, _SET_DUMPABLE, _SET_SECCOMP, _SET_NO_NEW_PRIVILEGES = 1, 4, 22, 38
_FILTER = 2  # of PR_SET_SECCOMP: a program decides
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050001, 0x80000000  # the second with EPERM
_LOAD, _EQUALS, _RETURN = 0x20, 0x15, 0x06  # BPF: load a word, jump if equal, return
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16  # in what the kernel shows the program
_DUPLICATE = 1030  # fcntl's F_DUPFD_CLOEXEC, with which Python maps a file
_MOST_OPEN = 64

_libc = ctypes.CDLL(None, use_errno=True)


class _Machine(NamedTuple):
    """A processor's own number, and its numbers of the system calls that decoding needs.

    None opens, connects, starts or signals anything. `fcntl` duplicates descriptors alone.
    """

    architecture: int
    calls: tuple[int, ...]
    fcntl: int


_MACHINES = {
    # read write close fstat lseek, mmap mprotect munmap brk, rt_sigaction rt_sigprocmask
    # rt_sigreturn, pread64 pwrite64 readv writev, sched_yield mremap madvise, getpid exit,
    # ftruncate, gettid futex sched_getaffinity, restart_syscall clock_gettime exit_group,
    # sigaltstack, getrandom
    "x86_64": _Machine(
        0xC000003E,
        (
            *(0, 1, 3, 5, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 24, 25, 28, 39, 60, 77),
            *(131, 186, 202, 204, 219, 228, 231, 318),
        ),
        72,
    ),
    "aarch64": _Machine(
        0xC00000B7,
        (
            *(63, 64, 57, 80, 62, 222, 226, 215, 214, 134, 135, 139, 67, 68, 65, 66, 124, 216),
            *(233, 172, 93, 46, 178, 98, 123, 128, 113, 94, 132, 278),
        ),
        25,
    ),
}


def give_up_most() -> None:
    """Give up what no file needs, before one comes: it takes as long as reading a small one.

    Raises:
        OSError: the kernel refuses.
    """
    os.setpgid(0, 0)
    with suppress(OSError):  # where memory runs out, this process is ended first and not the app
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
    _control(_SET_DEATH_SIGNAL, signal.SIGKILL)
    _control(_SET_DUMPABLE, 0)  # no other process of the same user may look into it
    _control(_SET_NO_NEW_PRIVILEGES, 1)
    os.environ.clear()
    for kind in (resource.RLIMIT_NPROC, resource.RLIMIT_CORE):
        resource.setrlimit(kind, (0, 0))


def confine(keep: tuple[int, ...], memory: int, seconds: int) -> None:
    """Give up everything, for good, after `give_up_most`. Only a process of one thread may.

    Args:
        keep: the descriptors that stay open.
        memory: bytes that the process may take beside what it has.
        seconds: of processor time that it may take.

    Raises:
        OSError: the kernel refuses; the process is not confined then.
    """
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    _close_all_but(keep)
    for kind, limit in (
        (resource.RLIMIT_AS, pages * resource.getpagesize() + memory),
        (resource.RLIMIT_FSIZE, memory),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_NOFILE, _MOST_OPEN),
    ):
        hard = resource.getrlimit(kind)[1]
        least = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        late = kind == resource.RLIMIT_CPU and least != hard
        resource.setrlimit(kind, (least, least + late))  # SIGXCPU tells it from a lack of memory
    _filter_calls(_MACHINES[platform.machine()])


def _close_all_but(keep: tuple[int, ...]) -> None:
    first = 0
    for descriptor in sorted(keep):
        os.closerange(first, descriptor)
        first = descriptor + 1
    os.closerange(first, 2**20)


def _control(option: int, value: int, more: int = 0) -> None:
    long = ctypes.c_ulong
    if _libc.prctl(option, long(value), long(more), long(0), long(0)):
        raise OSError(ctypes.get_errno(), f"prctl {option} is refused")


def _filter_calls(machine: _Machine) -> None:
    """Have the kernel refuse all system calls but the machine's list.

    A call by another processor's numbers (32 bits on 64) ends the process.
    """
    calls = len(machine.calls)
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUALS, 1, 0, machine.architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        *(
            (_EQUALS, calls - at + 3, 0, number)  # to the last step
            for at, number in enumerate(machine.calls)
        ),
        (_EQUALS, 0, 2, machine.fcntl),
        (_LOAD, 0, 0, _ARGUMENTS_AT + 8),  # the low half of its second argument
        (_EQUALS, 1, 0, _DUPLICATE),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    packed = b"".join(struct.pack("HBBI", *step) for step in steps)
    program = ctypes.create_string_buffer(packed, len(packed))
    program_header = ctypes.create_string_buffer(
        struct.pack("HP", len(steps), ctypes.addressof(program))
    )
    _control(_SET_SECCOMP, _FILTER, ctypes.addressof(program_header))


Read = Callable[[mmap | bytes, Mapping[str, Any], AnswerWriter], Mapping[str, Any]]
"""Takes the file, what it was asked for and room for arrays, and returns facts fit for JSON."""

MOST_REQUEST = 64 * 1024
"""Bytes of a request, beside the files that come with it."""

_MOST_LINES, _MOST_LETTERS = 10, 300  # of the log of one file
_NICE_AFTER_S = 0.5
"""Seconds after which a process has the processors that the app leaves it: a photograph takes less.
"""
_NICENESS = 15
_UNCONFINED = 97  # the status of a process that could not be confined, and read nothing


@dataclass(slots=True)
class _Child:
    """A process that reads a file.

    Attributes:
        asker: the socket on which its end is told.
        nice_after: when it gives way to the app; infinity once it does.
        deadline: when it is killed.
        late: whether it was.
    """

    asker: socket.socket
    nice_after: float
    deadline: float
    late: bool = False


class _LogLines(logging.Handler):
    """Keeps the first lines of a file's log, which the app writes: nothing is open to write to."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        if len(self.lines) < _MOST_LINES:
            self.lines.append(record.getMessage()[:_MOST_LETTERS])


def main(control: int, targets: Mapping[str, str]) -> None:
    """Serve until the app closes its end.

    Args:
        control: descriptor of the socket to the app.
        targets: of jobs, by their names.
    """
    reads = {name: _load(target) for name, target in targets.items()}
    _load_words()
    gc.collect()
    gc.freeze()  # a child's collection would copy every page
    _Server(socket.socket(fileno=control), reads).serve()


class _Server:
    """The loop: requests, ends of children, deadlines."""

    def __init__(self, control: socket.socket, reads: Mapping[str, Read]) -> None:
        self._control, self._reads = control, reads
        self._children: dict[int, _Child] = {}
        self._waiting: tuple[int, socket.socket] | None = None  # a process, and how to tell it
        self._selector = selectors.DefaultSelector()
        woken, wakes = socket.socketpair()
        woken.setblocking(False)
        wakes.setblocking(False)
        self._woken, self._wakes = woken, wakes
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        self._selector.register(control, selectors.EVENT_READ, 0)
        self._selector.register(woken, selectors.EVENT_READ, 0)

    def serve(self) -> None:
        """Serve until the app closes its end, and end all children then."""
        self._prepare()
        try:
            while True:
                for key, _ in self._selector.select(self._until_next()):
                    if key.fileobj is self._woken:
                        self._woken.recv(4096)
                    elif key.fileobj is self._control:
                        if not self._begin():
                            return
                    elif key.data in self._children:
                        self._kill(key.data)  # whoever asked has gone
                self._hold_back()
                self._reap()
        finally:
            # Their ends wake nobody any more, and what would be woken is closed before they come.
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for child in self._children:
                self._kill(child)

    def _begin(self) -> bool:
        """Fork a process for the next request; return False where the app has gone."""
        message, files, _, _ = socket.recv_fds(self._control, MOST_REQUEST, 3)
        if not message:
            return False
        asker = socket.socket(fileno=files[0])
        try:
            number = self._hand_over(message, files[1:])
        except OSError:  # there is no room for another process
            asker.send(json.dumps({"code": -signal.SIGKILL, "late": False}).encode())
            asker.close()
        else:
            now = time.monotonic()
            deadline = now + json.loads(message)["deadline"]
            self._children[number] = _Child(asker, now + _NICE_AFTER_S, deadline)
            self._selector.register(asker, selectors.EVENT_READ, number)
            self._prepare()
        finally:
            os.close(files[1])
            os.close(files[2])
        return True

    def _hand_over(self, message: bytes, files: Sequence[int]) -> int:
        """Give a request to the process that waits for one, and return its number."""
        if self._waiting is None:
            self._prepare()
        if self._waiting is None:
            raise OSError("no process")
        number, ear = self._waiting
        self._waiting = None
        with ear:
            socket.send_fds(ear, [message], files)
        return number

    def _prepare(self) -> None:
        """Fork the process for the next file before it comes: that takes as long as a small one."""
        mouth, ear = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            number = os.fork()
        except OSError:  # tried again for the next file
            ear.close()
        else:
            if number == 0:
                ear.close()
                _child(self._reads, mouth)
            self._waiting = number, ear
        mouth.close()

    def _until_next(self) -> float | None:
        """Return the seconds until a process gives way or is late; None where there is none."""
        times = [min(each.nice_after, each.deadline) for each in self._children.values()]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _hold_back(self) -> None:
        """Have those that take long give way to the app, and kill those that are late."""
        now = time.monotonic()
        for number, child in self._children.items():
            if child.nice_after <= now:
                child.nice_after = math.inf
                with suppress(ProcessLookupError):
                    os.setpriority(os.PRIO_PROCESS, number, _NICENESS)
            if child.deadline <= now:
                child.late, child.deadline = True, now + 1
                self._kill(number)

    def _kill(self, number: int) -> None:
        for kill in (os.killpg, os.kill):  # it may not have its group yet
            try:
                kill(number, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def _reap(self) -> None:
        while True:
            try:
                number, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not number:
                return
            child = self._children.pop(number, None)
            if child is None:  # the one that waited
                self._waiting = None
                continue
            self._selector.unregister(child.asker)
            code = os.waitstatus_to_exitcode(status)
            with child.asker:
                try:
                    child.asker.send(json.dumps({"code": code, "late": child.late}).encode())
                except OSError:
                    continue  # nobody waits for it any more


def _child(reads: Mapping[str, Read], mouth: socket.socket) -> None:
    """Wait for a request, read its file in this process, and end it."""
    code = _UNCONFINED
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        give_up_most()
        message, files, _, _ = socket.recv_fds(mouth, MOST_REQUEST, 2)
        if message:  # else the server has gone
            request = json.loads(message)
            confine((files[0], files[1]), request["memory"], request["seconds"])
            code = 1
            speaking.speak(request["language"])
            writer = AnswerWriter(files[1])
            _answer(reads[request["job"]], files[0], request["options"], writer)
            code = 0
    finally:  # whatever was raised: there is nowhere to show it
        os._exit(code)


def _answer(read: Read, file: int, options: Mapping[str, Any], writer: AnswerWriter) -> None:
    log = _LogLines()
    logging.getLogger("hookviz").addHandler(log)
    size = os.lseek(file, 0, os.SEEK_END)
    data = mmap(file, size, access=ACCESS_READ) if size else b""
    try:
        facts = read(data, options, writer)
    except HookVizError as error:
        writer.finish(error=type(error).__name__, text=str(error), log=log.lines)
    except MemoryError:
        writer.finish(error="MemoryError", log=log.lines)
    else:
        writer.finish(facts=facts, log=log.lines)


def _load_words() -> None:
    """Load all that a sentence, a number and an error take, for nothing can be opened later."""
    for language in catalogs.languages():
        catalogs.catalog(language)
        catalogs.signs(language)
    for name in ("ascii", "cp1252", "latin_1", "utf_8", "utf_16", "utf_16_be", "utf_16_le"):
        import_module(f"encodings.{name}")
    logging.raiseExceptions = False  # there is no standard error
    logging.getLogger("hookviz").setLevel(logging.INFO)
    warnings.simplefilter("ignore")  # to show one, Python would open the line's file


def _load(target: str) -> Read:
    """Import the function of a job, and let its module load what it will need."""
    module_name, _, name = target.partition(":")
    module = import_module(module_name)
    getattr(module, "preload", lambda: None)()
    read: Read = getattr(module, name)
    return read


def read_nothing(
    _data: mmap | bytes, _options: Mapping[str, Any], _answer: AnswerWriter
) -> Mapping[str, Any]:
    """Answer, which shows that a process can be confined here."""
    return {}
