"""Streams of frames on a real server, by the page's own protocol: answers and bounds."""

import asyncio
import contextlib
import json
import os
import random
import re
import signal
import socket
import struct
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
from PIL import Image
from starlette.types import Message
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.exceptions import ConnectionClosed

import hookviz
from hookviz.drawing.grid import make_grid
from hookviz.live.streams import Stream
from hookviz.types import Model
from hookviz.ui.serving import live_route
from hookviz.ui.serving.live_route import _answer, _read, _Tally
from hookviz.ui.serving.messages import MessageReader
from scripts.live_client import LIVE_APP, Answer, LiveStream, live, read_answer, token_of
from scripts.servers import ROOT, Server, free_port, serve
from scripts.visitor import Visitor, arrive
from tests.live.subjects import STEP, frame, subject_of
from tests.live.turns import held_up
from tests.loops import in_a_loop_of_its_own
from tests.pictures import encoded, picture


@dataclass(frozen=True)
class Served:
    server: Server
    metrics: str

    def probe(self) -> dict[str, int]:
        answer = requests.get(f"{self.server}/probe", timeout=20)
        found: dict[str, int] = answer.json()
        return found

    def counted(self, name: str) -> float:
        with urllib.request.urlopen(self.metrics, timeout=20) as answer:
            found = re.search(rf"^hookviz_{name} (\S+)$", answer.read().decode(), re.MULTILINE)
        return float(found[1]) if found else 0.0

    def until(self, **state: int) -> None:
        deadline = time.monotonic() + 10
        while (found := self.probe()) | state != found:
            assert time.monotonic() < deadline, (found, state)
            time.sleep(0.02)


ENVIRONMENT = {"PYTHONPATH": str(ROOT), "HOOKVIZ_LOG": "json", "HOOKVIZ_LIVE": "4"}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    port = free_port()
    with serve({**ENVIRONMENT, "HOOKVIZ_METRICS_PORT": str(port)}, LIVE_APP) as server:
        yield Served(server, f"http://127.0.0.1:{port}/metrics")


@pytest.fixture(scope="module")
def model() -> Model:
    return hookviz.load_model("shapesnet")


@asynccontextmanager
async def tab_of(served: Served, **link: str) -> AsyncIterator[Visitor]:
    async with arrive(served.server, {"live": "1", **link}) as tab:
        await tab.run()
        assert tab.problems == []
        yield tab


def on_a_stream(
    served: Served, work: Callable[[LiveStream, Visitor], Awaitable[Any]], **link: str
) -> Any:
    """What becomes of the stream of a tab of its own."""

    async def run() -> Any:
        async with tab_of(served, **link) as tab, live(served.server, tab) as stream:
            return await work(stream, tab)

    return in_a_loop_of_its_own(run())


async def color_limit(stream: LiveStream) -> tuple[int, str]:
    """The code with which a stream is closed, 1006 without one, and the words before."""
    words = ""
    try:
        while True:
            heard = await stream.hear()
            if isinstance(heard, dict):
                words = heard.get("over", words)
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else 1006, words


def test_what_is_streamed_is_what_the_library_captures_and_draws_of_what_the_page_offers(
    served: Served, model: Model
) -> None:
    frames = [frame(seed) for seed in range(6)]

    async def watch(stream: LiveStream, tab: Visitor) -> list[Answer]:
        await stream.wish(channel=3)
        answers = [await stream.ask(number, data) for number, data in enumerate(frames)]
        for step in ("stage2.first.conv", "stage1.relu"):  # as the page offers it now
            tab.query = f"live=1&step={step}"
            await tab.run()
            assert (await stream.ask(9, frame())).facts["grid"]["title"] == step
        return answers

    for number, answer in enumerate(on_a_stream(served, watch)):
        capture = hookviz.capture(model, frames[number], STEP)
        grid = make_grid(capture[STEP], scale="balanced", colormap="RdBu_r")
        assert answer.facts["frame"] == number
        assert answer.blobs == (grid.sprite, grid.channel_png(3, 1))
        assert [tuple(each) for each in answer.facts["scores"]] == list(capture.predictions(5))
    assert served.probe()["used"] == 0  # nothing is cached
    assert served.probe()["hooks"] == 0


def test_frames_that_come_too_fast_are_skipped_and_the_newest_is_drawn(served: Served) -> None:
    async def hurry(stream: LiveStream, _tab: Visitor) -> list[int]:
        for number in range(60):
            await stream.send(number, frame())
        seen: list[int] = []
        while 59 not in seen:
            answer = await stream.hear()
            assert isinstance(answer, Answer)
            seen.append(answer.facts["frame"])
        last = await stream.ask(60, frame())  # and it goes on
        return [*seen, last.facts["frame"]]

    seen = on_a_stream(served, hurry)
    assert seen == sorted(seen)
    assert len(seen) < 50


