"""A web server on loopback that serves files as badly as it is told to, for tests.

    with WeightsServer() as server:
        url = server.add("resnet-0123abcd.pth", body, Answer(cut_after=100), Answer())
        ...
        assert server.requests[1].range == "bytes=100-"

The answers are given one after the other to the requests for that file; the last one repeats.
Every loop and every wait in it is bounded, and `close` ends what still hangs.
"""

import hashlib
import random
import re
import socket
import ssl
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Literal, Self
from urllib.parse import unquote, urlsplit

PATIENCE = 60.0  # seconds that anything here may hang at most


@dataclass(frozen=True, slots=True)
class Answer:
    """How one request is answered: the whole file, properly, unless told otherwise.

    Attributes:
        status: of the answer; other than 200 it has a short text as its body.
        hang_up: close the connection instead of answering.
        mute: keep silent instead of answering.
        cut_after: close the connection after that many bytes of the body.
        hold_after: after that many bytes of the body wait for `WeightsServer.gate`; a gate that
            never opens is a stall.
        pause: seconds between pieces of the body, to be slow.
        piece: bytes in a piece.
        length: how the end of the body can be told: by Content-Length, by chunks, or not at all.
        ranges: whether Range is honoured.
        etag: quoted; None for no ETag.
        modified: Last-Modified; None for none.
        body: other bytes than the file's.
        headers: more headers; they win.
    """

    status: int = 200
    hang_up: bool = False
    mute: bool = False
    cut_after: int | None = None
    hold_after: int | None = None
    pause: float = 0.0
    piece: int = 16_384
    length: Literal["known", "chunked", "unknown"] = "known"
    ranges: bool = True
    etag: str | None = '"first"'
    modified: str | None = None
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]

    @property
    def range(self) -> str | None:
        return self.headers.get("range")


class WeightsServer:
    """The server; `url` has no slash at its end, so it can stand in HOOKVIZ_WEIGHTS_URL.

    With `certificate`, a file that holds one for 127.0.0.1 and its key, it speaks TLS.
    """

    def __init__(self, certificate: Path | None = None) -> None:
        self.requests: list[Request] = []
        self.gate = threading.Event()
        self.closing = threading.Event()
        self.lock = threading.Lock()
        self._files: dict[str, tuple[bytes, list[Answer]]] = {}
        self._server = _Server(self)
        self.port: int = self._server.server_address[1]
        scheme = "http" if certificate is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self.port}"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            # the handshake is left to the thread that answers
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.closing.set()
        self.gate.set()
        self._server.shutdown()
        self._thread.join(PATIENCE)
        self._server.server_close()

    def add(self, name: str, body: bytes, *answers: Answer) -> str:
        """The URL of a file that is served from now on; replaces one of the same name."""
        with self.lock:
            self._files[f"/{name}"] = (body, list(answers) or [Answer()])
        return f"{self.url}/{name}"

    def requests_for(self, name: str) -> list[Request]:
        """The requests for one file so far, in order."""
        with self.lock:
            return [request for request in self.requests if request.path == f"/{name}"]

    def next_answer(self, request: Request) -> tuple[bytes, Answer]:
        with self.lock:
            self.requests.append(request)
            body, answers = self._files.get(request.path, (b"", [Answer(status=404)]))
            return body, answers.pop(0) if len(answers) > 1 else answers[0]


def random_bytes(size: int, seed: int = 0) -> bytes:
    """The same bytes on every run, which repeat nothing that a resumed file could get wrong."""
    return random.Random(seed).randbytes(size)


def hashed_name(body: bytes, stem: str = "net") -> str:
    """A name as torchvision gives it: ``net-0123abcd.pth``."""
    return f"{stem}-{hashlib.sha256(body).hexdigest()[:8]}.pth"


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that server_close waits for them
    request_queue_size = 64

    def __init__(self, weights: WeightsServer) -> None:
        self.weights = weights
        super().__init__(("127.0.0.1", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Keeps quiet about whoever leaves or distrusts its certificate; nothing else is usual."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE
    server: _Server

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Tests look at `WeightsServer.requests` instead."""

    def _answer(self, *, with_body: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        file, answer = self.server.weights.next_answer(Request(self.command, path, headers))
        self.close_connection = True  # one request a connection: nothing lingers between tests
        if answer.hang_up:
            return
        if answer.mute:
            self.server.weights.closing.wait(PATIENCE)
            return
        file = file if answer.body is None else answer.body
        status, begin = self._status(answer, headers, file)
        body = file[begin:]
        if status not in {200, 206}:
            body = b"this is not the file you asked for" if answer.body is None else answer.body
        self._send_head(answer, status, begin, len(file), len(body))
        if with_body:
            try:
                self._send_body(answer, body)
            except OSError:  # whoever asked has left, which some tests are about
                return

    def _status(self, answer: Answer, headers: Mapping[str, str], file: bytes) -> tuple[int, int]:
        """The status, and the place in the file where the body begins."""
        wanted = re.fullmatch(r"bytes=(\d+)-", headers.get("range", ""))
        same = headers.get("if-range") in {None, answer.etag, answer.modified}
        if answer.status != 200 or wanted is None or not answer.ranges or not same:
            return answer.status, 0
        begin = int(wanted[1])
        return (206, begin) if begin < len(file) else (416, 0)

    def _send_head(self, answer: Answer, status: int, begin: int, size: int, length: int) -> None:
        headers = {"Content-Type": "application/octet-stream", "Connection": "close"}
        if answer.length == "known":
            headers["Content-Length"] = str(length)
        if answer.length == "chunked":
            headers["Transfer-Encoding"] = "chunked"
        if answer.etag is not None:
            headers["ETag"] = answer.etag
        if answer.modified is not None:
            headers["Last-Modified"] = answer.modified
        if status == 206:
            headers["Content-Range"] = f"bytes {begin}-{size - 1}/{size}"
        if status == 416:
            headers["Content-Range"] = f"bytes */{size}"
        self.send_response(status)
        for name, value in {**headers, **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def _send_body(self, answer: Answer, body: bytes) -> None:
        stops = {stop for stop in (answer.cut_after, answer.hold_after) if stop is not None}
        places = sorted({*range(0, len(body), answer.piece), *stops, len(body)})
        places = [offset for offset in places if offset <= len(body)]
        for begin, end in pairwise([0, *places]):
            self._send_piece(answer, body[begin:end])
            if end == answer.hold_after:
                self.server.weights.gate.wait(PATIENCE)
            if end == answer.cut_after:
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            if answer.pause:
                self.server.weights.closing.wait(answer.pause)
        if answer.length == "chunked":
            self.wfile.write(b"0\r\n\r\n")

    def _send_piece(self, answer: Answer, piece: bytes) -> None:
        if not piece:
            return
        if answer.length == "chunked":
            piece = b"%x\r\n%b\r\n" % (len(piece), piece)
        self.wfile.write(piece)
