"""Load one server with a class of people who each click with an image of their own.

    python -m scripts.load 1 10 40 100
    python -m scripts.load --url http://127.0.0.1:8501 40
    python -m scripts.load --visits 1000
    python -m scripts.load --bear
    python -m scripts.load --model ShapesNet --pictures 5 --lens maximize 40

Each visitor speaks the browser's own protocol to a real server: opens the page, uploads an image
that nobody else has, picks layers and channels, goes through a lens, changes the model, leaves and
comes back, with pauses between clicks as a person makes them. Every grid is compared with what the
library draws for that image. A failure counts at whatever moment it comes: an error on the page, a
grid that is missing or wrong, a connection that closes, an error in the server's log. With
``--pictures`` some of them keep a long lens running and the others explore beside them.

Over 300 lines: one class of visitors, and what is told of it in one table.
"""

import argparse
import asyncio
import io
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from urllib.parse import parse_qsl, urlencode

import numpy as np
import requests
from PIL import Image
from websockets.exceptions import WebSocketException

import hookviz
from hookviz.images.samples import samples
from hookviz.lenses import kernels
from hookviz.lenses.contract.running import find_lens
from hookviz.types import Model
from scripts.automatic_grid import automatic_grid
from scripts.explorer_client import ExplorerClient, RefusedError
from scripts.makers import Making, keep_making
from scripts.servers import Server, serve
from scripts.visitor import Visitor, arrive

PAUSE = (1.0, 5.0)
"""Seconds between two clicks of one person, evenly spread."""

LIMIT = 2.0
"""Seconds within which 95 of 100 clicks are answered on a server that bears its load."""

_MODELS = {"ShapesNet": "shapesnet", "ResNet-18": "resnet18 random"}
_OTHER = "SqueezeNet (in the box)"
_ALIKE = 0.995  # share of pixels: another number of threads may round a value the other way
_HEAD = (
    "| model | sessions | clicks | failures | p50 s | p95 s | asking p50 | p95 | running p50 | p95 "
    "| clicks/s | ms a click | MB/session | MB left behind |\n|---" + "|---:" * 13 + "|"
)
_TROUBLES = (
    *(OSError, LookupError, EOFError, RefusedError),
    *(requests.RequestException, WebSocketException),
)
_ROUNDS = 4  # layers that are looked at one after the other
_LEFT = 130.0  # seconds: Streamlit keeps the session of a lost connection for two minutes


@dataclass(frozen=True, slots=True)
class Click:
    """One answer of the page to a click.

    Attributes:
        action: what was done.
        seconds: from the click to the end of the run, and of all that the explorer asks for it.
        model: name of the model on the screen, and after a space its weights if they are others
            than its own.
        layer: the layer on the screen.
        image: the file of the image on the screen.
        png: the picture of the tiles, where the click should show one; None where it should not.
        is_run: whether it ran the page, and did not only ask.
    """

    action: str
    seconds: float
    model: str
    layer: str
    image: bytes
    png: bytes | None
    is_run: bool


@dataclass
class Visit:
    """One person's visit: clicks that were answered, failures, runs of the page, and questions."""

    clicks: list[Click] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    runs: int = 0
    asked: int = 0