def test_a_frame_that_is_drawn_in_anothers_turn_is_not_waited_for(model: Model) -> None:
    """It came while a turn was waited for, and nothing is left to be drawn after that."""

    async def watch() -> list[int]:
        stream, tally, seen = Stream("me", subject_of(model), print), _Tally(), list[int]()

        async def send(message: Message) -> None:
            seen.append(read_answer(message["bytes"]).facts["frame"])

        async def until(count: int) -> None:
            async with asyncio.timeout(20):
                while len(seen) < count:
                    await asyncio.sleep(0.01)

        answering = asyncio.ensure_future(_answer(stream, send, tally))
        with held_up():
            for number in (1, 2):
                stream.put(number, frame())
                tally.waiting.set()
                await asyncio.sleep(0.1)
        await until(1)
        await asyncio.sleep(0.1)
        stream.put(3, frame())
        tally.waiting.set()
        await until(2)
        stream.end(None)
        answering.cancel()
        return seen

    assert in_a_loop_of_its_own(watch()) == [2, 3]


def test_a_silent_stream_is_over_and_one_that_waits_for_its_turn_is_not(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_route, "_SILENCE", 0.2)

    async def never() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def watch() -> int:
        stream, tally = Stream("me", subject_of(model), print), _Tally()
        tally.computing = True
        reading = asyncio.ensure_future(_read(stream, MessageReader(never), tally))
        await asyncio.sleep(0.5)
        assert not reading.done()
        tally.computing = False
        async with asyncio.timeout(5):
            over = await reading
        assert over is not None
        return over.code

    assert in_a_loop_of_its_own(watch()) == 4408


@pytest.mark.parametrize(
    ("message", "code", "words"),
    [
        (bytes(1_000_001), 4413, "1,000,000 is the most"),
        ("{", 1007, "says nothing"),
        ('{"channel": -1}', 1007, "says nothing"),
        ("[" * 100_000, 1007, "says nothing"),
    ],
)
def test_messages_too_large_or_of_no_sense_end_the_stream(
    served: Served, message: bytes | str, code: int, words: str
) -> None:
    async def send(stream: LiveStream, _tab: Visitor) -> tuple[int, str]:
        await stream.socket.send(message)
        return await color_limit(stream)

    ended, said = on_a_stream(served, send)
    assert ended == code
    assert words in said
    served.until(live=0, running=0)


def test_a_flood_ends_the_stream(served: Served) -> None:
    async def flood(stream: LiveStream, _tab: Visitor) -> tuple[int, str]:
        ending = asyncio.ensure_future(color_limit(stream))
        with contextlib.suppress(ConnectionClosed):
            for _ in range(3000):
                await stream.socket.send(b"\0\0\0\0junk")
        return await ending

    assert on_a_stream(served, flood)[0] == 4429


def test_damaged_frames_at_speed_are_refused_and_the_stream_goes_on(served: Served) -> None:
    rng = random.Random(1)
    whole = [frame(), encoded(picture(1, 64, 48)), encoded(picture(2, 64, 48), "WEBP")]
    side = encoded(Image.new("RGB", (3000, 3000)), "PNG")  # few bytes, many pixels

    def damaged() -> bytes:
        data = bytearray(rng.choice(whole))
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        return rng.choice((bytes(data), bytes(data[: rng.randrange(len(data))]), b"", side))

    async def send(stream: LiveStream, _tab: Visitor) -> tuple[int, int]:
        drawn = refused = 0
        for number in range(80):
            await stream.send(number, damaged())
            heard = await stream.hear()
            if isinstance(heard, Answer):
                drawn += 1
            else:
                assert set(heard) == {"refused"}
                refused += 1
        for none in (b"ab", BackMsg(clear_cache=True).SerializeToString()):
            await stream.socket.send(none)  # not even a number, and a message for developers
            assert "refused" in str(await stream.hear())
        await stream.ask(1, frame())
        return drawn, refused

    before = served.server.megabytes()
    drawn, refused = on_a_stream(served, send)
    assert refused > 20
    assert drawn + refused == 80
    assert served.server.megabytes() - before < 150
    assert served.probe()["hooks"] == 0
    assert served.server.errors() == []


