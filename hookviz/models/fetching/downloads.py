"""Download files, for many at once: one transfer for all who ask, whole or not at all.

A transfer runs in a thread of its own, so whoever waits can draw progress, cancel or walk away.
What has come lies in a temporary file beside the target, which takes the target's place only once
its length and the SHA-256 prefix in its name (``resnet34-b627a593.pth``) are right.
"""

import atexit
import errno
import hashlib
import logging
import math
import os
import secrets
import shutil
import threading
import time
from collections.abc import Hashable
from contextlib import suppress
from glob import escape
from pathlib import Path

from hookviz.errors import WeightsError
from hookviz.language.saying import say
from hookviz.language.speaking import current, speak
from hookviz.models.fetching.transfers import (
    Meter,
    Report,
    RetryLimits,
    Transfer,
    TransferStatus,
    folder_error,
    hash_in_name,
)
from hookviz.wording import byte_size

__all__ = ["Download", "Report", "RetryLimits", "TransferStatus", "fetch", "matches_name", "start"]

logger = logging.getLogger(__name__)
_PATIENCE = RetryLimits()
_STALE_AFTER = 86_400.0  # seconds after which a crashed process's temporary file is swept away

# Guards the registry and the state of every download; held for moments only.
_lock = threading.Lock()
_under_way: dict[Path, "Download"] = {}


def fetch(
    url: str, path: Path, report: Report | None = None, *, limits: RetryLimits = _PATIENCE
) -> Path:
    """Return the path of a file, after its download where it is not there already.

    Args:
        url: http or https.
        path: where it should be; the hash in its name, if any, is checked. The folder is made.
        report: told how far it is a few times a second, and once more at the end. When it raises
            (anything), or Ctrl-C comes, the transfer is stopped unless others wait for it too.
        limits: how patient to be.

    Raises:
        WeightsError: it can't be had, and why; nothing is left behind.
    """
    me = object()
    download = start(url, path, who=me, limits=limits)
    if download.existed:
        return download.path
    return download.wait(report, me)


def start(
    url: str, path: Path, *, who: Hashable | None = None, limits: RetryLimits = _PATIENCE
) -> "Download":
    """Return the download under way for a path, or a new one, or a finished one if the file exists.

    Args:
        url: http or https.
        path: where the file should be; its folder is made.
        who: watches it from the start, as by `Download.watch`.
        limits: how patient to be, where this call begins it.

    Raises:
        WeightsError: the folder can't be read.
    """
    path = path.absolute()
    with _lock:
        download = _under_way.get(path)
        if download is None:
            try:
                download = Download(url, path, limits)
            except OSError as error:
                raise folder_error(path.name, path, error) from error
            if not download.existed:
                thread = threading.Thread(
                    target=download._run, name=f"download {path.name}", daemon=True
                )
                thread.start()
                _under_way[path] = download
        if who is not None:
            download._watch(who)
    return download


def matches_name(path: Path) -> bool | None:
    """Return whether a file's SHA-256 begins with the digits in its name; None without digits.

    Raises:
        WeightsError: the file can't be read.
    """
    expected = hash_in_name(path.name)
    if expected is None:
        return None
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest().startswith(expected)
    except OSError as error:
        raise WeightsError(f"{path} can't be read: {error.strerror or error}.") from error


