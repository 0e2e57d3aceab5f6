"""A click on a channel runs the grid and the picked channel alone, and nothing goes stale by it."""

import pytest

from scripts.servers import serve
from scripts.visitor import Visitor, arrive
from tests.conftest import in_a_loop_of_its_own


@pytest.fixture(scope="module")
def seen() -> dict[str, list[str]]:
    """What a tab was sent for a pick, and for a way upstream that leads to another layer."""

    async def look(address: str) -> dict[str, list[str]]:
        async with arrive(address, {"model": "ShapesNet"}) as tab:
            await tab.run()
            layers = [option.partition(" · ")[2] for option in tab.options["Layer"]]
            await tab.choose("Layer", layers[1])
            sent = {"page": _names(tab)}
            await tab.pick_channel(3, (1, 1))
            sent["pick"] = _names(tab)
            await tab.follow_upstream(0)
            sent["upstream"] = _names(tab)
            sent["layers"], sent["problems"] = layers, tab.problems
            sent["link"] = [tab.query]
            return sent

    with serve() as server:
        return in_a_loop_of_its_own(look(server)) | {"errors": server.errors()}


def _names(tab: Visitor) -> list[str]:
    """What was sent since the last look, by kind."""
    names, tab.sent = tab.sent, []
    return names


def test_a_pick_sends_the_grid_and_the_channel_and_nothing_of_the_side(
    seen: dict[str, list[str]],
) -> None:
    assert {"hookviz_gallery", "hookviz_navigator", "hookviz_mosaic"} <= set(seen["page"])
    assert {"hookviz_mosaic", "hookviz_map", "hookviz_why"} <= set(seen["pick"])
    assert not {"hookviz_gallery", "hookviz_navigator", "file_uploader"} & set(seen["pick"])
    assert len(seen["pick"]) < len(seen["page"])


def test_the_way_upstream_leads_to_another_layer_and_takes_the_whole_page(
    seen: dict[str, list[str]],
) -> None:
    assert f"layer={seen['layers'][0]}" in seen["link"][0] or "layer=" not in seen["link"][0]
    assert "channel=0" in seen["link"][0]
    assert {"hookviz_gallery", "hookviz_navigator", "hookviz_mosaic"} <= set(seen["upstream"])


def test_nothing_went_wrong(seen: dict[str, list[str]]) -> None:
    assert seen["problems"] == []
    assert seen["errors"] == []