def test_only_the_visitor_who_was_offered_it_has_the_stream(served: Served) -> None:
    async def knock() -> list[tuple[int, str]]:
        heard = []
        async with tab_of(served) as tab, tab_of(served) as other:
            assert token_of(tab) != token_of(other)
            ways: list[tuple[Visitor, dict[str, Any]]] = [
                (other, {"token": token_of(tab)}),  # another session's
                (tab, {"token": "made-up"}),
                (tab, {"token": token_of(tab)[:-1]}),
                (tab, {"cookie": ""}),
                (tab, {"cookie": "_streamlit_xsrf=2|00000000|11111111|1"}),
                (tab, {"origin": "http://evil.example"}),
                (tab, {"origin": "null"}),
            ]
            for visitor, way in ways:
                async with live(served.server, visitor, **way) as stream:
                    heard.append(await color_limit(stream))
            # and the same browser may, though its cookie looks another each time that it is set
            health = await asyncio.to_thread(
                requests.get,
                f"{served.server}/_stcore/health",
                cookies=dict(tab.cookies),
                timeout=20,
            )
            again = health.cookies["_streamlit_xsrf"]
            assert again != tab.cookies["_streamlit_xsrf"]
            cookie = f"_streamlit_xsrf={again}"
            async with live(served.server, tab, cookie=cookie) as stream:
                await stream.ask(1, frame())
        return heard

    heard = in_a_loop_of_its_own(knock())
    assert [code for code, _ in heard] == [4401] * 5 + [4403] * 2
    assert all(words for _, words in heard)


def test_streams_are_bounded_and_one_that_ends_makes_room(served: Served) -> None:
    async def crowd() -> list[int]:
        codes = []
        async with AsyncExitStack() as stack:
            tabs = [await stack.enter_async_context(tab_of(served)) for _ in range(5)]
            held = [await stack.enter_async_context(live(served.server, tab)) for tab in tabs[:4]]
            for stream in held:
                await stream.ask(1, frame())
            assert served.probe()["live"] == 4
            assert served.counted("live_streams") == 4
            async with live(served.server, tabs[4]) as stream:
                codes.append((await color_limit(stream))[0])
            # the same session once more: its first connection ends, and nobody else's
            again = await stack.enter_async_context(live(served.server, tabs[0]))
            codes.append((await color_limit(held[0]))[0])
            await again.ask(2, frame())
            await held[1].ask(2, frame())
            await held[2].socket.close()
            await asyncio.to_thread(served.until, live=3)
            late = await stack.enter_async_context(live(served.server, tabs[4]))
            await late.ask(1, frame())
        return codes

    assert in_a_loop_of_its_own(crowd()) == [4429, 4429]
    served.until(live=0, running=0, hooks=0)


