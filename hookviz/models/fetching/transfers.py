"""One file over HTTP into an open stream: attempts, resuming, and the check of what came."""

import errno
import hashlib
import logging
import math
import re
import shutil
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import requests
import urllib3.exceptions

from hookviz.errors import WeightsError, shorten
from hookviz.models.fetching.progress import Meter, format_bytes

logger = logging.getLogger(__name__)
_CHUNK = 1 << 18  # bytes asked for at once
_HASH = re.compile(r"-([0-9a-f]{8,64})\.")
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")
_NETWORK_ERRORS = (requests.RequestException, urllib3.exceptions.HTTPError, OSError)


@dataclass(frozen=True, slots=True)
class Timing:
    """How patient a transfer is; in seconds where it does not say otherwise.

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


# Why nobody answers: an error or one of its causes, in plain words, and how many attempts it is
# worth. With no network at all a person should hear so soon, unless it was there before.
_NO_NETWORK = 2
_WHY_NO_ANSWER: tuple[tuple[type[Exception], str, float], ...] = (
    (requests.exceptions.InvalidURL, "that is not an http or https address", 1),
    (requests.exceptions.InvalidSchema, "that is not an http or https address", 1),
    (requests.exceptions.MissingSchema, "that is not an http or https address", 1),
    (requests.TooManyRedirects, "it is redirected in a circle", 1),
    (requests.exceptions.ProxyError, "the proxy of this network can't be reached", _NO_NETWORK),
    (
        socket.gaierror,
        "the name {host} can't be resolved, perhaps because there is no network",
        _NO_NETWORK,
    ),
    (ssl.SSLCertVerificationError, "the TLS certificate of {host} can't be verified", 1),
    (requests.ConnectTimeout, "{host} took no connection within {connect:g} s", math.inf),
    (requests.Timeout, "it stalled: nothing came for {stall:g} s", math.inf),
    (ConnectionRefusedError, "nothing answers at {host} (connection refused)", math.inf),
    (urllib3.exceptions.NewConnectionError, "there is no way to {host} from here", _NO_NETWORK),
    (Exception, "the connection to {host} broke off", math.inf),
)


class Transfer:
    """The bytes of one URL on their way into a stream."""

    def __init__(
        self, url: str, stream: IO[bytes], meter: Meter, stopped: threading.Event, timing: Timing
    ) -> None:
        """Nothing happens before `run`.

        Args:
            url: http or https.
            stream: a file of its own, empty and open for writing.
            meter: told how far it is.
            stopped: set by others when the transfer is no longer wanted; see `interrupt`.
            timing: how patient to be.
        """
        self._url = url
        self._stream = stream
        self._meter = meter
        self._stopped = stopped
        self._timing = timing
        self._sha256 = hashlib.sha256()
        self._size = 0  # bytes in the stream
        self._total: int | None = None
        self._validator: str | None = None  # the server's mark for this version of the file
        self._response: requests.Response | None = None

    def run(self) -> None:
        """Brings all of it, attempt after attempt; returns early once it is stopped.

        Raises:
            WeightsError: it can't be had, and why.
            OSError: the stream can't be written.
        """
        tries = failures = farthest = 0
        with requests.Session() as session:
            while not self._stopped.is_set():
                try:
                    self._attempt(session)
                except _TroubleError as trouble:
                    tries += 1
                    if self._size - farthest >= self._timing.headway:
                        farthest, failures = self._size, 0
                    failures += 1
                    if failures >= min(trouble.attempts, self._timing.attempts):
                        raise self._failure(trouble, tries) from trouble
                    self._pause(trouble, failures)
                else:
                    return

    def interrupt(self) -> None:
        """Wakes a transfer that waits for bytes; from another thread, after `stopped` is set."""
        response = self._response
        if response is not None:
            # there is nothing to wake where the connection has been closed in this very moment
            with suppress(OSError, ValueError, RuntimeError):
                response.raw.shutdown()

    def _failure(self, trouble: "_TroubleError", tries: int) -> WeightsError:
        tried = f" (tried {tries} times)" if tries > 1 else ""
        title = self._meter.read().title
        return WeightsError(
            f"{title} could not be downloaded from {_shown(self._url)}: {trouble}{tried}."
        )

    def _pause(self, trouble: "_TroubleError", failures: int) -> None:
        pause = max(self._timing.backoff * 2 ** (failures - 1), trouble.pause)
        pause = min(pause, self._timing.longest_pause)
        logger.info("%s; trying again in %.1f s", self._failure(trouble, 1), pause)
        self._meter.note(f"{trouble}; trying again")
        self._stopped.wait(pause)
        self._meter.note("")

    def _attempt(self, session: requests.Session) -> None:
        """Asks once for what is missing, and adds what comes."""
        # bytes as they are: a server that packs them can't go on in the middle
        headers = {"Accept-Encoding": "identity"}
        if self._size and self._validator:
            headers |= {"Range": f"bytes={self._size}-", "If-Range": self._validator}
        timeout = (self._timing.connect, self._timing.stall)
        self._meter.note("connecting")
        try:
            response = session.get(self._url, headers=headers, stream=True, timeout=timeout)
        except _NETWORK_ERRORS as error:
            raise _no_answer(error, self._url, self._timing, begun=self._size > 0) from error
        finally:
            self._meter.note("")
        with response:
            self._response = response
            if self._stopped.is_set():  # before `interrupt` could know of this response
                return
            try:
                resumed = self._begin(response)
                for chunk in self._chunks(response):
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
        """Makes ready for what the server is about to send; True where it goes on."""
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
                raise _TroubleError(f"the server could not go on where it broke off ({status})")
        else:
            raise _refusal(response, self._url)
        encoding = headers.get("Content-Encoding", "identity")
        if encoding != "identity":
            raise _TroubleError(
                f"the server sent it packed ({shorten(encoding)}), though asked not to", attempts=1
            )
        free = shutil.disk_usage(Path(self._stream.name).parent).free
        if self._total is not None and self._total - self._size > free:
            raise OSError(errno.ENOSPC, f"only {format_bytes(free)} are free there")
        return resumed

    def _goes_on(self, headers: Mapping[str, str]) -> bool:
        """Whether a partial answer is the rest of this very file."""
        found = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", ""))
        if not self._size or found is None or int(found[1]) != self._size:
            return False
        if self._total is None and found[2] != "*":
            self._expect(int(found[2]))
        return found[2] in {"*", str(self._total)}

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
            raise _TroubleError(
                f"it stalled: nothing came for {self._timing.stall:g} s after {amount}"
            ) from error
        except (*_NETWORK_ERRORS, ValueError) as error:  # ValueError: TLS, when interrupted
            raise self._cut_off() from error

    def _cut_off(self) -> "_TroubleError":
        return _TroubleError(f"the transfer was cut off after {self._meter.read().amount}")

    def _check(self, resumed: bool, headers: Mapping[str, str]) -> None:
        """Raises where what came is not what the name of the file promises."""
        expected, got = hash_in_name(self._meter.read().file), self._sha256.hexdigest()
        if expected is None or got.startswith(expected):
            return
        reason = (
            "what came is not that file; the SHA-256 in its name says "
            f"expected {expected}, got {got[: len(expected)]}"
        )
        if headers.get("Content-Type", "").startswith("text/html"):
            reason += " (it is a web page, perhaps the login page of this network)"
        self._restart()
        # a server may have put two versions together, so a resumed file gets another chance
        raise _TroubleError(reason, attempts=math.inf if resumed else 1)


def hash_in_name(name: str) -> str | None:
    """The first digits of a file's SHA-256 that its name carries: ``resnet34-b627a593.pth``."""
    found = _HASH.search(name)
    return found[1] if found else None


