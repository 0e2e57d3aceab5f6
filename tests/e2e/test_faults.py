"""Bad lines and bad visitors on a real server: each is bounded, and the others go on."""

import asyncio
import base64
import os
import re
import resource
import socket
import struct
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
import requests
from playwright.sync_api import Page, expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

import hookviz
from hookviz.images.samples import Sample, samples
from scripts.automatic_grid import automatic_grid
from scripts.browsing import grid_bytes, wait_for_grid
from scripts.explorer_client import RefusedError, exploring
from scripts.servers import Server, free_port, serve
from scripts.visitor import Visitor, arrive
from tests.e2e.screen import SHAPESNET, choose
from tests.line import line_to
from tests.loops import in_a_loop_of_its_own

COMMAND = (
    *(sys.executable, "-m", "streamlit", "run", "tests/e2e/live_app.py"),
    *("--server.port", "PORT", "--server.address", "127.0.0.1"),
)
LAYERS = ("stem.first.conv", "stage1.first.conv", "stage2.first.conv")


@dataclass(frozen=True)
class Served:
    """A server, and where its metrics are."""

    server: Server
    metrics: str

    def counted(self, name: str) -> float:
        with urllib.request.urlopen(self.metrics, timeout=20) as answer:
            text = answer.read().decode()
        sample = re.search(rf"^hookviz_{name}_total (\S+)$", text, re.MULTILINE)
        assert sample
        return float(sample[1])


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    port = free_port()
    with serve({"HOOKVIZ_METRICS_PORT": str(port)}, COMMAND) as server:
        yield Served(server, f"http://127.0.0.1:{port}/metrics")
        assert server.errors() == []


@pytest.mark.by_day
def test_a_server_out_of_open_files_says_so_without_a_path_and_goes_on() -> None:
    with serve() as server:
        in_a_loop_of_its_own(without_files(server))


async def without_files(server: Server) -> None:
    """Choose a picture and a network that nobody has opened yet, without and with files."""
    limit = resource.prlimit(server.pid(), resource.RLIMIT_NOFILE)
    async with arrive(server, {"model": "ShapesNet"}) as tab:
        await tab.run()
        assert tab.problems == []
        resource.prlimit(server.pid(), resource.RLIMIT_NOFILE, (3, limit[1]))
        await tab.go_to(model="ShapesViT (drawings)", image=samples()[1].name)
        resource.prlimit(server.pid(), resource.RLIMIT_NOFILE, limit)
        (problem,) = tab.problems
        assert "Too many open files" in problem
        assert "/" not in problem.replace("\\", "")
        await tab.run()
        assert len(tab.problems) == 1


def grid_of(model: hookviz.Model, layer: str, sample: Sample | None = None) -> bytes:
    path = (sample or samples()[0]).path
    return automatic_grid(hookviz.capture(model, path, layer)[layer]).sprite


# What has come when the line is cut: nothing of the run, or its link and a bit of the page.
@pytest.mark.parametrize(
    "size",
    [100, pytest.param(4_500, marks=pytest.mark.sweep("by day it is cut before anything came"))],
)
def test_a_page_whose_line_was_cut_in_mid_run_comes_back_whole(
    page: Page, served: Served, model: hookviz.Model, size: int
) -> None:
    with line_to(served.server) as line:
        page.goto(f"{line.address}/{SHAPESNET}")
        first = wait_for_grid(page)
        expect(page.get_by_role("button", name="More")).to_be_visible()  # the last to be drawn
        expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)
        line.cut_after(size)
        choose(page, "Layer", LAYERS[2])
        grid = wait_for_grid(page, first)
        assert line.cuts
        expect(page.get_by_role("combobox", name="Layer")).to_have_value(f"5 · {LAYERS[2]}")
        expect(page).to_have_url(re.compile(rf"layer={LAYERS[2]}$"))
        expect(page.locator("[data-stale=true]")).to_have_count(0)
        expect(page.get_by_role("button", name="More")).to_be_visible()
        assert grid_bytes(page) == grid == grid_of(model, LAYERS[2])


