"""Questions on a real server: what is answered, what is refused, and that nothing is left."""

import base64
import concurrent.futures
import contextlib
import http.client
import io
import json
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from starlette.applications import Starlette
from streamlit.proto.Common_pb2 import FileURLs
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string

import hookviz
from hookviz.drawing.grid import make_grid
from hookviz.explorer import answering
from hookviz.explorer.question import Question
from hookviz.explorer.view import View
from hookviz.serving import capacity
from hookviz.serving.capacity import shutdown
from hookviz.settings import settings
from hookviz.ui.serving import explorer_route, flow_control, resources
from hookviz.ui.serving.explorer_sessions import PinnedScene, explorer_sessions
from hookviz.ui.serving.flow_control import TokenBucket
from hookviz.ui.state import ModelChoice
from tests.live.turns import held_up
from tests.ui.serving.asgi import served
from tests.ui.serving.explorer_server import (
    CHOICE,
    Asking,
    model,
    read,
    scene,
    session,
    subject,
    threads,
    until_nothing_is_left,
)

LAYER = "stage1.first.conv"
MADE = {"channel": 3, "seed": 0, "steps": 2048, "others": []}
"""A question that takes as long as a run may."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with served(Starlette(routes=explorer_route.routes())) as own:
        yield own


@pytest.fixture
def page(port: int) -> Iterator[Asking]:
    owner = "me"
    yield session(port, owner, scene())
    explorer_sessions().withdraw(owner)
    until_nothing_is_left()


def told(shown: object, name: str, view: dict[str, str], **facts: object) -> dict[str, object]:
    """The answer's facts as they are without a server, as JSON has them."""
    answer = answering.answer(subject(shown), View.of_link(view), Question(name, facts))  # type: ignore[arg-type]
    read_again: dict[str, object] = json.loads(json.dumps(answer.facts))
    return read_again


def test_what_is_answered_is_what_the_library_captures_and_draws(port: int) -> None:
    shown = scene(7)
    page = session(port, "library", shown)
    tiles = page.ask("tiles", {"layer": LAYER})
    grid = make_grid(
        hookviz.capture(model(), shown.model_input, LAYER)[LAYER],
        scale="balanced",
        colormap="RdBu_r",
    )
    assert tiles.data == grid.sprite
    tiles = page.ask("tiles", {"layer": LAYER})  # which is kept now
    assert ([each.kind for each in tiles.messages], tiles.data) == (["answer"], grid.sprite)
    assert int(tiles.headers["content-length"]) > len(tiles.data) > 1000
    assert tiles.headers["content-encoding"] == "identity"
    assert tiles.headers["cache-control"] == "no-store"
    view = {"layer": LAYER, "channel": "3"}
    for name, facts in (
        ("layers", {}),
        ("channel", {"channel": 3}),
        ("cell", {"channel": 3, "row": 2, "column": 5}),
        ("kernel", {"channel": 3}),
    ):
        assert page.ask(name, view, **facts).facts == told(shown, name, view, **facts)
    explorer_sessions().withdraw("library")


def test_what_the_address_says_is_heard_of_its_own_session_alone(port: int) -> None:
    """Of a choice that asks nothing it comes by itself."""
    shown, heard = scene(3), list[object]()
    cookie = generate_xsrf_token_string()
    token, key = explorer_sessions().offer("address", cookie, shown, heard.append)
    says = {"fragment": "layer=conv1&channel=5", "number": 1}

    def post(path: str, token: str, cookie: str, body: object) -> int:
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        headers = {"Cookie": f"_streamlit_xsrf={cookie}", "Content-Type": "application/json"}
        line.request("POST", f"{path}?token={token}", json.dumps(body), headers)
        status = line.getresponse().status
        line.close()
        return status

    alone = explorer_route.PATH + "/address"
    assert post(alone, token, cookie, {"address": says}) == 204
    assert heard == [says]
    assert post(alone, token, generate_xsrf_token_string(), {"address": says}) == 403
    assert post(alone, "nobody's", cookie, {"address": says}) == 410
    asked = {"subject": key, "view": {"layer": LAYER}, "question": {"name": "layers"}}
    assert post(explorer_route.PATH, token, cookie, asked | {"address": says}) == 200
    assert heard == [says, says]
    explorer_sessions().withdraw("address")


