"""The load test itself, with two visitors on a real server."""

import asyncio
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from scripts import load
from scripts.servers import Server, serve
from tests.loops import in_a_loop_of_its_own

AT_ONCE = (0.0, 0.0)
ROUND = ["layer", "channel", "cell", "cell"]
ACTIONS = ["first page", "upload", *(load._ROUNDS * ROUND), "lens", "channels"]
ACTIONS += [*(load._ROUNDS * ROUND), "model", *ROUND, "return"]
BROKEN = """
import http.server, sys

class Broken(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Set-Cookie", "_streamlit_xsrf=2|1|2|3")
        self.end_headers()
        print("ERROR something broke here", flush=True)

http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Broken).serve_forever()
"""
"""A server that looks healthy, logs errors, and has no page."""


def visits(server: str, seeds: range) -> list[load.Visit]:
    async def together() -> list[load.Visit]:
        each = (load.visit(server, "ShapesNet", seed, pause=AT_ONCE) for seed in seeds)
        return await asyncio.wait_for(asyncio.gather(*each), 200)

    return in_a_loop_of_its_own(together())


@pytest.mark.sweep("by day in browsers: tests/e2e/test_main_job.py")
def test_two_visitors_are_each_shown_their_own_image_and_no_other(server: Server) -> None:
    before = server.errors()
    first, second = visits(server, range(1, 3))
    for visit in (first, second):
        assert visit.failures == []
        assert [click.action for click in visit.clicks] == ACTIONS
        assert visit.runs == 7  # an upload is two, and no click in the explorer is one
        assert visit.asked > 5 * load._ROUNDS * len(ROUND)
        assert all(load.is_right(click) for click in visit.clicks)
    own = next(click for click in first.clicks if click.action == "layer")
    upload = next(click for click in second.clicks if click.action == "upload")
    assert not load.is_right(replace(own, image=upload.image))
    assert not load.is_right(replace(own, layer="stage3.second.conv"))
    assert not load.is_right(replace(own, png=b""))
    assert server.errors() == before


def test_what_a_server_costs_is_measured_on_the_server_itself(server: Server) -> None:
    before = server.processor()
    visits(server, range(1))
    assert server.processor() - before > 0.1  # pages and answers, many of which draw a picture
    assert 200 < server.megabytes() < 20_000  # torch is in it
    assert "streamlit" in Path(f"/proc/{server.pid()}/cmdline").read_text()


def test_a_server_without_a_page_and_its_log_count_as_failures() -> None:
    with serve(command=[sys.executable, "-c", BROKEN, "PORT"]) as server:
        (visit,) = visits(server, range(1))
        failures = load._failures([visit], server)
    assert len(visit.failures) == 1
    assert failures["log: ERROR something broke here"] >= 1
    assert failures.total() >= 2
