"""Measure how far a transfer is: bytes and speed, in a person's words and units."""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from hookviz.wording import byte_size, bytes_of

_SPEED_WINDOW = 3.0  # seconds over which the speed is measured


@dataclass(frozen=True, slots=True)
class TransferStatus:
    """Bytes, speed and size of a transfer at one moment.

    Attributes:
        file: the name of the file.
        received: bytes so far; goes back only where a server makes the transfer begin anew.
        total: bytes in all, None where the server does not say.
        bytes_per_second: over the last few seconds.
        note: what it waits for, such as the next attempt; mostly empty.
    """

    file: str
    received: int
    total: int | None
    bytes_per_second: float
    note: str = ""

    @property
    def share(self) -> float | None:
        """Part that is done, from 0 to 1; None where the server does not say how much there is."""
        return min(1.0, self.received / self.total) if self.total else None

    @property
    def text(self) -> str:
        """Amount and speed, such as ``12.3 of 87.3 MB · 4.5 MB/s``."""
        return f"{self.amount} · {self.note or f'{byte_size(self.bytes_per_second)}/s'}"

    @property
    def amount(self) -> str:
        """Amount, such as ``12.3 of 87.3 MB``, or ``12.3 MB`` where the whole is not known."""
        if self.total is None:
            return byte_size(self.received)
        return bytes_of(self.received, self.total)

    @property
    def title(self) -> str:
        """File name with its size: ``resnet34-b627a593.pth (87.3 MB)``."""
        return self.file if self.total is None else f"{self.file} ({byte_size(self.total)})"


Report = Callable[[TransferStatus], None]


class Meter:
    """Counter that a transfer's thread feeds while other threads read it."""

    def __init__(self, file: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Start at zero; `file` is the name to show, `clock` tells seconds."""
        self._file = file
        self._clock = clock
        self._lock = threading.Lock()
        self._received = 0
        self._total: int | None = None
        self._note = ""
        self._samples = deque([(clock(), 0)])  # (seconds, bytes by then)

    def count(self, received: int) -> None:
        """Set the number of bytes that are there by now."""
        now = self._clock()
        with self._lock:
            if received < self._received:
                self._samples.clear()
            self._received = received
            if not self._samples or now - self._samples[-1][0] >= _SPEED_WINDOW / 30:
                self._samples.append((now, received))
            self._forget_before(now - _SPEED_WINDOW)

    def expect(self, total: int | None) -> None:
        """Set the number of bytes that there will be, None for unknown."""
        with self._lock:
            self._total = total

    def note(self, text: str) -> None:
        """Set what the transfer is waiting for; empty when it goes on."""
        with self._lock:
            self._note = text

    def read(self) -> TransferStatus:
        """Return the status at this moment."""
        now = self._clock()
        with self._lock:
            self._forget_before(now - _SPEED_WINDOW)
            then, by_then = self._samples[0]
            # the first moments alone would give an absurd speed
            speed = (self._received - by_then) / max(now - then, 0.1)
            return TransferStatus(self._file, self._received, self._total, speed, self._note)

    def _forget_before(self, moment: float) -> None:
        # the last sample before the window stays: without it a stall would have no speed
        while len(self._samples) > 1 and self._samples[1][0] < moment:
            self._samples.popleft()