def test_what_is_pinned_is_of_its_own_network_and_image(port: int) -> None:
    random = replace(CHOICE, weights="random")
    other, own = scene(4), scene(5)
    with resources.use_model(random) as network:
        digest = network.digest
    of_a = ("a-link", "Another", "ShapesNet, random weights", LAYER)
    view_of_a = PinnedScene(*of_a, random, digest, other.model_input)
    page = session(port, "pinned", replace(own, pinned=view_of_a))
    facts = page.ask("channel", {"layer": LAYER}, channel=3, of="a").facts
    with resources.use_model(random) as network:
        right = hookviz.capture(network, other.model_input, LAYER)[LAYER].values[3].numpy()
    assert np.array_equal(np.frombuffer(base64.b64decode(facts["values"]), "<f4"), right.ravel())
    gone = PinnedScene("another-link", error="A is of a photograph that is gone.")
    page = session(port, "pinned", replace(own, pinned=gone), page.cookie)
    tiles = page.ask("tiles", {"layer": LAYER})
    assert tiles.facts["compare"]["warning"] == gone.error
    explorer_sessions().withdraw("pinned")


def test_uploaded_weights_are_used_by_the_threads_that_answer(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Streamlit would warn of each use of what a session keeps."""
    state = {name: value * 1.5 for name, value in model().network.state_dict().items()}
    file = io.BytesIO()
    torch.save(state, file)
    urls = FileURLs(file_id="f1", upload_url="", delete_url="")
    record = UploadedFileRec("f1", "mine.pt", "", file.getvalue())
    choice = ModelChoice(CHOICE.spec, "yours", UploadedFile(record, urls))
    with resources.use_model(choice) as network:
        shown = replace(scene(6), choice=choice, model_digest=network.digest)
    page = session(port, "uploaded", shown)
    caplog.set_level(logging.WARNING)
    for _ in range(2):
        capacity.model_pool().evict_unused()
        reply = page.ask("channel", {"layer": LAYER}, channel=3)
        with resources.use_model(choice) as network:
            right = hookviz.capture(network, shown.model_input, LAYER)[LAYER].values[3].numpy()
        values = np.frombuffer(base64.b64decode(reply.facts["values"]), "<f4")
        assert np.array_equal(values, right.ravel())
    assert caplog.text == ""
    explorer_sessions().withdraw("uploaded")


def test_two_sessions_are_answered_about_their_own_image_and_no_other(port: int) -> None:
    shown = {owner: scene(seed) for seed, owner in enumerate(("one", "two"))}
    pages = {owner: session(port, owner, each) for owner, each in shown.items()}
    facts = {"channel": 1, "row": 3, "column": 4}
    right = {owner: told(each, "cell", {}, **facts) for owner, each in shown.items()}
    assert right["one"] != right["two"]

    def ask(number: int) -> bool:
        owner = ("one", "two")[number % 2]
        return pages[owner].ask("cell", **facts).facts == right[owner]

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(80)))
    for owner in pages:
        explorer_sessions().withdraw(owner)


@pytest.mark.parametrize(
    ("name", "facts", "status", "words"),
    [
        ("fly", {}, 400, "There is no question 'fly'"),
        ("cell", {"channel": 99, "row": 0, "column": 0}, 404, "channels are 0 to 31"),
        ("cell", {"channel": 0, "row": 64, "column": 0}, 404, "64"),
        ("cell", {"channel": 0, "row": -1, "column": 0}, 404, ""),
        ("channel", {"channel": 10**30}, 404, ""),
        ("channel", {}, 404, ""),
        ("channel", {"channel": [[{}]]}, 404, ""),
        ("walk", {"channel": 0, "input": 77, "row": 0, "column": 0}, 404, ""),
        ("file", {"kind": "../../etc/passwd", "channel": 0}, 422, "Choose from"),
    ],
)
def test_what_is_not_there_is_refused_in_words(
    page: Asking, name: str, facts: dict[str, object], status: int, words: str
) -> None:
    told, says = page.ask(name, **facts).refusal
    assert (told, words in says) == (status, True), says
    assert 10 < len(says) < 400


PARAMETERS = {f"p{number}": "" for number in range(61)}
TOO_MANY = json.dumps(
    {"subject": "KEY", "view": PARAMETERS, "question": {"name": "tiles"}}
).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 15_000,
        b'{"subject": "KEY", "view": {}, "question": "cell"}',
        b'{"subject": "KEY", "view": [], "question": {"name": "tiles"}}',
        b'{"subject": "KEY", "view": {"channel": 3}, "question": {"name": "tiles"}}',
        b'{"subject": "KEY", "view": {}, "question": {"name": 3}}',
        b'{"subject": 3, "view": {}, "question": {"name": "tiles"}}',
        TOO_MANY,
    ],
)
def test_what_is_no_question_is_told_what_would_be_one(page: Asking, body: bytes) -> None:
    reply = page.send(body.replace(b"KEY", page.key.encode()))
    assert (reply.status, "This is no question" in reply.says) == (400, True)


def test_only_the_browser_that_it_was_offered_to_may_ask(page: Asking) -> None:
    other = session(page.port, "another", scene(1))
    question = page.body("layers")
    theirs = generate_xsrf_token_string()
    replies = [
        (page | {"token": other.token}).send(question),  # another session's, with one's own cookie
        (page | {"cookie": theirs}).send(question),
        (page | {"cookie": ""}).send(question),
        page.send(question, Cookie=""),
        page.send(question, Origin="http://evil.example"),
        page.send(question, Origin="null"),
        (page | {"token": "made-up"}).send(question),
        (page | {"token": page.token[:-1]}).send(question),
    ]
    assert [reply.status for reply in replies] == [403] * 6 + [410] * 2
    assert all(reply.says for reply in replies)
    assert page.send(question).status == 200
    explorer_sessions().withdraw("another")


def test_a_page_that_shows_something_else_by_now_is_told(page: Asking) -> None:
    later = session(page.port, page.owner, scene(2), page.cookie)
    assert (later.token, later.key != page.key) == (page.token, True)
    assert page.ask("layers").status == 409
    assert later.ask("layers").status == 200


def test_more_than_a_question_has_is_not_read(page: Asking) -> None:
    assert page.send(b"", "GET").status == 405
    assert page.send(bytes(20_001)).status == 413
    assert page.send(b"", **{"Content-Length": "9" * 15}).status == 413  # which never comes
    chunks = iter([bytes(4000)] * 1000)
    line = http.client.HTTPConnection("127.0.0.1", page.port, timeout=30)
    try:
        line.request("POST", page.path(), chunks, page.headers())
        status = line.getresponse().status
    except (BrokenPipeError, ConnectionResetError):
        status = 413  # it was ended before all of it was sent
    finally:
        line.close()
    assert status == 413


def test_a_question_that_never_comes_whole_is_not_waited_for(
    page: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explorer_route, "_PATIENCE", 0.2)
    body = page.body("layers")
    with page.line(body) as line:  # the whole
        assert line.recv(15) == b"HTTP/1.1 200 OK"
    with page.line(body, length=len(body) + 10) as line:
        assert line.recv(12) == b"HTTP/1.1 408"


def test_a_thousand_questions_a_second_are_bounded_and_others_go_on(
    page: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = session(page.port, "other", scene(3))
    other.ask("tiles")
    question = page.body("layers")
    statuses: list[int] = []

    def flood() -> None:
        line = http.client.HTTPConnection("127.0.0.1", page.port, timeout=60)
        for _ in range(125):
            line.request("POST", page.path(), question, page.headers())
            reply = read(line.getresponse())
            statuses.append(reply.status)
            if reply.status == 429:
                assert int(reply.headers["retry-after"]) >= 1
        line.close()

    started = time.monotonic()
    floods = [threading.Thread(target=flood) for _ in range(8)]
    for each in floods:
        each.start()
    slowest = 0.0
    for _ in range(10):
        asked = time.monotonic()
        assert other.ask("cell", channel=1, row=1, column=1).status == 200
        slowest = max(slowest, time.monotonic() - asked)
    for each in floods:
        each.join(60)
    lasted = time.monotonic() - started
    assert len(statuses) == 1000
    assert set(statuses) == {200, 429}
    assert 60 <= statuses.count(200) <= 62 + 40 * lasted
    assert slowest < 2
    time.sleep(0.1)
    assert page.ask("layers").status == 200  # and whoever stops is answered again
    explorer_sessions().withdraw("other")


def test_who_waits_is_told_the_place_and_then_gets_the_answer(page: Asking) -> None:
    line = http.client.HTTPConnection("127.0.0.1", page.port, timeout=60)
    with held_up():
        line.request("POST", page.path("zh_CN"), page.body("tiles"), page.headers())
        answer = line.getresponse()  # which comes with the first word
        waits = next(iter_messages(answer))
        assert waits["kind"] == "waits"
        assert waits["position"] == 1
        assert "1" in waits["says"]
        assert "queue" not in waits["says"]  # it is said in Chinese
        assert threads() == ["explorer"]
    kinds = [each["kind"] for each in iter_messages(answer)]
    assert kinds[-1] == "answer"
    line.close()


def iter_messages(answer: http.client.HTTPResponse) -> Iterator[dict[str, Any]]:
    while True:
        size = answer.read(4)
        if not size:
            return
        body = answer.read(int.from_bytes(size, "little"))
        length = int.from_bytes(body[:4], "little")
        yield json.loads(body[4 : 4 + length])


def test_who_goes_while_it_waits_or_computes_leaves_nothing_and_can_go_on(page: Asking) -> None:
    with held_up():
        with page.line(page.body("tiles")) as line:
            assert line.recv(15) == b"HTTP/1.1 200 OK"
            assert capacity.queue().waiting == 1
        deadline = time.monotonic() + 5
        while threads() or capacity.queue().waiting:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    with page.line(page.body("own_picture", **MADE)) as line:
        got = b""
        while got.count(b'"partial"') < 2:
            got += line.recv(65536)
        assert threads() == ["explorer"]
    until_nothing_is_left()
    assert 0 < page.ask("stopped", channel=3, seed=0).facts["steps"] < 2048


def test_other_questions_are_answered_beside_a_long_one(page: Asking) -> None:
    with page.line(page.body("own_picture", **MADE)) as line:
        while b'"partial"' not in line.recv(65536):
            pass
        for row in range(3):  # each of which has to be computed
            assert page.ask("tiles", {"layer": f"stage{row + 1}.first.conv"}).status == 200
        assert threads() == ["explorer"]
    until_nothing_is_left()


def test_a_session_that_ends_while_it_waits_or_computes_is_told(page: Asking) -> None:
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        with held_up():
            waiting = pool.submit(page.ask, "tiles")
            while not capacity.queue().waiting:
                time.sleep(0.01)
            time.sleep(0.5)  # until it has been told that it waits
            explorer_sessions().withdraw(page.owner)
            told = waiting.result(20)
        assert told.messages[-1].kind == "refused"
        assert told.messages[-1].facts["status"] == 410
        again = session(page.port, page.owner, scene(), page.cookie)
        assert again.token != page.token
        making = pool.submit(again.ask, "own_picture", **MADE)
        time.sleep(1)
        explorer_sessions().withdraw(page.owner)
        assert making.result(20).messages[-1].facts["status"] == 410
    assert page.ask("layers").status == 410
    until_nothing_is_left()


def test_a_server_that_ends_answers_nobody_and_ends_what_it_answers(page: Asking) -> None:
    try:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            making = pool.submit(page.ask, "own_picture", **MADE)
            time.sleep(1)
            shutdown().has_begun = True
            last = making.result(20).messages[-1]
        assert (last.kind, last.facts["status"]) == ("refused", 503)
        assert page.ask("layers").status == 503
    finally:
        shutdown().has_begun = False


def test_an_answer_takes_no_longer_than_a_run_may(
    page: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOKVIZ_RUN_SECONDS", "1")
    settings.cache_clear()
    try:
        last = page.ask("own_picture", **MADE).messages[-1]
    finally:
        settings.cache_clear()
    assert (last.kind, last.facts["status"]) == ("refused", 422)
    assert "HOOKVIZ_RUN_SECONDS" in last.facts["says"]


@pytest.mark.parametrize(
    ("bounds", "computed"),
    [({"_MOST_ASKED": 3}, 3), ({"_MOST_COMPUTED": 1, "_MOST_WAITING": 2}, 1)],
)
def test_more_than_enough_questions_of_one_session_are_not_computed(
    page: Asking, monkeypatch: pytest.MonkeyPatch, bounds: dict[str, int], computed: int
) -> None:
    """Those beyond the threads wait for one, and those beyond all bounds are refused."""
    for name, bound in bounds.items():
        monkeypatch.setattr(explorer_route, name, bound)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        with held_up():
            waiting = [pool.submit(page.ask, "tiles") for _ in range(3)]
            offer = explorer_sessions().find(page.token)
            while offer is None or offer.asked < 3 or len(threads()) < computed:
                time.sleep(0.01)
            assert threads() == ["explorer"] * computed
            assert page.ask("tiles").status == 429
        assert [each.result(20).status for each in waiting] == [200, 200, 200]


def test_a_failure_of_ours_is_logged_and_told_without_its_words(
    page: Asking, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setitem(answering.QUESTIONS, "layers", fail)
    with caplog.at_level(logging.ERROR, logger="hookviz"):
        reply = page.ask("layers")
    assert (reply.status, "secret" in reply.says) == (500, False)
    assert "Something went wrong on our side" in reply.says
    assert caplog.records[0].exc_info is not None


def test_who_reads_nothing_is_cut_off(page: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_control, "SEND_TIMEOUT", 0.5)
    offer = explorer_sessions().find(page.token)
    assert offer is not None
    offer.bucket = TokenBucket(10_000, 1)
    page.ask("tiles")
    body = page.body("tiles")
    with page.line(body) as line:
        deadline = time.monotonic() + 20
        with contextlib.suppress(OSError):  # reset or broken, as it comes
            while time.monotonic() < deadline:
                line.sendall(page.request(body))
                time.sleep(0.005)
        assert time.monotonic() < deadline
