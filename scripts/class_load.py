"""Measure how long it takes until forty screens show what their teacher shows, and its cost.

python -m scripts.class_load            a row for 1, 10 and 40 who follow
python -m scripts.class_load 100        for a hundred
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from hookviz.explorer.view import choices
from scripts.class_client import CLASS_APP, ClassSeat, asked, sit
from scripts.explorer_client import ExplorerClient, exploring
from scripts.servers import ROOT, Server, serve
from scripts.visitor import Visitor, arrive

_SHAPES = "model=ShapesNet"
_SECOND = f"{_SHAPES}&layer=stage2.first.conv"
CONTROLS = (
    f"{_SHAPES}&layer=stage1.first.conv",
    _SECOND,
    f"{_SECOND}&after=ReLU",
    f"{_SECOND}&sort=mean",
    f"{_SECOND}&top=16",
    f"{_SECOND}&scale=channel",
    f"{_SECOND}&colours=cividis",
    f"{_SECOND}&patches=true",
    f"{_SECOND}&channel=5&cell=3,4",
    f"{_SECOND}&channel=9&cell=8,8&origin=Numbers",
)
"""What the teacher moves in the explorer: a click that each who follows is answered."""

_LESSON = f"{_SHAPES}&lesson=from-maps-to-a-class&step=2"
PAGES = (
    f"{_SHAPES}&layer=stage3.first.conv&sample=star",
    "layer=features.3.expand3x3",
    "layer=features.7.expand3x3&sample=coffee",
    "layer=features.12.expand3x3&lens=grad-cam",
    "lens=occlusion",
    f"{_LESSON}",
    f"{_LESSON}&moved=from-maps-to-a-class-2-2+class%3D3",
)
"""Where the teacher goes beside: images, another network, two lenses, a lesson and its control."""

HEAD = (
    "| follow | state heard: median, last | control: median, last | page: median, last "
    "| processor, s a state |\n|---:|---:|---:|---:|---:|"
)


class Screen(NamedTuple):
    """One who follows: the page, the explorer in it, and the seat in the class."""

    tab: Visitor
    explorer: ExplorerClient
    seat: ClassSeat

    async def follow(self, query: str, started: float) -> tuple[float, float]:
        """Return the seconds until a state was heard, and until all of it stood on the screen."""
        wanted = urlencode(sorted(parse_qsl(query)))
        await self.seat.shows(wanted)
        heard = time.perf_counter() - started
        before, words = dict(parse_qsl(self.tab.query)), dict(parse_qsl(wanted))
        code = before["follow"]
        self.tab.query = urlencode({**words, "follow": code})
        if _of_page(before) != _of_page({**words, "follow": code}):  # else the page runs no more
            await self.tab.go_back()
        if not {"lens", "lesson"} & words.keys():
            of_view = {each.word for each in choices().values() if not each.is_page}
            self.explorer.view = {word: text for word, text in words.items() if word in of_view}
            await self.explorer.show()
            assert self.explorer.tiles, "no tiles came"
        return heard, time.perf_counter() - started


def _of_page(link: dict[str, str]) -> dict[str, str]:
    """Return what of a link the page around the explorer shows, and not the explorer itself."""
    if {"lens", "lesson"} & link.keys():
        return link
    of_view = {each.word for each in choices().values() if not each.is_page}
    return {word: text for word, text in link.items() if word not in of_view}


class Times(NamedTuple):
    """Seconds of every screen and state: until it was heard, drawn; the processor's for a state."""

    heard: Sequence[float]
    controls: Sequence[float]
    pages: Sequence[float]
    processor: float


async def _class(server: Server, count: int) -> Times:
    begun = asked(server, "begin")
    code = begun["code"]
    async with AsyncExitStack() as stack:
        come = stack.enter_async_context
        teacher = await come(sit(server, **begun))
        screens = []
        for _ in range(count):
            tab = await come(arrive(server, {"model": "ShapesNet", "follow": code}))
            await tab.run()
            token = tab.facts["hookviz_follower"]["token"]
            explorer = await come(exploring(tab))
            screens.append(Screen(tab, explorer, await come(sit(server, code, token))))
        await teacher.until(followers=count)
        spent = server.processor()
        heard, controls = await _go_through(CONTROLS, teacher, screens)
        also_heard, pages = await _go_through(PAGES, teacher, screens)
        problems = [text for screen in screens for text in screen.tab.problems]
        assert not problems, problems[:3]
        spent = (server.processor() - spent) / (len(CONTROLS) + len(PAGES))
    asked(server, "end", code=code)
    return Times([*heard, *also_heard], controls, pages, spent)


async def _go_through(
    states: Sequence[str], teacher: ClassSeat, screens: Sequence[Screen]
) -> tuple[list[float], list[float]]:
    heard, drawn = [], []
    for query in states:
        started = time.perf_counter()
        await teacher.say(state=query)
        found = await asyncio.gather(*(screen.follow(query, started) for screen in screens))
        heard += [first for first, _ in found]
        drawn += [second for _, second in found]
    return heard, drawn


def measure(count: int) -> str:
    """Measure one row of the table, for a class on a server of its own."""
    with serve({"PYTHONPATH": str(ROOT)}, CLASS_APP) as server:
        asyncio.run(_class(server, 1))  # whose networks are loaded then; not counted
        found = asyncio.run(_class(server, count))
        assert server.errors() == []
    times = (f"{statistics.median(each):.2f}, {max(each):.2f} s" for each in found[:3])
    return f"| {count} | {' | '.join(times)} | {found.processor:.1f} |"


def main() -> None:
    """Print a row for each count."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("followers", nargs="*", type=int, default=[1, 10, 40])
    counts = parser.parse_args().followers
    if max(counts) > 200:
        parser.error("at most 200 follow a class")
    print(HEAD)
    for count in counts:
        print(measure(count), flush=True)


if __name__ == "__main__":
    main()
