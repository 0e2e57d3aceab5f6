"""Take everything from a process but its memory and two open files, before it reads a file.

The kernel's own means (Linux): limits, no new privileges, and a seccomp filter, a list of the
system calls that are left, by `ctypes`: no package for it is on every platform and light.
"""

import ctypes
import os
import platform
import resource
import signal
import struct
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

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
    told = ctypes.create_string_buffer(struct.pack("HP", len(steps), ctypes.addressof(program)))
    _control(_SET_SECCOMP, _FILTER, ctypes.addressof(told))
