"""The explorer's questions on the app's own server, with all that Streamlit puts around a route."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

import hookviz
from hookviz.images.samples import samples
from scripts.automatic_grid import automatic_grid
from scripts.explorer_client import RefusedError, exploring
from scripts.servers import serve
from scripts.visitor import arrive
from tests.loops import in_a_loop_of_its_own

LAYER = "stage1.first.conv"


def test_a_page_hands_over_what_is_asked_with_and_the_server_ends_with_its_answers() -> None:
    model = hookviz.load_model("shapesnet")
    grid = automatic_grid(hookviz.capture(model, samples()[0].path, LAYER)[LAYER])

    async def visit() -> int:
        async with arrive(server, {"model": "ShapesNet"}) as tab:
            await tab.run()
            runs = tab.runs
            async with exploring(tab) as explorer:
                await explorer.choose_layer(LAYER)
                assert explorer.tiles == grid.sprite
                await explorer.pick(3, (1, 2))
                assert tab.runs == runs
                made = asyncio.ensure_future(
                    explorer.ask("own_picture", channel=3, seed=0, steps=2048, others=[])
                )
                await asyncio.sleep(1.5)
                assert not made.done()
                os.kill(server.pid(), signal.SIGTERM)
                with pytest.raises(RefusedError) as refused:
                    await made
                assert tab.problems == []
                return refused.value.status

    with serve({"HOOKVIZ_LOG": "json"}) as server:
        pid = server.pid()
        assert in_a_loop_of_its_own(visit()) == 503
        deadline = time.monotonic() + 20
        while _is_there(pid):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert server.errors() == []
        events = [line for line in server.log() if '"event": "answer"' in line]
        assert any('"question": "own_picture"' in line for line in events)
        assert not any('"question": "layers"' in line for line in events)  # that took no turn


def _is_there(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # it may go while it is read
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
