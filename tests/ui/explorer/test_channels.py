"""A click on a layer or a channel runs its part of the page alone, and nothing goes stale."""

import pytest

from scripts.servers import Server
from scripts.visitor import Visitor, arrive
from tests.loops import in_a_loop_of_its_own


@pytest.fixture(scope="module")
def seen(server: Server) -> dict[str, list[str]]:
    """What a tab was sent for each of some clicks, all of them on the grid or beside it."""

    async def look(address: str) -> dict[str, list[str]]:
        async with arrive(address, {"model": "ShapesNet"}) as tab:
            await tab.run()
            layers = [option.partition(" · ")[2] for option in tab.options["Layer"]]
            sent = {"layers": layers, "page": _names(tab)}
            for name, answer in (
                ("layer", tab.choose("Layer", layers[1])),
                ("pick", tab.pick_channel(3, (1, 1))),
                ("upstream", tab.follow_upstream(0)),
            ):
                await answer
                sent |= {name: _names(tab), f"link of {name}": [tab.query]}
            await tab.press("Across images")
            return sent | {"lens": _names(tab), "problems": tab.problems}

    before = server.errors()
    return in_a_loop_of_its_own(look(server)) | {"errors": server.errors()[len(before) :]}


def _names(tab: Visitor) -> list[str]:
    """What was sent since the last look, by kind."""
    names, tab.sent = tab.sent, []
    return names


SIDE = {"hookviz_gallery", "hookviz_navigator"}


@pytest.mark.parametrize("click", ["layer", "pick", "upstream"])
def test_a_click_sends_the_grid_and_nothing_of_the_side(
    seen: dict[str, list[str]], click: str
) -> None:
    assert SIDE | {"hookviz_mosaic"} <= set(seen["page"])
    assert "hookviz_mosaic" in seen[click]
    assert not SIDE & set(seen[click])
    assert len(seen[click]) < len(seen["page"])


def test_a_picked_channel_comes_with_its_map_and_its_sum(seen: dict[str, list[str]]) -> None:
    for click in ("pick", "upstream"):
        assert {"hookviz_map", "hookviz_why"} <= set(seen[click])


def test_the_link_follows(seen: dict[str, list[str]]) -> None:
    assert f"layer={seen['layers'][1]}" in seen["link of layer"][0]
    assert "channel=3" in seen["link of pick"][0]
    assert f"layer={seen['layers'][0]}" in seen["link of upstream"][0]
    assert "channel=0" in seen["link of upstream"][0]


def test_a_lens_takes_the_whole_page(seen: dict[str, list[str]]) -> None:
    assert SIDE | {"hookviz_maps"} <= set(seen["lens"])


def test_nothing_went_wrong(seen: dict[str, list[str]]) -> None:
    assert seen["problems"] == []
    assert seen["errors"] == []