def rerun(query: str) -> bytes:
    message = BackMsg()
    message.rerun_script.query_string = query
    return bytes(message.SerializeToString())


async def clicks(visitor: Visitor, count: int) -> None:
    """Somebody else runs the page and explores, and each time gets the tiles."""
    for number in range(count):
        await visitor.run()
        async with exploring(visitor) as explorer:
            await explorer.choose_layer(LAYERS[(number + 1) % 3])
            assert explorer.tiles
    assert visitor.problems == []


def test_a_thousand_reruns_a_second_are_few_runs_and_others_go_on(
    served: Served, model: hookviz.Model
) -> None:
    *others, last = samples()
    expected = grid_of(model, LAYERS[0], last)

    async def flood() -> tuple[int, int, float]:
        link = {"model": "ShapesNet"}
        async with arrive(served.server, link) as flooder, arrive(served.server, link) as other:
            await asyncio.gather(flooder.run(), other.run())
            started, sent, over = 0, 0, False
            line = flooder._socket

            async def read() -> None:
                nonlocal started
                async for data in line:
                    message = ForwardMsg.FromString(data)
                    started += message.WhichOneof("type") == "new_session"
                    flooder._see(message)

            async def write() -> None:
                nonlocal sent
                while not over:
                    for _ in range(20):
                        sent += 1
                        sample = others[sent % len(others)].name
                        await line.send(rerun(f"model=ShapesNet&sample={sample}"))
                    await asyncio.sleep(0.02)

            begun = time.monotonic()
            reading, writing = asyncio.ensure_future(read()), asyncio.ensure_future(write())
            await clicks(other, 8)
            while sent < 1000:
                await asyncio.sleep(0.02)
            over = True
            await writing
            await line.send(rerun(f"model=ShapesNet&sample={last.name}"))
            async with asyncio.timeout(60), exploring(flooder) as explorer:
                while explorer.tiles != expected:  # what is asked for last is seen in the end
                    with suppress(RefusedError):  # about what is shown before
                        await explorer.show()
                    await asyncio.sleep(0.05)
            reading.cancel()
            return sent, started, time.monotonic() - begun

    before = served.counted("held_back")
    sent, started, lasted = in_a_loop_of_its_own(flood())
    assert sent >= 1000
    assert started <= 32 + 10 * lasted  # a burst, and ten a second
    assert started < sent / 4
    assert served.counted("held_back") - before > sent / 2


def deaf(address: str) -> socket.socket:
    """A page's connection that is never read from, with hardly any room on the line."""
    parts = urlsplit(address)
    token = requests.get(f"{address}/_stcore/health", timeout=20).cookies["_streamlit_xsrf"]
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    line.connect((parts.hostname, parts.port))
    line.sendall(
        (
            f"GET /_stcore/stream HTTP/1.1\r\nHost: {parts.netloc}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nOrigin: {address}\r\n"
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\n"
            f"Sec-WebSocket-Protocol: streamlit, {token}\r\n"
            f"Cookie: _streamlit_xsrf={token}\r\n\r\n"
        ).encode()
    )
    return line


def ask(line: socket.socket, data: bytes) -> None:
    assert len(data) < 126
    line.sendall(bytes([0x82, 0x80 | len(data)]) + struct.pack("!I", 0) + data)


def test_visitors_who_read_nothing_are_cut_off_and_others_go_on(served: Served) -> None:
    before, memory = served.counted("cut_off"), served.server.megabytes()
    lines = [deaf(served.server) for _ in range(10)]

    async def other() -> None:
        async with arrive(served.server, {"model": "ShapesNet"}) as visitor:
            await visitor.run()
            deadline = time.monotonic() + 120
            number = 0
            while served.counted("cut_off") - before < len(lines):
                assert time.monotonic() < deadline
                number += 1
                for line in lines:
                    with suppress(OSError):  # it is cut off
                        ask(line, rerun(f"layer=features.{3 + number % 2}.expand3x3"))
                await clicks(visitor, 1)
                await asyncio.sleep(0.2)

    in_a_loop_of_its_own(other())
    assert served.server.megabytes() - memory < 400
    for line in lines:
        line.close()