class _TroubleError(Exception):
    """One attempt failed; says how many there should be, and seconds before the next."""

    def __init__(self, reason: str, *, attempts: float = math.inf, pause: float = 0.0) -> None:
        super().__init__(reason)
        self.attempts = attempts
        self.pause = pause


def _no_answer(error: Exception, url: str, timing: Timing, *, begun: bool) -> _TroubleError:
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
    if begun and attempts == _NO_NETWORK:
        attempts = math.inf
    reason = words.format(host=host, connect=timing.connect, stall=timing.stall)
    return _TroubleError(reason, attempts=attempts)


def _refusal(response: requests.Response, url: str) -> _TroubleError:
    """Why an answer is not the file, by its status."""
    status = response.status_code
    sender, asked = urlsplit(response.url).netloc, urlsplit(url).netloc
    host = sender.rpartition("@")[2]
    who = "the server" if sender == asked else f"{host}, where it was redirected to,"
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "no known status"
    code = f"({status} {phrase})"
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        after = response.headers.get("Retry-After", "")
        pause = float(after) if after.isdecimal() else 0.0
        busy = status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
        fault = "is too busy" if busy else "has a fault of its own"
        return _TroubleError(f"{who} {fault} {code}", pause=pause)
    what = {401: "refused it", 403: "refused it", 404: "has no such file"}
    return _TroubleError(f"{who} {what.get(status, 'did not send it')} {code}", attempts=1)


def _validator(headers: Mapping[str, str]) -> str | None:
    """What If-Range can carry: a strong ETag, else the date of the last change."""
    etag = headers.get("ETag", "")
    return etag if etag.startswith('"') else headers.get("Last-Modified")


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "the server"
    except ValueError:  # half an IPv6 address; the message shows the whole URL besides
        return "the server"


def _shown(url: str) -> str:
    """The address without what may be secret in it: user, password, query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return shorten(url.rpartition("@")[2])
    address = f"{parts.netloc.rpartition('@')[2]}{parts.path}"
    return shorten(f"{parts.scheme}://{address}" if parts.scheme else address, 200)
