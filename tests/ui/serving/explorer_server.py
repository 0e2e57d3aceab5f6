"""A server of the explorer's route on loopback, in this process, and sessions that ask it."""

import http.client
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any
from urllib.parse import urlencode

from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string

from hookviz.capturing import inputs
from hookviz.explorer.subject import Subject
from hookviz.hooking import network_state
from hookviz.images import reading
from hookviz.images.samples import samples
from hookviz.machine.memory import MEGABYTE
from hookviz.models import catalog
from hookviz.serving import capacity
from hookviz.types import InputImage, Model
from hookviz.ui.serving import explorer_route, resources
from hookviz.ui.serving.explorer_sessions import Scene, explorer_sessions
from hookviz.ui.state import ModelChoice
from tests.pictures import encoded, picture


@dataclass(frozen=True)
class Heard:
    kind: str
    facts: dict[str, Any]
    data: bytes


@dataclass(frozen=True)
class Reply:
    """What came of a question: the HTTP status, and the messages or the words."""

    status: int
    headers: dict[str, str]
    messages: tuple[Heard, ...] = ()
    says: str = ""

    @property
    def facts(self) -> dict[str, Any]:
        assert (self.status, self.messages[-1].kind) == (200, "answer"), self
        return self.messages[-1].facts

    @property
    def refusal(self) -> tuple[int, str]:
        """Its status and words: what ran so long that progress was told is refused at the end."""
        if self.status != 200:
            return self.status, self.says
        assert self.messages[-1].kind == "refused", self
        return self.messages[-1].facts["status"], self.messages[-1].facts["says"]

    @property
    def data(self) -> bytes:
        return self.messages[-1].data


def heard(body: bytes) -> Iterator[Heard]:
    """The messages in a body, to its last byte."""
    at = 0
    while at < len(body):
        rest, length = struct.unpack_from("<II", body, at)
        text = json.loads(body[at + 8 : at + 8 + length])
        yield Heard(text.pop("kind"), text, body[at + 8 + length : at + 4 + rest])
        at += 4 + rest
    assert at == len(body)


@dataclass(frozen=True)
class Asking:
    """One session's page: where it asks, by which token and cookie, and about what."""

    port: int
    token: str
    key: str
    cookie: str
    owner: str

    def body(self, name: str, view: Any = None, **facts: Any) -> bytes:
        """A question as the client sends it, in the view of a link's parameters."""
        asked = {"subject": self.key, "view": view or {}, "question": {"name": name, **facts}}
        return json.dumps(asked).encode()

    def ask(self, name: str, view: Any = None, **facts: Any) -> Reply:
        return self.send(self.body(name, view, **facts))

    def send(self, body: bytes, method: str = "POST", **headers: str) -> Reply:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            line.request(method, self.path(), body, self.headers() | headers)
            return read(line.getresponse())
        finally:
            line.close()

    def path(self, language: str = "en") -> str:
        return f"{explorer_route.PATH}?{urlencode({'token': self.token, 'lang': language})}"

    def headers(self) -> dict[str, str]:
        """What a browser says with each question."""
        return {
            "Cookie": f"_streamlit_xsrf={self.cookie}",
            "Origin": f"http://127.0.0.1:{self.port}",
            "Accept-Encoding": "gzip",
        }

    def request(self, body: bytes, length: int | None = None) -> bytes:
        """The bytes of a request with that body, and the length that it is said to have."""
        head = f"POST {self.path()} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in self.headers().items())
        return f"{head}Content-Length: {length or len(body)}\r\n\r\n".encode() + body

    @contextmanager
    def line(self, body: bytes, length: int | None = None) -> Iterator[socket.socket]:
        """A bare connection on which a question was sent, to be cut off or not to be read."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as line:
            line.sendall(self.request(body, length))
            yield line

    def __or__(self, other: dict[str, str]) -> "Asking":
        return replace(self, **other)  # type: ignore[arg-type]


def read(answer: http.client.HTTPResponse) -> Reply:
    body = answer.read()
    headers = {name.lower(): value for name, value in answer.getheaders()}
    if answer.status == 200:
        return Reply(200, headers, tuple(heard(body)))
    says = json.loads(body)["says"] if "json" in headers["content-type"] else body.decode()
    return Reply(answer.status, headers, says=says)


CHOICE = ModelChoice(catalog.find_model("shapesnet"), "pretrained")


@cache
def model() -> Model:
    """The network of most tests."""
    with resources.use_model(CHOICE) as held:
        return held


def scene(seed: int | None = None, **changes: Any) -> Scene:
    """A scene of an image of one's own, or of the first sample; nothing is kept of it."""
    path = samples()[0].path
    data = path.read_bytes() if seed is None else encoded(picture(seed, 160, 120))
    image: InputImage = reading.decode(data, path.name)
    whole: dict[str, Any] = {
        "choice": CHOICE,
        "model_digest": model().digest,
        "model_input": inputs.prepare_input(model(), image),
        "image": image,
        "cache": capacity.activation_budget().cache(200 * MEGABYTE),
        "alt": "a picture",
        **changes,
    }
    return Scene(**whole)


def subject(shown: Scene) -> Subject:
    """The same as answers are computed from without any server, and with a cache of its own."""
    cache = capacity.activation_budget().cache(200 * MEGABYTE)
    return Subject(
        model=model(),
        model_input=shown.model_input,
        image=shown.image,
        cache=cache,
        alt=shown.alt,
    )


def session(port: int, owner: str, shown: Scene, cookie: str = "") -> Asking:
    """A session whose page has offered that scene."""
    cookie = cookie or generate_xsrf_token_string()
    token, key = explorer_sessions().offer(owner, cookie, shown)
    return Asking(port, token, key, cookie, owner)


def threads() -> list[str]:
    """The names of the threads that compute answers now."""
    return [each.name for each in threading.enumerate() if each.name == "explorer"]


def until_nothing_is_left(seconds: float = 10) -> None:
    """Return once no answer computes, waits, or has left a hook."""
    deadline = time.monotonic() + seconds
    while (found := _left()) != (0, 0, 0, 0):
        assert time.monotonic() < deadline, found
        time.sleep(0.02)


def _left() -> tuple[int, int, int, int]:
    fair_queue = capacity.queue()
    idle = [replica.network for pool in list(network_state._idle.values()) for replica in pool]
    hooks = sum(len(module._forward_hooks) for network in idle for module in network.modules())
    return len(threads()), fair_queue.running, fair_queue.waiting, hooks
