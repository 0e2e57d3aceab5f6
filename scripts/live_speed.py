"""Measure how quickly a camera's frames are drawn, where the time goes, and its cost to others.

    python -m scripts.live_speed
    python -m scripts.live_speed --frames 10000
    python -m scripts.live_speed --streams 10 --explorers 20

Frames go to a real server by the page's own protocol, a JPEG of the size that the page makes. For
frames a second one is always ahead; the delay is that of a frame that is sent when the one before
has come back. A browser's own part, reading the camera and painting, is not in it.
"""

import argparse
import asyncio
import io
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from PIL import Image

import hookviz
from hookviz.images.samples import samples
from scripts.live_client import LIVE_APP, Answer, LiveStream, live
from scripts.load import PAUSE, visit
from scripts.servers import ROOT, Server, serve
from scripts.visitor import arrive

_PARTS = ("wait", "decode", "shrink", "pass", "grid", "encode")
_SECONDS = 8.0  # for each row
_STEADY = 200  # frames after which memory is looked at first


@dataclass(frozen=True, slots=True)
class Network:
    """One row: a network, its weights, and how many frames a second it should have."""

    name: str
    weights: str
    aim: float


NETWORKS = (
    Network("shapesnet", "pretrained", 25),
    Network("squeezenet", "pretrained", 12),
    Network("resnet18", "random", 5),
)


def pictures(side: int, count: int = 8) -> list[bytes]:
    """Make JPEGs of a camera's shape, the shorter side `side`, each of another part of a photo."""
    with Image.open(samples()[0].path) as opened:
        photo = opened.convert("RGB").resize((side * 2, side * 2))
    made = []
    for number in range(count):
        file = io.BytesIO()
        left = number * side // 16
        photo.crop((left, 0, left + side * 4 // 3, side)).save(file, "JPEG", quality=80)
        made.append(file.getvalue())
    return made


@asynccontextmanager
async def streaming(
    address: str, network: Network
) -> AsyncIterator[tuple[LiveStream, list[bytes], str]]:
    """Begin a stream of a network's first layer; return it, frames for it, and the layer."""
    model = hookviz.load_model(network.name, network.weights)
    layer = hookviz.list_layers(model)[0].name
    assert isinstance(model.preprocess, hookviz.Preprocess)
    link = {"live": "1", "model": network.name, "weights": network.weights, "step": layer}
    async with arrive(address, link) as tab:
        await tab.run()
        async with live(address, tab) as stream:
            frames = pictures(model.preprocess.resize)
            for data in frames:
                await stream.ask(0, data)
            yield stream, frames, layer


async def ahead(stream: LiveStream, frames: Sequence[bytes], seconds: float) -> int:
    """Count the frames that come back in that time, where the next is there when one is done."""
    end, count, sent, last = time.perf_counter() + seconds, 0, 0, 0
    while last < sent or time.perf_counter() < end:
        while sent < last + 2 and time.perf_counter() < end:
            sent += 1
            await stream.send(sent, frames[sent % len(frames)])
        answer = await stream.hear()
        assert isinstance(answer, Answer)
        last = answer.facts["frame"]  # those before it were passed over, and are not answered
        count += 1
    return count


async def _speed(address: str, network: Network) -> tuple[str, str]:
    async with streaming(address, network) as (stream, frames, layer):
        count = await ahead(stream, frames, _SECONDS)
        delays, parts = list[float](), dict[str, list[float]]()
        kilobytes = 0.0
        end = time.perf_counter() + _SECONDS
        while time.perf_counter() < end:
            started = time.perf_counter()
            answer = await stream.ask(1, frames[len(delays) % len(frames)])
            delays.append((time.perf_counter() - started) * 1000)
            for part in _PARTS:
                parts.setdefault(part, []).append(answer.facts["ms"][part])
            parts.setdefault("wire", []).append(delays[-1] - sum(answer.facts["ms"].values()))
            kilobytes = sum(answer.facts["blobs"]) / 1000
    title = hookviz.load_model(network.name, network.weights).title
    speed = (
        f"| {title}, {layer} | {count / _SECONDS:.1f} | ≥ {network.aim:.0f} "
        f"| {statistics.median(delays):.0f} | {_late(delays):.0f} | {kilobytes:.0f} |"
    )
    medians = (f"{statistics.median(each):.1f}" for each in parts.values())
    return speed, f"| {title} | {' | '.join(medians)} |"


def _late(numbers: Sequence[float]) -> float:
    """Return the 95th percentile."""
    return sorted(numbers)[max(0, round(0.95 * len(numbers)) - 1)]


def measure_speed(server: Server) -> None:
    """Print frames a second of each network, and where a frame's time goes."""
    rows = [asyncio.run(_speed(server, network)) for network in NETWORKS]
    print("| network, layer | frames/s | aim | delay p50 ms | p95 | kB a frame |")
    print("|---|---:|---:|---:|---:|---:|")
    print("\n".join(speed for speed, _ in rows), end="\n\n")
    print(f"| ms, median | {' | '.join((*_PARTS, 'wire'))} |")
    print(f"|---|{'---:|' * (len(_PARTS) + 1)}")
    print("\n".join(parts for _, parts in rows))


async def _memory(server: Server, count: int) -> None:
    print("| frames | MB |\n|---:|---:|")
    async with streaming(server, NETWORKS[0]) as (stream, frames, _):
        done = 0
        for until in (_STEADY, *(count * share // 10 for share in range(1, 11))):
            while done < until:
                await stream.ask(done, frames[done % len(frames)])
                done += 1
            print(f"| {done:,} | {server.megabytes():.0f} |", flush=True)


async def _crowd(server: Server, streams: int, explorers: int) -> None:
    counts = [0] * streams
    over = asyncio.Event()

    async def watch(number: int) -> float:
        async with streaming(server, NETWORKS[0]) as (stream, frames, _):
            started = time.perf_counter()
            while not over.is_set():
                await stream.ask(counts[number], frames[counts[number] % len(frames)])
                counts[number] += 1
            return counts[number] / (time.perf_counter() - started)

    watching = asyncio.gather(*(watch(number) for number in range(streams)))
    visits = await asyncio.gather(
        *(
            visit(server, "ShapesNet", seed, late=seed * PAUSE[1] / explorers)
            for seed in range(explorers)
        )
    )
    over.set()
    rates = sorted(await watching) or [0.0]
    seconds = [click.seconds for seen in visits for click in seen.clicks] or [0.0]
    failures = [text for seen in visits for text in seen.failures] + server.errors()
    print("| streams | frames/s each, least | median | explorers | p50 s | p95 s | failures |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    print(
        f"| {streams} | {rates[0]:.1f} | {statistics.median(rates):.1f} | {explorers} "
        f"| {statistics.median(seconds):.2f} | {_late(seconds):.2f} | {len(failures)} |"
    )
    for text in failures[:5]:
        print(f"  {text}")


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--frames", type=int, help="memory over so many frames")
    parser.add_argument("--streams", type=int, help="so many at once, of ShapesNet")
    parser.add_argument("--explorers", type=int, default=0, help="people who explore meanwhile")
    asked = parser.parse_args()
    environment = {"PYTHONPATH": str(ROOT), "HOOKVIZ_LIVE": str(max(20, asked.streams or 0))}
    with serve(environment, LIVE_APP) as server:
        if asked.frames:
            asyncio.run(_memory(server, asked.frames))
        elif asked.streams is not None:
            asyncio.run(_crowd(server, asked.streams, asked.explorers))
        else:
            measure_speed(server)


if __name__ == "__main__":
    main()
