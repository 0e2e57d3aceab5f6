"""Several servers behind the real Caddy: a server, the proxy, and all of them end under load.

The tests share one group of processes, and the last of them ends it.
"""

import asyncio
import hmac
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
from playwright.sync_api import Browser, Page, expect
from websockets.exceptions import ConnectionClosed

from scripts.browsing import wait_for_grid
from scripts.children import child
from scripts.explorer_client import ExplorerClient, RefusedError, exploring
from scripts.servers import ROOT, free_port, written
from scripts.visitor import arrive
from tests.container.test_running import until_healthy
from tests.e2e.probing import until
from tests.e2e.screen import at_rest, choose, new_context
from tests.e2e.test_classroom import begin
from tests.loops import in_a_loop_of_its_own
from tests.pictures import encoded, picture

pytestmark = [
    pytest.mark.skipif(not shutil.which("caddy"), reason="no Caddy here"),
    pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc"),
]

MINE = {"name": "mine.png", "mimeType": "image/png", "buffer": encoded(picture(3))}
LAYERS = ("stage2.first.conv", "stage3.second.conv")
SHOWN = [re.compile(rf"· {re.escape(layer)}$") for layer in LAYERS]
COPY = "hookviz_copy"


@dataclass
class Group:
    """One ``hookviz run --processes 2``, whose process is behind a guard, and what it says."""

    address: str
    guard: "subprocess.Popen[str]"
    output: IO[str]

    def parent(self) -> int:
        return _children(self.guard.pid)[0]

    def servers(self) -> dict[str, int]:
        """The servers' processes by the cookie that leads to each: the HMAC of its address."""
        pids = {}
        for pid in _children(self.parent()):
            port = re.search(r"--server\.port\0(\d+)", _proc(pid, "cmdline"))
            if port:
                address = f"127.0.0.1:{port[1]}".encode()
                pids[hmac.digest(b"", address, "sha256").hex()] = pid
        return pids

    def proxy(self) -> int:
        """The proxy's process, 0 while there is none."""
        pids = (pid for pid in _children(self.parent()) if "Caddyfile" in _proc(pid, "cmdline"))
        return next(pids, 0)

    def said(self) -> str:
        return written(self.output)


def _proc(pid: int, file: str) -> str:
    try:
        return Path(f"/proc/{pid}/{file}").read_text()
    except OSError:  # it is gone
        return ""


def _children(pid: int) -> list[int]:
    return [int(each) for each in _proc(pid, f"task/{pid}/children").split()]


@pytest.fixture(scope="module")
def group() -> Iterator[Group]:
    port = free_port()
    command = [sys.executable, "-m", "hookviz", "run", "--processes", "2", "--port", str(port)]
    with (
        tempfile.TemporaryFile("w+", errors="replace") as output,
        child(
            [*command, "--address", "127.0.0.1"],
            cwd=ROOT,
            env={**os.environ, "HOOKVIZ_LOG": "json"},
            stdout=output,
            stderr=subprocess.STDOUT,
        ) as guard,
    ):
        address = f"http://127.0.0.1:{port}"
        group = Group(address, guard, output)
        until_healthy(f"{address}/_stcore/health")
        for server in group.servers().values():  # the proxy is content with one of them
            own = re.search(r"--server\.port\0(\d+)", _proc(server, "cmdline"))
            assert own
            until_healthy(f"http://127.0.0.1:{own[1]}/_stcore/health")
        yield group


@contextmanager
def others(group: Group, copy: str) -> Iterator[list[str]]:
    """Somebody at the server of that cookie clicks and uploads all the time; what they saw."""
    seen: list[str] = []
    over = threading.Event()

    async def visit() -> None:
        while True:
            async with arrive(group.address, {"model": "ShapesNet"}) as visitor:
                if visitor.cookies[COPY] != copy:
                    continue
                await visitor.run()
                while not over.is_set():
                    async with exploring(visitor) as explorer:
                        for layer in LAYERS:
                            await explorer.choose_layer(layer)
                            seen.append("" if explorer.tiles else "no tiles")
                            await asyncio.sleep(0.25)  # more questions would be refused
                    await visitor.upload(MINE["buffer"])  # type: ignore[arg-type]
                seen.extend(visitor.problems)
                return

    thread = threading.Thread(target=asyncio.run, args=[visit()])
    thread.start()
    try:
        until(lambda: len(seen) > 2)
        yield seen
    finally:
        over.set()
        thread.join()


def cookie_of(page: Page) -> str:
    return next(each["value"] for each in page.context.cookies() if each["name"] == COPY)


def open_with_upload(page: Page, group: Group) -> bytes:
    """A page on an uploaded image and a layer of one's own choice, and its grid."""
    page.goto(f"{group.address}/?model=ShapesNet&image=Upload")
    uploader = page.get_by_test_id("stFileUploader").locator("input[type=file]")
    uploader.set_input_files(MINE)  # type: ignore[arg-type]
    first = wait_for_grid(page)
    choose(page, "Layer", LAYERS[0])
    return wait_for_grid(page, first)


@pytest.mark.rest
def test_one_secret_signs_the_cookies_of_all_and_is_not_on_a_command_line(group: Group) -> None:
    secrets = set()
    for pid in group.servers().values():
        variables = dict(each.partition("=")[::2] for each in _proc(pid, "environ").split("\0"))
        secrets.add(variables["STREAMLIT_SERVER_COOKIE_SECRET"])
        assert variables["HOOKVIZ_PROCESSES"] == "2"
        assert not secrets & set(_proc(pid, "cmdline").split("\0"))
    (secret,) = secrets
    assert len(secret) >= 64