class Download:
    """Transfer shared by all who ask for the same file; made by `start`.

    It runs to its end even without watchers (a browser's tab vanishes silently, and the file will
    be wanted again), unless one cancels it and no other watches.

    Attributes:
        url: where it comes from.
        path: where it will be, absolute.
        file: the name of the file.
        existed: whether the file was there before, so that nothing had to be done.
        error: why it failed, once it has; also set where it was cancelled.
        cancelled: whether it was cancelled.
    """

    def __init__(self, url: str, path: Path, limits: RetryLimits) -> None:
        self.url = url
        self.path = path
        self.file = path.name
        self.existed = path.is_file()
        self.error: WeightsError | None = None
        self.cancelled = False
        self._limits = limits
        self._language = current()  # of who asked for it first
        self._meter = Meter(path.name)
        self._done = threading.Event()
        self._watchers: dict[Hashable, float] = {}  # who → until when (monotonic seconds)
        self._part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        self._transfer: Transfer | None = None
        if self.existed:
            size = path.stat().st_size
            self._meter.expect(size)
            self._meter.count(size)
            self._done.set()

    @property
    def finished(self) -> bool:
        """Whether it has ended: the file is there, or `error` says why it is not."""
        return self._done.is_set()

    @property
    def progress(self) -> TransferStatus:
        """Bytes, speed and size at this moment."""
        return self._meter.read()

    def watch(self, who: Hashable) -> None:
        """Keep the transfer going for `who`; holds for `interest` seconds, so repeat it."""
        with _lock:
            self._watch(who)

    def cancel(self, who: Hashable) -> bool:
        """Remove the watcher `who`, and stop the transfer where no other waits or watched of late.

        On return a stopped transfer is over: its waiters get the error, and the temporary file is
        removed (on Windows, which keeps open files, a moment later).

        Returns:
            Whether the transfer was stopped.
        """
        with _lock:
            self._watchers.pop(who, None)
            now = time.monotonic()
            if self.finished or any(until > now for until in self._watchers.values()):
                return False
            self._stop()
            return True

    def wait(self, report: Report | None = None, who: Hashable | None = None) -> Path:
        """Wait for the file, and return its path.

        Args:
            report: told how far it is from the waiting thread a few times a second, and once more
                at the end. When it raises (anything), or Ctrl-C comes, the waiter leaves as by
                `cancel`, and that exception passes on.
            who: the waiter, where it has watched before under a name of its own.

        Raises:
            WeightsError: it failed, or was cancelled.
        """
        me: Hashable = object() if who is None else who
        with _lock:
            self._watchers[me] = math.inf
        try:
            ended = False
            while not ended:
                ended = self.finished
                if report is not None and self.error is None:
                    report(self.progress)
                if not ended:
                    self._done.wait(self._limits.report)
        finally:
            self.cancel(me)
        if self.error is not None:
            # one for each waiter, because an exception collects the traceback of who raises it
            raise WeightsError(str(self.error)) from self.error
        return self.path

    def _watch(self, who: Hashable) -> None:
        until = time.monotonic() + self._limits.interest
        self._watchers[who] = max(until, self._watchers.get(who, 0.0))

    def _stop(self) -> None:
        """End it as cancelled; the caller holds the lock."""
        self.cancelled = True
        title = self.progress.title
        self._settle(WeightsError(say("The download of {title} was cancelled.", title=title)))
        if self._transfer is not None:
            self._transfer.interrupt()
        self._remove_part()

    def _settle(self, error: WeightsError | None) -> None:
        """End it unless it has ended; the caller holds the lock."""
        if self.finished:
            return
        self.error = error
        if _under_way.get(self.path) is self:
            del _under_way[self.path]
        self._done.set()

    def _run(self) -> None:
        """Run in the transfer's thread, and catch every exception: no caller would."""
        speak(self._language)
        error: WeightsError | None = None
        try:
            self._bring()
        except WeightsError as failure:
            error = failure
        except Exception as bug:
            logger.exception("the download of %s failed", self.file)
            error = WeightsError(
                say("{file} could not be downloaded: {reason}.", file=self.file, reason=repr(bug))
            )
            error.__cause__ = bug
        self._remove_part()
        with _lock:
            self._settle(error)

    def _bring(self) -> None:
        """Download to the file's place; return early where it is cancelled.

        Raises:
            WeightsError: it can't be had, or can't be written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _sweep(self.path)
            with _lock:
                if self.finished:
                    return
                stream = self._part.open("xb")
                self._transfer = Transfer(self.url, stream, self._meter, self._done, self._limits)
            with stream:
                self._transfer.run()
                stream.flush()
                os.fsync(stream.fileno())  # else a power cut could leave an empty file in its place
            with _lock:
                if not self.finished:
                    self._part.replace(self.path)
        except OSError as error:  # of the disk: the network's are WeightsErrors by now
            if error.errno == errno.ENOSPC and self._part.exists():
                room = shutil.disk_usage(self.path.parent).free + self._part.stat().st_size
                error.strerror = say("only {size} were free there", size=byte_size(room))
            raise folder_error(self.progress.title, self.path, error) from error

    def _remove_part(self) -> None:
        # Windows keeps a file that is open; the transfer's thread comes here again when it ends
        with suppress(OSError):
            self._part.unlink(missing_ok=True)


def _sweep(path: Path) -> None:
    """Remove stale temporary files of crashed processes for this file."""
    for part in path.parent.glob(f".{escape(path.name)}.*.part"):
        with suppress(OSError):  # gone by itself, or somebody else's: no harm to this transfer
            if time.time() - part.stat().st_mtime > _STALE_AFTER:
                part.unlink()


@atexit.register
def _stop_all() -> None:
    """Stop all transfers when the interpreter ends, so that no temporary file is left behind."""
    with _lock:
        for download in tuple(_under_way.values()):
            download._stop()
