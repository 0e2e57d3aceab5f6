"""Transfer one file over HTTP into an open stream: attempts, resuming, checks, progress.

`RetryLimits` sets how patient a transfer is with a slow line and a server that fails. A failed
attempt is explained in plain words, with how many more attempts it is worth.
"""

import errno
import hashlib
import logging
import math
import os
import re
import shutil
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import requests
import urllib3.exceptions

from hookviz.errors import WeightsError, shorten
from hookviz.language.catalogs import ENGLISH
from hookviz.language.saying import mark, say
from hookviz.language.speaking import speaking
from hookviz.wording import byte_size, bytes_of

# Why nobody answers: an error or one of its causes, in plain words, and how many attempts it is
# worth. With no network at all a person should hear so soon, unless it was there before.
_NO_NETWORK = 2
_WHY_NO_ANSWER: tuple[tuple[type[Exception], str, float], ...] = (
    (requests.exceptions.InvalidURL, mark("that is not an http or https address"), 1),
    (requests.exceptions.InvalidSchema, mark("that is not an http or https address"), 1),
    (requests.exceptions.MissingSchema, mark("that is not an http or https address"), 1),
    (requests.TooManyRedirects, mark("it is redirected in a circle"), 1),
    (
        requests.exceptions.ProxyError,
        mark("the proxy of this network can't be reached"),
        _NO_NETWORK,
    ),
    (
        socket.gaierror,
        mark("the name {host} can't be resolved, perhaps because there is no network"),
        _NO_NETWORK,
    ),
    (ssl.SSLCertVerificationError, mark("the TLS certificate of {host} can't be verified"), 1),
    (
        requests.ConnectTimeout,
        mark("{host} took no connection within {connect_limit:g} s"),
        math.inf,
    ),
    (requests.Timeout, mark("it stalled: nothing came for {stall_limit:g} s"), math.inf),
    (ConnectionRefusedError, mark("nothing answers at {host} (connection refused)"), math.inf),
    (
        urllib3.exceptions.NewConnectionError,
        mark("there is no way to {host} from here"),
        _NO_NETWORK,
    ),
    (Exception, mark("the connection to {host} broke off"), math.inf),
)


_SERVER_FAULT = HTTPStatus.INTERNAL_SERVER_ERROR  # and all above
_BUSY, _OWN_FAULT = mark("is too busy"), mark("has a fault of its own")
_FORBIDDEN, _NOT_SENT = mark("refused it"), mark("did not send it")
_REFUSALS: dict[int, str] = {
    HTTPStatus.UNAUTHORIZED: _FORBIDDEN,
    HTTPStatus.FORBIDDEN: _FORBIDDEN,
    HTTPStatus.NOT_FOUND: mark("has no such file"),
    HTTPStatus.TOO_MANY_REQUESTS: _BUSY,
    HTTPStatus.SERVICE_UNAVAILABLE: _BUSY,
}


@dataclass(frozen=True, slots=True)
class RetryLimits:
    """Timeouts and limits of a transfer, in seconds where an attribute does not say otherwise.

    Attributes:
        connect: for a connection.
        stall: without a single byte.
        attempts: how many may fail one after the other.
        backoff: before the second attempt, doubled before each later one.
        longest_pause: between two attempts, even where the server's Retry-After asks for more.
        headway: bytes that an attempt must add for the count of attempts to begin anew, so that
            a large file comes over a line that breaks again and again.
        report: between two reports to who waits.
        interest: that one `Download.watch` holds.
    """

    connect: float = 10.0
    stall: float = 20.0
    attempts: int = 4
    backoff: float = 1.0
    longest_pause: float = 30.0
    headway: int = 1_000_000
    report: float = 0.25
    interest: float = 5.0