@pytest.mark.sweep("by day with one server: tests/e2e/test_classroom.py")
def test_a_class_and_its_short_link_lead_to_their_server(
    page: Page, browser: Browser, group: Group
) -> None:
    code = begin(page, group.address)
    here = cookie_of(page)
    (elsewhere,) = group.servers().keys() - {here}
    typed, short = (new_context(browser) for _ in range(2))
    for context in (typed, short):  # two pupils whose sessions are at the other server
        context.add_cookies([{"name": COPY, "value": elsewhere, "url": group.address}])
    pupil = typed.new_page()
    pupil.goto(f"{group.address}/?model=ShapesNet")
    wait_for_grid(pupil)
    pupil.get_by_role("button", name="Classroom", exact=True).click()
    pupil.get_by_label("The code of your class").fill(code.lower())
    pupil.get_by_role("button", name="Follow my teacher").click()
    expect(page.get_by_text("1 screen follows")).to_be_visible()
    assert cookie_of(pupil) == here

    choose(page, "Layer", LAYERS[0])
    pupil.wait_for_url(f"**layer={LAYERS[0]}**")
    page.get_by_role("button", name="Present this view (F)").click()
    page.get_by_role("toolbar", name="Presenting").wait_for()
    page.get_by_role("button", name="Code", exact=True).click()
    page.get_by_role("button", name="End the class").click()
    page.wait_for_url(lambda url: "class=" not in url)
    expect(page.get_by_test_id("stPopoverBody")).to_have_count(0)  # whose keys they were
    at_rest(page)
    page.keyboard.press("q")
    link = page.get_by_role("dialog").get_by_text("/hookviz/go/").inner_text()
    guest = short.new_page()
    guest.goto(link)
    expect(guest.get_by_role("combobox", name="Layer")).to_have_value(SHOWN[0])
    assert cookie_of(guest) == elsewhere  # it moves nobody
    for context in (typed, short):
        context.close()


@pytest.mark.by_day
def test_visitors_of_a_killed_server_go_on_at_another_and_nobody_else_notices(
    page: Page, group: Group
) -> None:
    first = open_with_upload(page, group)
    before = cookie_of(page)
    servers = group.servers()
    (other,) = servers.keys() - {before}
    with others(group, other) as seen:
        os.kill(servers[before], signal.SIGKILL)
        choose(page, "Layer", LAYERS[1])
        expect(page.get_by_text("Upload it again in the sidebar")).to_be_visible()
        assert cookie_of(page) == other
        expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)  # the page is at rest
        uploader = page.get_by_test_id("stFileUploader").locator("input[type=file]")
        uploader.set_input_files(MINE)  # type: ignore[arg-type]
        grid = wait_for_grid(page, first)  # of what the link says
        expect(page.get_by_role("combobox", name="Layer")).to_have_value(SHOWN[1])
        choose(page, "Layer", LAYERS[0])
        wait_for_grid(page, grid)
        expect(page.get_by_role("combobox", name="Layer")).to_have_value(SHOWN[0])
        done = len(seen)
        until(lambda: len(seen) > done + 2)
    assert set(seen) == {""}
    assert f"(process {servers[before]}) was ended by SIGKILL and is started again" in group.said()
    until(lambda: len(group.servers()) == 2)
    assert group.servers().keys() == servers.keys()  # where their cookies lead


@pytest.mark.sweep("by day a server is: the test above")
def test_a_proxy_that_is_killed_costs_nobody_their_session(page: Page, group: Group) -> None:
    grid = open_with_upload(page, group)
    at, proxy = cookie_of(page), group.proxy()
    with page.expect_websocket(lambda socket: "/_stcore/stream" in socket.url):
        os.kill(proxy, signal.SIGKILL)
    choose(page, "Layer", LAYERS[1])
    wait_for_grid(page, grid)
    expect(page.get_by_role("combobox", name="Layer")).to_have_value(SHOWN[1])
    assert cookie_of(page) == at
    assert group.proxy() not in (0, proxy)


def test_sigterm_ends_all_while_forty_people_are_there(group: Group) -> None:
    parent = group.parent()

    async def forty() -> int:
        async with AsyncExitStack() as tabs:
            arrivals = [arrive(group.address, {"model": "ShapesNet"}) for _ in range(40)]
            visitors = [await tabs.enter_async_context(each) for each in arrivals]
            await asyncio.gather(*(visitor.run() for visitor in visitors))
            explorers = [ExplorerClient(visitor) for visitor in visitors]
            runs = [
                asyncio.ensure_future(run)
                for explorer, visitor in zip(explorers, visitors, strict=True)
                for run in (visitor.run(), explorer.choose_layer(LAYERS[0]))
            ]
            await asyncio.sleep(0.1)
            os.kill(parent, signal.SIGTERM)
            status = await asyncio.to_thread(group.guard.wait, 10)
            for run in runs:
                with suppress(ConnectionClosed, OSError, EOFError, RefusedError):
                    await run
            for explorer in explorers:
                explorer.close()
            return status

    assert in_a_loop_of_its_own(forty()) == 0
    said = group.said()
    assert "did not end" not in said
    assert "Traceback" not in said
