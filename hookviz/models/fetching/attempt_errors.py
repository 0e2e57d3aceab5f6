"""Explain in plain words why an attempt to download failed, and how many more it is worth.

`RetryLimits` sets how patient a transfer is with a slow line and a server that fails.
"""

import math
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

import requests
import urllib3.exceptions

from hookviz.errors import WeightsError
from hookviz.language.saying import mark, say

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
    error: Exception, url: str, limits: RetryLimits, *, begun: bool
) -> DownloadAttemptError:
    """Explain why no answer came, by an error or its causes; `begun` where bytes came before."""
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
    seconds = {"connect_limit": limits.connect, "stall_limit": limits.stall}
    return DownloadAttemptError(partial(say, words, host=host, **seconds), attempts=attempts)


def refusal(response: requests.Response, url: str) -> DownloadAttemptError:
    """Explain by its status why an answer is not the file."""
    status = response.status_code
    sender, asked = urlsplit(response.url).netloc, urlsplit(url).netloc
    reason = partial(_refusal, status, "" if sender == asked else sender.rpartition("@")[2])
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
