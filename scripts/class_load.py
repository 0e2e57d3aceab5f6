"""Measure how long it takes until forty screens show what their teacher shows, and its cost.

python -m scripts.class_load            a row for 1, 10 and 40 who follow
python -m scripts.class_load 100        for a hundred
"""

import argparse
import asyncio
import statistics
import time
from contextlib import AsyncExitStack
from urllib.parse import parse_qsl, urlencode

from scripts.class_client import CLASS_APP, ClassSeat, asked, sit
from scripts.servers import ROOT, Server, serve
from scripts.visitor import Visitor, arrive

STATES = (
    "model=ShapesNet&layer=stage1.first.conv",
    "model=ShapesNet&layer=stage2.first.conv&channel=5",
    "model=ShapesNet&layer=stage2.first.conv&channel=9",
    "model=ShapesNet&layer=stage3.first.conv&sample=star",
    "layer=features.3.expand3x3",
    "layer=features.7.expand3x3&sample=coffee",
    "layer=features.12.expand3x3&lens=grad-cam",
    "lens=occlusion",
)
"""What the teacher goes through: layers, channels, an image, another network, two lenses."""

HEAD = (
    "| follow | state heard: median, last | page drawn: median, last | processor, s a state |\n"
    "|---:|---:|---:|---:|"
)


async def _follow(tab: Visitor, seat: ClassSeat, query: str, started: float) -> tuple[float, float]:
    """Return the seconds until a state was heard, and until the page showed it."""
    wanted = urlencode(sorted(parse_qsl(query)))
    await seat.shows(wanted)
    heard = time.perf_counter() - started
    tab.forget_grid()
    tab.query = urlencode([*parse_qsl(wanted), *(("follow", v) for v in _code(tab))])
    await tab.go_back()
    assert tab.grid or "lens" in wanted, "no grid came"
    return heard, time.perf_counter() - started


def _code(tab: Visitor) -> list[str]:
    return [value for name, value in parse_qsl(tab.query) if name == "follow"]


async def _class(server: Server, count: int) -> tuple[list[float], list[float], float]:
    begun = asked(server, "begin")
    code = begun["code"]
    async with AsyncExitStack() as stack:
        come = stack.enter_async_context
        teacher = await come(sit(server, **begun))
        tabs, seats = [], []
        for _ in range(count):
            tab = await come(arrive(server, {"model": "ShapesNet", "follow": code}))
            await tab.run()
            tabs.append(tab)
            token = tab.facts["hookviz_follower"]["token"]
            seats.append(await come(sit(server, code, token)))
        await teacher.until(followers=count)
        heard, drawn, spent = [], [], server.processor()
        for query in STATES:
            started = time.perf_counter()
            await teacher.say(state=query)
            found = await asyncio.gather(
                *(_follow(*each, query, started) for each in zip(tabs, seats, strict=True))
            )
            heard += [first for first, _ in found]
            drawn += [second for _, second in found]
        problems = [text for tab in tabs for text in tab.problems]
        assert not problems, problems[:3]
        spent = (server.processor() - spent) / len(STATES)
    asked(server, "end", code=code)
    return heard, drawn, spent


def measure(count: int) -> str:
    """Measure one row of the table, for a class on a server of its own."""
    with serve({"PYTHONPATH": str(ROOT)}, CLASS_APP) as server:
        asyncio.run(_class(server, 1))  # whose networks are loaded then; not counted
        heard, drawn, spent = asyncio.run(_class(server, count))
        assert server.errors() == []
    times = (f"{statistics.median(each):.2f}, {max(each):.2f} s" for each in (heard, drawn))
    return f"| {count} | {' | '.join(times)} | {spent:.1f} |"


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
