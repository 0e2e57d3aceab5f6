"""Classes on a real server, by the page's own protocol: who follows, and bounds."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest
from starlette.types import Message, Scope
from websockets.exceptions import ConnectionClosed

from hookviz.ui.serving import class_route
from scripts.class_client import CLASS_APP, ClassSeat, asked, knock, sit
from scripts.servers import ROOT, Server, serve
from tests.classroom.test_school_class import framed, jpeg
from tests.loops import in_a_loop_of_its_own
from tests.ui.serving.asgi import talk

TWO = {"HOOKVIZ_CLASSES": "2", "PYTHONPATH": str(ROOT), "HOOKVIZ_LOG": "json"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve(TWO, CLASS_APP) as address:
        yield address
        assert address.errors() == []


@pytest.fixture
def begun(server: Server) -> Iterator[dict[str, str]]:
    found = asked(server, "begin")
    yield found
    if asked(server, "probe")["classes"]:
        asked(server, "end", code=found["code"])


def taught(
    server: Server,
    begun: dict[str, str],
    pupils: int,
    work: Callable[[ClassSeat, list[ClassSeat]], Awaitable[Any]],
) -> Any:
    """What becomes of a class with a teacher and so many pupils."""
    passes = [asked(server, "admit", code=begun["code"], who=n)["token"] for n in range(pupils)]

    async def run() -> Any:
        async with AsyncExitStack() as stack:
            come = stack.enter_async_context
            teacher = await come(sit(server, **begun))
            seats = [await come(sit(server, begun["code"], each)) for each in passes]
            await teacher.until(followers=pupils)
            return await work(teacher, seats)

    return in_a_loop_of_its_own(run())


def until(server: Server, **state: int) -> None:
    deadline = time.monotonic() + 10
    while (found := asked(server, "probe")) | state != found:
        assert time.monotonic() < deadline, (found, state)
        time.sleep(0.02)


def test_states_that_come_faster_than_they_are_read_are_skipped(
    server: Server, begun: dict[str, str]
) -> None:
    async def teach(teacher: ClassSeat, pupils: list[ClassSeat]) -> int:
        for number in range(40):
            await teacher.say(state=f"channel={number}")
        heard = 0
        while (pupils[0].view.get("state") or {}).get("query") != "channel=39":
            await pupils[0].hear()
            heard += 1
        return heard

    assert taught(server, begun, 1, teach) <= 40


def test_pupils_get_a_camera_that_is_shared_and_nothing_of_one_that_is_not(
    server: Server, begun: dict[str, str]
) -> None:
    frame = framed(jpeg(), layer="stem.first.conv")

    async def teach(teacher: ClassSeat, pupils: list[ClassSeat]) -> None:
        await teacher.say(live="private")
        await asyncio.gather(*(pupil.until(live="private") for pupil in pupils))
        await teacher.socket.send(frame)  # a page does not; none of it goes on
        await teacher.say(live="shared")
        await asyncio.gather(*(pupil.until(live="shared") for pupil in pupils))
        assert all(pupil.frames == [] for pupil in pupils)
        await teacher.socket.send(frame)
        for pupil in pupils:
            while not pupil.frames:
                await pupil.hear()
            assert pupil.frames == [frame]
        assert "live" not in teacher.view
        await teacher.socket.close()
        await asyncio.gather(*(pupil.until(live=None) for pupil in pupils))

    taught(server, begun, 3, teach)


@pytest.mark.parametrize(
    ("seat", "data", "code"),
    [
        (0, framed(jpeg()), 1007),
        (1, b"no frame", 1007),
        (1, b"", 1007),
        (1, b"\0" * 60_001, 4413),
    ],
)
def test_frames_of_pupils_and_what_is_none_end_the_connection(
    server: Server, begun: dict[str, str], seat: int, data: bytes, code: int
) -> None:
    async def send(teacher: ClassSeat, pupils: list[ClassSeat]) -> int:
        sender = (pupils[0], teacher)[seat]
        await sender.socket.send(data)
        return await sender.end()

    assert taught(server, begun, 1, send) == code


def test_a_pupil_who_leads_the_class_is_sent_away(server: Server, begun: dict[str, str]) -> None:
    words: list[dict[str, Any]] = [{name: 1} for name in ("close", "reveal", "away")]
    words += [{"state": "channel=1"}, {"mark": "dots", "question": 1}]

    async def pose(_teacher: ClassSeat, pupils: list[ClassSeat]) -> None:
        other, *posing = pupils
        for pupil, each in zip(posing, words, strict=True):
            await pupil.say(**each)
        assert [await pupil.end() for pupil in posing] == [1007] * 5
        assert not other.view.get("state")

    taught(server, begun, 6, pose)


def test_nothing_on_the_wire_tells_the_answer_before_it_is_revealed(
    server: Server, begun: dict[str, str]
) -> None:
    heard: list[str] = []

    async def hear(seat: ClassSeat, done: Callable[[dict[str, Any]], bool]) -> None:
        while not done(seat.view):
            heard.append(json.dumps(await seat.hear()))

    async def play(teacher: ClassSeat, pupils: list[ClassSeat]) -> None:
        await asyncio.to_thread(asked, server, "riddle", code=begun["code"])
        for seat in (teacher, *pupils):
            await hear(seat, lambda view: bool(view.get("question") and view.get("pictures")))
        number = teacher.view["question"]["number"]
        for pupil, answer in zip(pupils, (1, 0), strict=True):
            for vote in (0, answer, answer):  # one vote each, whatever is sent
                await pupil.say(vote=vote, question=number)
        await hear(teacher, lambda view: view["question"]["tally"] == [1, 1])
        await teacher.say(close=number)
        for seat in (teacher, *pupils):
            await hear(seat, lambda view: view["question"]["phase"] == "closed")
        said = "".join(heard)
        assert "patch" in said
        assert "secret" not in said
        assert '"layer": "stage3.first.conv"' in said  # of all that it is, this is told
        assert '"channel"' not in said
        assert '"right": 1' not in said
        assert said.count("patch patch") < 3 * 4 * 2_000  # the pictures came once to each
        await teacher.say(reveal=number)
        for seat in pupils:
            await hear(seat, lambda view: view["question"]["phase"] == "revealed")
            assert seat.view["question"]["where"] == {"layer": "stage3.first.conv", "channel": 7}
            assert seat.view["question"]["tally"] == [1, 1]
        scores = [pupil.view["points"]["right"] for pupil in pupils]
        assert scores == [1, 0]
        assert pupils[0].view["class"] == 0.5

    taught(server, begun, 2, play)


def test_who_follows_is_counted_by_what_its_page_says_and_who_falls_silent_is_gone(
    server: Server, begun: dict[str, str]
) -> None:
    async def attend(teacher: ClassSeat, pupils: list[ClassSeat]) -> int:
        apart, hidden, silent = pupils
        await apart.say(here="alone")
        await teacher.until(followers=2, alone=1)
        await hidden.say(here="away")
        await teacher.until(followers=1, alone=1)
        await apart.say(here="follows")
        await teacher.until(followers=2, alone=0)
        await apart.say(here="away")  # who sleeps may be silent
        await silent.say(here="follows")
        await silent.until(beat=1)
        code = await silent.end()
        await teacher.until(followers=0, alone=0)
        await apart.say(here="follows")
        await teacher.until(followers=1)
        return code

    assert taught(server, begun, 3, attend) == 4408


def first_words(server: Server, *words: str | bytes, origin: str = "") -> int:
    """How a connection ends that begins so."""

    async def run() -> int:
        async with knock(server, origin=origin) as seat:
            with suppress(ConnectionClosed):  # of who is refused before they have said it
                for each in words:
                    await seat.socket.send(each)
            return await seat.end()

    return int(in_a_loop_of_its_own(run()))


def test_no_one_else_has_a_seat(server: Server, begun: dict[str, str]) -> None:
    code, secret = begun["code"], begun["token"]
    token = asked(server, "admit", code=code, who="pupil")["token"]
    other = asked(server, "begin")
    wrong = [
        {"code": code, "token": ""},
        {"code": code},
        {"token": secret},
        {"code": code, "token": secret[:-1]},
        {"code": code, "token": other["token"]},
        {"code": other["code"], "token": token},
        {"code": "AAAAAA", "token": token},
        {"code": code, "token": token.partition(".")[0]},
        {"code": [code], "token": {"a": 1}},
        {"code": "\ud800", "token": "\ud800"},
        {"code": code, "token": "\ud800.\ud800", "before": token},
    ]
    assert {first_words(server, json.dumps(each)) for each in wrong} == {4401}
    asked(server, "end", code=other["code"])
    elsewhere = "https://elsewhere.example"
    assert first_words(server, json.dumps(begun), origin=elsewhere) == 4403


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("", 1007),
        (b"\x00\xff", 1007),
        ("[]", 1007),
        ("[" * 3000, 1007),
        ("NaN", 1007),
        ('{"code": "' + "A" * 5000 + '"}', 4413),
        (None, 4408),  # who says nothing
    ],
)
def test_first_words_that_make_no_sense_end_the_connection(
    server: Server, words: str | bytes | None, code: int
) -> None:
    assert first_words(server, *([] if words is None else [words])) == code


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"state": 5}, 1007),
        ({"vote": "0", "question": 1}, 1007),
        ({"vote": 0, "question": 1}, 1007),  # which is a pupil's
        ({"guess": "cat", "question": 1}, 1007),
        ({"mark": 1, "question": 1}, 1007),
        ({"here": 5}, 1007),
        ({}, 1007),
        ({"state": "x" * 5000}, 4413),
    ],
)
def test_what_a_teacher_may_not_say_ends_the_connection(
    server: Server, begun: dict[str, str], message: dict[str, Any], code: int
) -> None:
    assert first_words(server, json.dumps(begun), json.dumps(message)) == code


def test_silent_lines_of_one_address_shut_nobody_else_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(class_route, "_MOST_PENDING", 2)
    app = class_route.ClassConnections()

    async def end(address: str, *words: str) -> int:
        """How a connection from an address ends that says this, and then nothing."""
        said: list[Message] = [{"type": "websocket.receive", "text": each} for each in words]
        scope: Scope = {"type": "websocket", "path": "/", "headers": [], "client": (address, 1)}
        return int((await talk(app, scope, {"type": "websocket.connect"}, *said))[-1]["code"])

    async def crowd() -> list[int]:
        silent = [asyncio.ensure_future(end("203.0.113.1")) for _ in range(2)]
        await asyncio.sleep(0.1)
        found = [await end("203.0.113.1", "{}"), await end("198.51.100.7", "{}")]
        for each in silent:
            each.cancel()
        await asyncio.gather(*silent, return_exceptions=True)
        return [*found, await end("203.0.113.1", "{}")]

    assert in_a_loop_of_its_own(crowd()) == [4430, 4401, 4401]


def test_a_flood_ends_the_connection_and_no_other(server: Server, begun: dict[str, str]) -> None:
    async def flood(teacher: ClassSeat, pupils: list[ClassSeat]) -> int:
        for _ in range(300):
            await pupils[0].say(vote=0, question=1)
        ended = await pupils[0].end()
        await teacher.say(state="channel=7")
        await pupils[1].shows("channel=7")
        return ended

    assert taught(server, begun, 2, flood) == 4429


def test_a_state_that_can_not_be_shared_leaves_the_one_before(
    server: Server, begun: dict[str, str]
) -> None:
    async def teach(teacher: ClassSeat, pupils: list[ClassSeat]) -> None:
        await teacher.say(state="channel=1")
        await pupils[0].shows("channel=1")
        await teacher.say(state="&".join(f"a{number}=1" for number in range(100)))
        await teacher.say(state="next=https://elsewhere.example&channel=2&sample=x%00")
        await pupils[0].shows("channel=2")

    taught(server, begun, 1, teach)


def test_codes_can_not_be_tried_without_end(server: Server, begun: dict[str, str]) -> None:
    code = begun["code"]
    wrong = "A" * 6 if code != "A" * 6 else "B" * 6
    said = [asked(server, "admit", code=wrong, who="guesser")["error"] for _ in range(11)]
    assert "No class has the code" in said[0]
    assert "Too many wrong codes" in said[-1]
    assert "Too many" in asked(server, "admit", code=code, who="guesser")["error"]
    assert "token" in asked(server, "admit", code=code, who="pupil")


def test_classes_are_bounded_and_a_line_that_is_cut_leaves_no_seat(
    server: Server, begun: dict[str, str]
) -> None:
    other = asked(server, "begin")
    assert "2 classes are going on here" in asked(server, "begin")["error"]
    asked(server, "end", code=other["code"])

    async def cut(_teacher: ClassSeat, pupils: list[ClassSeat]) -> None:
        await asyncio.to_thread(until, server, seats=3)
        for pupil in pupils:
            pupil.socket.transport.abort()
        await asyncio.to_thread(until, server, seats=0, passes=3)

    taught(server, begun, 3, cut)
