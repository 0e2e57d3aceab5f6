"""The load test itself, with two visitors on a real server."""

import asyncio
from dataclasses import replace

import hookviz
from scripts import load
from scripts.servers import serve
from tests.conftest import in_a_loop_of_its_own


def test_two_visitors_are_each_shown_their_own_image_and_no_other() -> None:
    model = hookviz.load_model("shapesnet")
    layers = ["stem.first.conv", "stage1.second.conv"]

    async def both(address: str) -> list[load.Outcome]:
        visits = (load.visit(address, "ShapesNet", layers, load.picture(n), 0) for n in (1, 2))
        return await asyncio.wait_for(asyncio.gather(*visits), 100)

    with serve() as address:
        outcomes = in_a_loop_of_its_own(both(address))
    for outcome in outcomes:
        assert outcome.errors == []
        assert [shown.layer for shown in outcome.grids] == layers
        assert all(load.is_own(model, outcome, shown) for shown in outcome.grids)
    first, second = outcomes
    assert not load.is_own(model, first, second.grids[0])
    assert not load.is_own(model, first, replace(first.grids[0], layer="stage1.second.conv"))
    assert not load.is_own(model, first, replace(first.grids[0], png=b""))