class DownloadAttemptError(Exception):
    """A failed attempt: how many there should be, and the seconds before the next.

    `reason` is called where the error is read: a page shows it in its language, the log in English.
    """

    def __init__(
        self, reason: Callable[[], str], *, attempts: float = math.inf, pause: float = 0.0
    ) -> None:
        super().__init__(reason)
        self._reason = reason
        self.attempts = attempts
        self.pause = pause

    def __str__(self) -> str:
        return self._reason()


def no_answer(
    error: Exception, url: str, limits: RetryLimits, *, has_bytes: bool
) -> DownloadAttemptError:
    """Explain why no answer came, by an error or its causes; `has_bytes` where some came before."""
    request = getattr(error, "request", None)  # after a redirect it is another one than was asked
    host = _host(getattr(request, "url", url))
    chain: list[BaseException] = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(cause)
    words, attempts = next(
        (words, attempts)
        for kind, words, attempts in _WHY_NO_ANSWER
        if any(isinstance(link, kind) for link in chain)
    )
    if has_bytes and attempts == _NO_NETWORK:
        attempts = math.inf
    seconds = {"connect_limit": limits.connect, "stall_limit": limits.stall}
    return DownloadAttemptError(partial(say, words, host=host, **seconds), attempts=attempts)


def refusal(response: requests.Response, url: str) -> DownloadAttemptError:
    """Explain by its status why an answer is not the file."""
    status = response.status_code
    sender, server = urlsplit(response.url).netloc, urlsplit(url).netloc
    reason = partial(_refusal, status, "" if sender == server else sender.rpartition("@")[2])
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= _SERVER_FAULT:
        after = response.headers.get("Retry-After", "")
        pause = float(after) if after.isdecimal() else 0.0
        return DownloadAttemptError(reason, pause=pause)
    return DownloadAttemptError(reason, attempts=1)


def _refusal(status: int, redirected_to: str) -> str:
    sender = (
        say("{host}, where it was redirected to,", host=redirected_to)
        if redirected_to
        else say("the server")
    )
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else say("no known status")
    fault = say(_REFUSALS.get(status, _OWN_FAULT if status >= _SERVER_FAULT else _NOT_SENT))
    return f"{sender} {fault} ({status} {phrase})"


def folder_error(title: str, path: Path, error: OSError) -> WeightsError:
    """Return the error for a file that the disk could not keep."""
    return WeightsError(
        say(
            "{title} can't be kept in the folder {folder}: {reason}.",
            title=title,
            folder=path.parent,
            reason=error.strerror or error,
        )
    )


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or say("the server")
    except ValueError:  # half an IPv6 address; the message shows the whole URL besides
        return say("the server")


_SPEED_WINDOW = 3.0  # seconds over which the speed is measured
logger = logging.getLogger(__name__)
_CHUNK = 1 << 18  # bytes asked for at once
_MOST = 16 * 2**30  # bytes of a file, six times the largest weights there are
_HASH = re.compile(r"-([0-9a-f]{8,64})\.")
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
_NETWORK_ERRORS = (requests.RequestException, urllib3.exceptions.HTTPError, OSError)


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


