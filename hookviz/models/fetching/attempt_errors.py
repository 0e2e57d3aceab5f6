"""Explain in plain words why an attempt to download failed, and how many more it is worth."""

import math
import socket
import ssl
from http import HTTPStatus
from urllib.parse import urlsplit

import requests
import urllib3.exceptions

from hookviz.language.saying import mark, say
from hookviz.models.fetching.timing import Timing

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
    (requests.ConnectTimeout, mark("{host} took no connection within {connect:g} s"), math.inf),
    (requests.Timeout, mark("it stalled: nothing came for {stall:g} s"), math.inf),
    (ConnectionRefusedError, mark("nothing answers at {host} (connection refused)"), math.inf),
    (
        urllib3.exceptions.NewConnectionError,
        mark("there is no way to {host} from here"),
        _NO_NETWORK,
    ),
    (Exception, mark("the connection to {host} broke off"), math.inf),
)


class DownloadAttemptError(Exception):
    """Failure of one attempt, with how many there should be and seconds before the next."""

    def __init__(self, reason: str, *, attempts: float = math.inf, pause: float = 0.0) -> None:
        super().__init__(reason)
        self.attempts = attempts
        self.pause = pause


def no_answer(error: Exception, url: str, timing: Timing, *, begun: bool) -> DownloadAttemptError:
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
    reason = words.format(host=host, connect=timing.connect, stall=timing.stall)
    return DownloadAttemptError(reason, attempts=attempts)


def refusal(response: requests.Response, url: str) -> DownloadAttemptError:
    """Explain by its status why an answer is not the file."""
    status = response.status_code
    sender, asked = urlsplit(response.url).netloc, urlsplit(url).netloc
    host = sender.rpartition("@")[2]
    who = (
        say("the server")
        if sender == asked
        else say("{host}, where it was redirected to,", host=host)
    )
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else say("no known status")
    code = f"({status} {phrase})"
    if status == HTTPStatus.TOO_MANY_REQUESTS or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        after = response.headers.get("Retry-After", "")
        pause = float(after) if after.isdecimal() else 0.0
        busy = status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
        fault = say("is too busy") if busy else say("has a fault of its own")
        return DownloadAttemptError(f"{who} {fault} {code}", pause=pause)
    what = {401: say("refused it"), 403: say("refused it"), 404: say("has no such file")}
    return DownloadAttemptError(f"{who} {what.get(status, 'did not send it')} {code}", attempts=1)


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or say("the server")
    except ValueError:  # half an IPv6 address; the message shows the whole URL besides
        return say("the server")