class _Person:
    """One person at a tab, whose clicks and their answers are recorded."""

    def __init__(self, visit: Visit, tab: Visitor, model: str, image: bytes) -> None:
        self._visit, self._tab = visit, tab
        self.model, self.layer, self.image = model, "", image
        self.explorer = ExplorerClient(tab)

    async def run(self, action: str, answer: Awaitable[None], *, explores: bool = True) -> None:
        """Wait for a run of the page, and for the explorer that is mounted after it, if it is."""
        tab, visit = self._tab, self._visit
        known, before = len(tab.problems), tab.runs
        old = self.explorer
        started = time.perf_counter()
        try:
            await answer
            if explores:
                if action != "upload":  # after which the client is the same
                    old.close()
                    self.explorer = ExplorerClient(tab)
                    self.explorer.view, self.explorer.asked = old.view, old.asked
                await self.explorer.show()
        finally:
            visit.runs += tab.runs - before
            visit.failures += [f"{action}: {problem}" for problem in tab.problems[known:]]
        self._record(action, started, is_run=True, shows_tiles=explores)

    async def choose_layer(self, layer: str) -> None:
        """Choose a layer, and wait for all that the client asks."""
        self.layer = layer
        started = time.perf_counter()
        await self.explorer.choose_layer(layer)
        self._record("layer", started, is_run=False, shows_tiles=True)

    async def pick(self, action: str, channel: int, cell: tuple[int, int]) -> None:
        """Click a tile, or another cell of its map."""
        started = time.perf_counter()
        await self.explorer.pick(channel, cell)
        self._record(action, started, is_run=False, shows_tiles=False)

    def _record(self, action: str, started: float, *, is_run: bool, shows_tiles: bool) -> None:
        seconds = time.perf_counter() - started
        # what is chosen stands in the address, with which the next run comes
        self._tab.query = urlencode(dict(parse_qsl(self._tab.query)) | self.explorer.view)
        png = self.explorer.tiles if shows_tiles else None
        if shows_tiles and not png:
            self._visit.failures.append(f"{action}: no tiles came")
        self._visit.clicks.append(
            Click(action, seconds, self.model, self.layer, self.image, png, is_run)
        )


async def visit(
    address: str, title: str, seed: int, *, late: float = 0.0, pause: tuple[float, float] = PAUSE
) -> Visit:
    """Visit with the model of that title, and do everything that people do."""
    choice = random.Random(seed)  # noqa: S311 - a person's whims
    seen = Visit()
    await asyncio.sleep(late)

    async def wait() -> None:
        await asyncio.sleep(choice.uniform(*pause))

    async def explore(layers: Sequence[str], rounds: int) -> None:
        """Look at a layer, a channel of it and two more cells of its map, again and again."""
        for _ in range(rounds):
            await wait()
            await person.choose_layer(choice.choice(layers))
            channel = choice.randrange(8)
            for action in ("channel", "cell", "cell"):
                await wait()
                await person.pick(action, channel, (choice.randrange(4), choice.randrange(4)))

    query = _query(title)
    layers = _layers(_MODELS[title])
    first = samples()[0].path.read_bytes()
    own = picture(seed)
    try:
        async with _person(seen, address, query, title, first) as (tab, person):
            await person.run("first page", tab.run())
            await wait()
            person.image = own
            await person.run("upload", tab.upload(own))
            await explore(layers, _ROUNDS)
            await wait()
            await person.run("lens", tab.go_to(lens=kernels.LENS.slug), explores=False)
            await wait()
            await person.run("channels", tab.go_to(lens=""))
            await explore(layers, _ROUNDS)
            weights = _MODELS[title].partition(" ")[2]  # which stay as they were chosen
            person.model, person.layer = f"squeezenet {weights}", ""
            del person.explorer.view["layer"]
            await wait()
            await person.run("model", tab.choose("Model", _OTHER))
            await explore(_layers("squeezenet"), 1)
        await wait()
        back = choice.choice(layers)
        async with _person(seen, address, {**query, "layer": back}, title, first) as (tab, person):
            person.layer = person.explorer.view["layer"] = back
            await person.run("return", tab.run())
    except _TROUBLES as error:
        seen.failures.append(f"{type(error).__name__}: {error}"[:200])
    return seen


@asynccontextmanager
async def _person(
    seen: Visit, address: str, query: dict[str, str], title: str, image: bytes
) -> AsyncIterator[tuple[Visitor, _Person]]:
    async with arrive(address, query) as tab:
        person = _Person(seen, tab, _MODELS[title], image)
        try:
            yield tab, person
        finally:
            seen.asked += person.explorer.asked
            person.explorer.close()


def picture(number: int) -> bytes:
    """Make an image that belongs to one visitor alone."""
    rng = np.random.default_rng(number)
    coarse = Image.fromarray(rng.integers(0, 256, (6, 8, 3), dtype=np.uint8))
    file = io.BytesIO()
    coarse.resize((240, 180), Image.Resampling.BICUBIC).save(file, "PNG")
    return file.getvalue()


@cache
def _model(name: str) -> Model:
    name, _, weights = name.partition(" ")
    return hookviz.load_model(name, weights or "pretrained")


