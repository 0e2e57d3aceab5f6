"""Run a process that ends when its starter does, however that one ends.

Between the two stands this file as a small process. It holds one end of a pipe, and the system
closes the other when the starter is gone, killed too: then the child and all that it started get
SIGTERM, and SIGKILL after a while. SIGINT and SIGTERM are passed on to the child. What a shell runs
in the background or under ``nohup`` ignores SIGINT, and so would all that it starts; this child
never does.
"""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any


@contextmanager
def child(
    command: Sequence[str | os.PathLike[str]], *, patience: float = 15.0, **options: Any
) -> Iterator[Any]:
    """Start a `subprocess.Popen` for the block, with its options except `stdin`.

    Its `pid` is that of the process between; signals and the exit status are the child's.
    `patience` is the seconds from SIGTERM to SIGKILL.
    """
    options.setdefault("text", True)
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, str(patience), *command],
        stdin=subprocess.PIPE,
        start_new_session=True,  # Ctrl-C in a terminal is the starter's to handle
        **options,
    )
    lifeline, guard.stdin = guard.stdin, None  # out of reach of communicate(), which would close it
    assert lifeline is not None
    try:
        yield guard
    finally:
        lifeline.close()
        guard.wait()
        for stream in (guard.stdout, guard.stderr):
            if stream is not None:
                stream.close()


def main(patience: float, command: Sequence[str]) -> int:
    """Return the child's exit status once it has ended, negative for the signal that ended it."""
    woken, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)  # the child starts with the default of each
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0)
    while process.poll() is None:
        ready, _, _ = select.select([woken, sys.stdin], [], [])
        if woken in ready:
            for each in os.read(woken, 64):
                if each != signal.SIGCHLD:
                    process.send_signal(each)
        if sys.stdin in ready:  # nobody writes to it: this is its end
            break
    _end_group(process, patience)
    return process.wait()


def _end_group(process: subprocess.Popen[bytes], patience: float) -> None:
    """End the child and what it started, politely if they can be."""
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, 5.0)):
        deadline = time.monotonic() + seconds
        with suppress(ProcessLookupError, PermissionError):  # macOS says the latter of zombies
            os.killpg(process.pid, number)
            while time.monotonic() < deadline:
                process.poll()  # the child itself would be in its group until it is waited for
                os.killpg(process.pid, 0)
                time.sleep(0.02)


if __name__ == "__main__":
    status = main(float(sys.argv[1]), sys.argv[2:])
    if status < 0:  # end as the child did
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)