def test_a_thousand_connections_without_a_token_take_nothing_from_a_stream(served: Served) -> None:
    host, port = served.server.removeprefix("http://").split(":")
    request = (
        f"GET /hookviz/live?token=none HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nOrigin: {served.server}\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    ).encode()

    async def knock(gate: asyncio.Semaphore) -> bytes:
        async with gate:
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(request)
            answer = await asyncio.wait_for(reader.read(4096), 30)
            writer.close()
            return answer

    async def crowd(stream: LiveStream, _tab: Visitor) -> float:
        gate = asyncio.Semaphore(100)
        knocks = asyncio.gather(*(knock(gate) for _ in range(1000)))
        slowest = 0.0
        for number in range(20):
            started = time.perf_counter()
            await stream.ask(number, frame())
            slowest = max(slowest, time.perf_counter() - started)
        answers = await knocks
        assert all(answer.startswith(b"HTTP/1.1 101") for answer in answers)
        return slowest

    before = served.server.megabytes()
    assert on_a_stream(served, crowd) < 5
    served.until(live=0, running=0)
    assert served.server.megabytes() - before < 100
    assert served.server.errors() == []


def test_a_stream_ends_with_its_page_however_that_ends(served: Served) -> None:
    async def withdraw(stream: LiveStream, tab: Visitor) -> tuple[int, str]:
        await stream.ask(1, frame())
        tab.query = "live=0"
        await tab.run()
        return await color_limit(stream)

    code, words = on_a_stream(served, withdraw)
    assert (code, bool(words)) == (4401, True)
    served.until(live=0, running=0, hooks=0)

    async def cut(stream: LiveStream, _tab: Visitor) -> None:
        """In the middle of a frame, without a word."""
        await stream.send(1, frame())
        line: socket.socket = stream.socket.transport.get_extra_info("socket")
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        stream.socket.transport.abort()

    on_a_stream(served, cut)
    served.until(live=0, running=0, hooks=0)


def test_who_reads_nothing_of_the_answers_is_cut_off(served: Served) -> None:
    before = served.counted("cut_off_total")
    host, port = served.server.removeprefix("http://").split(":")

    async def read_nothing() -> None:
        async with tab_of(served) as tab:
            line = socket.socket()
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.connect((host, int(port)))
            async with live(served.server, tab, line=line) as stream:
                stream.socket.transport.pause_reading()
                deadline = time.monotonic() + 30
                number = 0
                while served.counted("cut_off_total") == before:
                    assert time.monotonic() < deadline
                    number += 1
                    await stream.send(number, frame())
                    await asyncio.sleep(0.03)
                stream.socket.transport.abort()

    in_a_loop_of_its_own(read_nothing())
    served.until(live=0, running=0)
    assert served.server.errors() == []


PEOPLE = {"one": range(7), "two": range(20, 27)}


@pytest.mark.sweep("by day two streams without a server: tests/live/test_streams.py")
def test_two_people_live_at_once_see_their_own_frames_and_nothing_of_them_stays(
    served: Served, model: Model
) -> None:
    """0 of 1,000 wrong, of a small network on small frames."""
    pictures = {who: [frame(seed, 43, 32) for seed in seeds] for who, seeds in PEOPLE.items()}

    def right(data: bytes) -> list[float]:
        maps = hookviz.capture(model, data, STEP, size=32)[STEP].values
        return [float(f"{value:.8g}") for value in maps.amax((1, 2)).tolist()]

    async def watch(who: str) -> list[float]:
        maxima, megabytes = [right(data) for data in pictures[who]], list[float]()
        async with tab_of(served, size="32") as tab, live(served.server, tab) as stream:
            for number in range(500):
                facts = (await stream.ask(number, pictures[who][number % 7])).facts
                assert (facts["frame"], facts["maxima"]) == (number, maxima[number % 7])
                if number % 200 == 99:
                    megabytes.append(served.server.megabytes())
        return megabytes

    async def both() -> list[list[float]]:
        return list(await asyncio.gather(*map(watch, PEOPLE)))

    done = 'live_frames_total{outcome="done"}'
    before = served.counted(done)
    assert all(last - first < 12 for first, *_, last in in_a_loop_of_its_own(both()))
    served.until(live=0, running=0, hooks=0, used=0)
    lines = [json.loads(line) for line in served.server.log() if line.startswith("{")]
    events = [line for line in lines if line["event"] == "live"]
    assert [event["frames"] for event in events].count(500) == 2
    fields = {"time", "level", "event", "session", "outcome", "frames", "refused", "skipped", "ms"}
    assert all(set(event) == fields for event in events)
    assert len(lines) < 200  # one for a stream, none for a frame
    assert served.counted(done) - before >= 1000


@pytest.mark.sweep("by day what the page says to it: tests/e2e/test_live.py")
def test_a_server_without_streams_says_so() -> None:
    with serve(
        {**ENVIRONMENT, "HOOKVIZ_LIVE": "0", "HOOKVIZ_CLASS_CODE": "sesame"}, LIVE_APP
    ) as server:
        served = Served(server, "")

        async def knock(language: str) -> tuple[int, str]:
            async with arrive(server, {"live": "1"}) as tab:
                await tab.run()
                assert tab.texts == []  # who does not know the class code is offered no token
                async with live(server, tab, token="x" * 32, language=language) as stream:
                    return await color_limit(stream)

        sentences = {"en": "switched off", "zh_CN": "关闭"}
        for language, words in sentences.items():
            code, heard = in_a_loop_of_its_own(knock(language))
            assert (code, "HOOKVIZ_LIVE=0" in heard, words in heard) == (4404, True, True)
        assert served.probe()["live"] == 0


@pytest.mark.sweep("by day: tests/live/test_streams.py and tests/e2e/test_processes.py")
def test_a_server_that_is_told_to_end_ends_its_streams_and_itself() -> None:
    with serve(ENVIRONMENT, LIVE_APP) as server:
        served = Served(server, "")

        async def watch(stream: LiveStream, _tab: Visitor) -> int:
            await stream.ask(1, frame())
            for number in range(5):
                await stream.send(number, frame())
            os.kill(server.pid(), signal.SIGTERM)
            return (await color_limit(stream))[0]

        pid = server.pid()
        assert on_a_stream(served, watch) in (1012, 1005, 1006)
        deadline = time.monotonic() + 10
        while _is_there(pid):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert server.errors() == []


def _is_there(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # it may go while it is read
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