@cache
def _layers(name: str) -> tuple[str, ...]:
    return tuple(layer.name for layer in hookviz.list_layers(_model(name)))


def is_right(click: Click) -> bool:
    """Return whether the grid is what the library draws of that layer for that image."""
    if click.png is None:
        return True
    if not click.png:
        return False
    layer = click.layer or _layers(click.model)[0]
    expected = _expected(click.model, layer, click.image)
    pixels = _pixels(click.png)
    return pixels.shape == expected.shape and bool((pixels == expected).mean() > _ALIKE)


@cache
def _expected(
    model: str, layer: str, image: bytes
) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return _pixels(automatic_grid(hookviz.capture(_model(model), image, layer)[layer]).sprite)


def _pixels(png: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    with Image.open(io.BytesIO(png)) as opened:
        return np.asarray(opened)


@dataclass(frozen=True, slots=True)
class Pictures:
    """People of a class who make pictures meanwhile: how many, and with which lens."""

    makers: int = 0
    lens: str = ""


async def _class(
    address: str, title: str, count: int, pictures: Pictures = Pictures()
) -> tuple[list[Visit], Making]:
    """Let people come within five seconds; return their visits, and those of who make pictures."""
    made = Making()
    query = _query(title) | {"lens": pictures.lens}
    async with asyncio.TaskGroup() as group:
        makers = [
            group.create_task(keep_making(address, query, seed, made))
            for seed in range(pictures.makers)
        ]
        visits = await asyncio.gather(
            *(visit(address, title, seed, late=seed * PAUSE[1] / count) for seed in range(count))
        )
        made.over.set()
        for maker in makers:
            maker.cancel()
    return visits, made


def _query(title: str) -> dict[str, str]:
    """Return the link to a model, with weights that need no download."""
    return {"model": title} | ({} if title == "ShapesNet" else {"weights": "random"})


def _failures(visits: Sequence[Visit], server: Server | None) -> Counter[str]:
    """Count everything that went wrong, by what it was, from the page and from the server's log."""
    failures = Counter(text for seen in visits for text in seen.failures)
    for click in (click for seen in visits for click in seen.clicks):
        if click.png and not is_right(click):
            failures[f"{click.action}: the grid of another image, model or layer"] += 1
    if server is not None:
        failures.update(f"log: {line}" for line in server.errors())
    return failures


def _until_at_rest(server: Server) -> None:
    """Wait until a server has done what it does once after its start, such as listing timm."""
    deadline, before = time.monotonic() + 30, server.processor()
    time.sleep(6)
    while time.monotonic() < deadline:
        time.sleep(1)
        now = server.processor()
        if now - before < 0.1:
            return
        before = now


def print_actions(clicks: Sequence[Click]) -> None:
    """Print how long each kind of click took, to the standard error."""
    for action in dict.fromkeys(click.action for click in clicks):
        seconds = [click.seconds for click in clicks if click.action == action]
        print(
            f"  {action}: {len(seconds)}, p50 {statistics.median(seconds):.3f} s, "
            f"p95 {_late(seconds):.3f} s",
            file=sys.stderr,
        )


def _late(seconds: Sequence[float]) -> float:
    """Return the 95th percentile."""
    return sorted(seconds)[max(0, round(0.95 * len(seconds)) - 1)]


def measure(
    title: str, count: int, url: str = "", *, leave: bool = False, pictures: Pictures = Pictures()
) -> tuple[str, bool]:
    """Measure one row of the table for a class on its own server; return whether it coped.

    Args:
        title: the model.
        count: how many people explore.
        url: a server that runs already; nothing is known of its processor time and memory.
        leave: wait until the sessions are gone, to tell what memory stays.
        pictures: who makes pictures beside them; their runs end the row.
    """
    with nullcontext(None) if url else serve() as server:
        address = server or url
        asyncio.run(_wave(address, title, range(1)))  # a first visitor, and not counted
        if server:
            _until_at_rest(server)
        memory, processor = (server.megabytes(), server.processor()) if server else (0.0, 0.0)
        started = time.perf_counter()
        visits, made = asyncio.run(_class(address, title, count, pictures))
        lasted = time.perf_counter() - started
        clicks = [click for seen in visits for click in seen.clicks]
        own = ["", "", ""]
        if server:
            own[0] = f"{(server.processor() - processor) / max(1, len(clicks)) * 1000:.1f}"
            own[1] = f"{(server.megabytes() - memory) / count:.1f}"
            if leave:
                time.sleep(_LEFT)
                asyncio.run(_wave(address, title, range(1)))  # whose coming lets go of the others
                own[2] = f"{server.megabytes() - memory:.0f}"
        failures = _failures(visits, server) + Counter(made.failures)
    for text, number in failures.most_common(5):
        print(f"  {number} × {text}", file=sys.stderr)
    print_actions(clicks)
    kinds = [
        [click.seconds for click in clicks if click.is_run in of] or [float("nan")]
        for of in ((True, False), (False,), (True,))
    ]
    seconds = kinds[0]
    row = (
        f"| {title} | {count} | {len(clicks)} | {failures.total()} "
        + "".join(f"| {statistics.median(each):.3f} | {_late(each):.3f} " for each in kinds)
        + f"| {len(clicks) / lasted:.1f} | {' | '.join(own)} |"
    )
    if pictures.makers:
        row += f" {pictures.makers} | {made.finished} |"
    return row, _late(seconds) <= LIMIT and not failures


async def _wave(address: str, title: str, seeds: range) -> list[Visit]:
    quick = (0.0, 0.2)
    return await asyncio.gather(*(visit(address, title, seed, pause=quick) for seed in seeds))


def many_visits(title: str, count: int, together: int = 10) -> None:
    """Print how much memory a server has after each tenth of the visits, made without pauses."""
    print("| visits | failures | ms a click | MB |\n|---:|---:|---:|---:|")
    with serve() as server:
        clicks, before, visits = 0, server.processor(), list[Visit]()
        for start in range(0, count, together):
            wave = asyncio.run(_wave(server, title, range(start, start + together)))
            clicks += sum(len(seen.clicks) for seen in wave)
            visits += [Visit(failures=seen.failures) for seen in wave]
            if (start + together) % max(together, count // 10) < together:
                spent = (server.processor() - before) / max(1, clicks) * 1000
                failures = _failures(visits, server).total()
                print(
                    f"| {start + together} | {failures} | {spent:.0f} | {server.megabytes():.0f} |",
                    flush=True,
                )


def bear(title: str) -> None:
    """Print rows with more and more people until 95 of 100 clicks take longer than `LIMIT`."""
    print(_HEAD)
    for count in range(40, 301, 20):
        row, borne = measure(title, count)
        print(row, flush=True)
        if not borne:
            break


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sessions", nargs="*", type=int, default=[1, 10, 40, 100])
    parser.add_argument("--model", choices=_MODELS, help="one model instead of both")
    parser.add_argument("--url", default="", help="a server that runs already, your own")
    parser.add_argument("--leave", action="store_true", help="also: what memory stays behind")
    parser.add_argument("--visits", type=int, metavar="N", help="memory over so many visits")
    parser.add_argument("--bear", action="store_true", help="how many people one process bears")
    parser.add_argument("--pictures", type=int, default=0, metavar="N", help="N more make pictures")
    parser.add_argument("--lens", default="maximize", help="with which lens they do, by its slug")
    asked = parser.parse_args()
    if max(asked.sessions) > 400:
        parser.error("at most 400 sessions: this is for a machine of one's own")
    titles = [asked.model] if asked.model else list(_MODELS)
    if asked.visits:
        many_visits(titles[0], asked.visits)
        return
    if asked.bear:
        bear(titles[0])
        return
    pictures = Pictures(asked.pictures, find_lens(asked.lens).slug if asked.pictures else "")
    names, line = _HEAD.splitlines()
    print(names + (" makers | finished |" if asked.pictures else ""))
    print(line + ("---:|---:|" if asked.pictures else ""))
    for title in titles:
        for count in asked.sessions:
            row, _ = measure(title, count, asked.url, leave=asked.leave, pictures=pictures)
            print(row, flush=True)


if __name__ == "__main__":
    main()
