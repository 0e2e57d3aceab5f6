"""Supervise processes: start one again that was killed, and end all of them together.

On Linux they end too where the one that watches is killed with SIGKILL.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from hookviz.cli.messages import complain
from hookviz.serving.rate_limiter import RateLimiter

_POLL = 0.1  # seconds between two looks at which still run
_PAUSE = 1.0  # seconds from an end to the next start
_MOST, _WITHIN = 5, 60.0  # more ends than this in these seconds, and it is given up
_PATIENCE = 8.0  # seconds from SIGTERM to SIGKILL

_SIGNAL_OF_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None

_END_SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
            if hasattr(signal, name)]  # fmt: skip


@dataclass(eq=False)
class Process:
    """Command that is to run all the time.

    Attributes:
        name: what a person calls it, such as "Server 2".
        command: the program and its arguments.
        environment: all of its variables.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    _running: "subprocess.Popen[bytes] | None" = None
    _start_at: float = 0.0
    _ends: RateLimiter = field(default_factory=lambda: RateLimiter(_MOST, seconds=_WITHIN))

    def keep_up(self) -> int | None:
        """Start it where that is due; return its status where it is not to be started again.

        A signal ended it: that is an accident (the kernel's for want of memory, say), and it is
        started again after a pause, unless that happens too often. Where it ended with a status of
        its own it has said why, and would say it again.
        """
        now = time.monotonic()
        if self._running is None:
            if now >= self._start_at:
                self._running = subprocess.Popen(  # noqa: S603 - our own, and no shell
                    self.command,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    # This process has one thread, so what the fork copies is in order.
                    preexec_fn=partial(_end_with_parent, os.getpid()) if _libc else None,  # noqa: PLW1509
                )
            return None
        status = self._running.poll()
        if status is None:
            return None
        if status >= 0:
            return status
        ending = f"{self.name} (process {self._running.pid}) was ended by {_name(-status)}"
        if self._ends.is_exceeded():
            complain(f"{ending}, once too often within a minute.")
            return 1
        complain(f"{ending} and is started again.")
        self._ends.count()
        self._running, self._start_at = None, now + _PAUSE
        return None

    def end(self) -> None:
        """Send it SIGTERM, if it runs."""
        if self._running is not None and self._running.poll() is None:
            self._running.terminate()

    def wait(self, until: float) -> None:
        """Wait until it has ended, and kill it at time `until` of `time.monotonic`."""
        if self._running is None:
            return
        try:
            self._running.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            complain(f"{self.name} (process {self._running.pid}) did not end and is killed.")
            self._running.kill()
            self._running.wait()


def keep_up(processes: Sequence[Process]) -> int:
    """Run all of them until SIGINT or SIGTERM comes, or one can't go on; then end all.

    Returns:
        0 where a signal asked for the end, or else the status of the one that could not go on.
    """
    with _end_signals() as received:
        status = None
        try:
            while not received and status is None:
                for process in processes:
                    status = process.keep_up()
                    # Whoever ends a whole group has ended this one first.
                    if received or status is not None:
                        break
                else:
                    time.sleep(_POLL)
        finally:
            _end(processes)
    return 0 if received or status is None else status


def _end_with_parent(parent: int) -> None:
    """Have Linux send this new process SIGTERM when its parent ends, even by SIGKILL."""
    assert _libc is not None
    _libc.prctl(_SIGNAL_OF_PARENT, signal.SIGTERM)
    if os.getppid() != parent:  # it ended before this was said
        os._exit(0)


def _end(processes: Sequence[Process]) -> None:
    until = time.monotonic() + _PATIENCE
    for process in processes:
        process.end()
    for process in processes:
        process.wait(until)


@contextmanager
def _end_signals() -> Iterator[list[int]]:
    """Collect the signals that ask for the end during the block, in a list that grows."""
    received: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _frame: received.append(number))
        for number in _END_SIGNALS
    }
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