class Transfer:
    """Transfer of one URL's bytes into a stream."""

    def __init__(
        self,
        url: str,
        stream: IO[bytes],
        meter: Meter,
        stopped: threading.Event,
        limits: RetryLimits,
    ) -> None:
        """Prepare the transfer; `run` begins it.

        Args:
            url: http or https.
            stream: a file of its own, empty and open for writing.
            meter: told how far it is.
            stopped: set by others when the transfer is no longer wanted; see `interrupt`.
            limits: how patient to be.
        """
        self._url = url
        self._stream = stream
        self._meter = meter
        self._stopped = stopped
        self._limits = limits
        self._sha256 = hashlib.sha256()
        self._size = 0  # bytes in the stream
        self._total: int | None = None
        self._validator: str | None = None  # the server's mark for this version of the file
        self._response: requests.Response | None = None

    def run(self) -> None:
        """Transfer all bytes, attempt after attempt; return early once it is stopped.

        Raises:
            WeightsError: it can't be had, and why.
            OSError: the stream can't be written.
        """
        tries = failures = farthest = 0
        with requests.Session() as session:
            while not self._stopped.is_set():
                try:
                    self._attempt(session)
                except DownloadAttemptError as error:
                    tries += 1
                    if self._size - farthest >= self._limits.headway:
                        farthest, failures = self._size, 0
                    failures += 1
                    if failures >= min(error.attempts, self._limits.attempts):
                        raise self._failure(error, tries) from error
                    self._pause(error, failures)
                else:
                    return

    def interrupt(self) -> None:
        """Wake a transfer that waits for bytes; from another thread, after `stopped` is set."""
        response = self._response
        if response is not None:
            # there is nothing to wake where the connection has been closed in this very moment
            with suppress(OSError, ValueError, RuntimeError):
                response.raw.shutdown()

    def _failure(self, error: DownloadAttemptError, tries: int) -> WeightsError:
        tried = say(" (tried {tries} times)", tries=tries) if tries > 1 else ""
        title = self._meter.read().title
        return WeightsError(
            say(
                "{title} could not be downloaded from {url}: {problem}{tries}.",
                title=title,
                url=_without_secrets(self._url),
                problem=error,
                tries=tried,
            )
        )

    def _pause(self, error: DownloadAttemptError, failures: int) -> None:
        pause = max(self._limits.backoff * 2 ** (failures - 1), error.pause)
        pause = min(pause, self._limits.longest_pause)
        with speaking(ENGLISH):
            logger.info("%s; trying again in %.1f s", self._failure(error, 1), pause)
        self._meter.note(say("{problem}; trying again", problem=error))
        self._stopped.wait(pause)
        self._meter.note("")

    def _attempt(self, session: requests.Session) -> None:
        """Ask once for what is missing, and append what comes."""
        # bytes as they are: a server that packs them can't go on in the middle
        headers = {"Accept-Encoding": "identity"}
        if self._size and self._validator:
            headers |= {"Range": f"bytes={self._size}-", "If-Range": self._validator}
        timeout = (self._limits.connect, self._limits.stall)
        self._meter.note(say("connecting"))
        try:
            response = session.get(self._url, headers=headers, stream=True, timeout=timeout)
        except _NETWORK_ERRORS as error:
            raise no_answer(error, self._url, self._limits, has_bytes=self._size > 0) from error
        finally:
            self._meter.note("")
        with response:
            self._response = response
            if self._stopped.is_set():  # before `interrupt` could know of this response
                return
            try:
                resumed = self._begin(response)
                for chunk in self._chunks(response):
                    if self._size + len(chunk) > _MOST:  # it may never say how long it is
                        raise self._too_long()
                    self._stream.write(chunk)
                    self._sha256.update(chunk)
                    self._size += len(chunk)
                    self._meter.count(self._size)
                    if self._stopped.is_set():
                        return
            finally:
                self._response = None
        if self._total is not None and self._size != self._total:
            raise self._cut_off()
        self._check(resumed, response.headers)
        self._expect(self._size)

    def _begin(self, response: requests.Response) -> bool:
        """Prepare the stream for an answer; return whether it goes on where the last one ended."""
        status, headers = response.status_code, response.headers
        resumed = status == HTTPStatus.PARTIAL_CONTENT and self._goes_on(headers)
        if status == HTTPStatus.OK:
            self._restart()
            self._validator = _validator(headers)
            length = headers.get("Content-Length", "")
            self._expect(int(length) if length.isdecimal() else None)
        elif status in {HTTPStatus.PARTIAL_CONTENT, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE}:
            if not resumed:
                self._restart()
                raise DownloadAttemptError(
                    lambda: say(
                        "the server could not go on where it broke off ({status})", status=status
                    )
                )
        else:
            raise refusal(response, self._url)
        encoding = headers.get("Content-Encoding", "identity")
        if encoding != "identity":
            raise DownloadAttemptError(
                lambda: say(
                    "the server sent it packed ({encoding}), though asked not to",
                    encoding=shorten(encoding),
                ),
                attempts=1,
            )
        free = shutil.disk_usage(Path(self._stream.name).parent).free
        if self._total is not None and self._total - self._size > free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return resumed

    def _goes_on(self, headers: Mapping[str, str]) -> bool:
        """Return whether a partial answer is the rest of this very file."""
        content_range = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", ""))
        if not self._size or content_range is None or int(content_range[1]) != self._size:
            return False
        total = content_range[2]
        if self._total is None and total != "*":
            self._expect(int(total))
        return total in {"*", str(self._total)}

    def _restart(self) -> None:
        self._stream.seek(0)
        self._stream.truncate()
        self._sha256 = hashlib.sha256()
        self._size = 0
        self._validator = None
        self._meter.count(0)

    def _expect(self, total: int | None) -> None:
        self._total = total
        self._meter.expect(total)

    def _chunks(self, response: requests.Response) -> Iterator[bytes]:
        try:
            # read1 hands on what is there; read would wait for a whole chunk on a slow line
            while chunk := response.raw.read1(_CHUNK, decode_content=False):
                yield chunk
        except (urllib3.exceptions.ReadTimeoutError, TimeoutError) as error:
            amount = self._meter.read().amount
            raise DownloadAttemptError(
                lambda: say(
                    "it stalled: nothing came for {stall_limit:g} s after {amount}",
                    stall_limit=self._limits.stall,
                    amount=amount,
                )
            ) from error
        except (*_NETWORK_ERRORS, ValueError) as error:  # ValueError: TLS, when interrupted
            raise self._cut_off() from error

    def _too_long(self) -> DownloadAttemptError:
        most = f"{_MOST:,}"
        return DownloadAttemptError(
            lambda: say("it goes on beyond {most} bytes, more than any weights have", most=most),
            attempts=1,
        )

    def _cut_off(self) -> DownloadAttemptError:
        amount = self._meter.read().amount
        return DownloadAttemptError(
            lambda: say("the transfer was cut off after {amount}", amount=amount)
        )

    def _check(self, resumed: bool, headers: Mapping[str, str]) -> None:
        """Raise an error where the bytes are not what the file's name promises."""
        expected, got = hash_in_name(self._meter.read().file), self._sha256.hexdigest()
        if expected is None or got.startswith(expected):
            return
        is_page = headers.get("Content-Type", "").startswith("text/html")

        def reason() -> str:
            text = say(
                "what came is not that file; the SHA-256 in its name says expected "
                "{expected_digest}, got {digest}",
                expected_digest=expected,
                digest=got[: len(expected)],
            )
            if is_page:
                text += say(" (it is a web page, perhaps the login page of this network)")
            return text

        self._restart()
        # a server may have put two versions together, so a resumed file gets another chance
        raise DownloadAttemptError(reason, attempts=math.inf if resumed else 1)


def hash_in_name(name: str) -> str | None:
    """Return the first digits of a SHA-256 in a file's name; None without any.

    >>> hash_in_name("vgg16_features-amdegroot-88682ab5.pth"), hash_in_name("net-short1.pth")
    ('88682ab5', None)
    """
    match = _HASH.search(name)
    return match[1] if match else None


def _validator(headers: Mapping[str, str]) -> str | None:
    """Return what If-Range can carry: a strong ETag, else the date of the last change."""
    etag = headers.get("ETag", "")
    return etag if etag.startswith('"') else headers.get("Last-Modified")


def _without_secrets(url: str) -> str:
    """Strip an address of what may be secret in it: user, password, query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return shorten(url.rpartition("@")[2])
    address = f"{parts.netloc.rpartition('@')[2]}{parts.path}"
    return shorten(f"{parts.scheme}://{address}" if parts.scheme else address, 200)
