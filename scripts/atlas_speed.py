"""Time an atlas's pass in images a second, beside bare passes and hooks that keep what they see.

``python -m scripts.atlas_speed --images 64`` tries it; `make bench` measures a thousand. Every
contestant reads the same generated files, and they take turns, 64 images at a time, so that a busy
machine slows all of them alike.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from captum.attr import LayerActivation
from PIL import Image
from torch import Tensor, nn

import hookviz
from hookviz.atlas.patches import CutPatches, cut_images
from hookviz.atlas.plan import BATCH, Plan, sources, table_by
from hookviz.atlas.shard_work import ShardWork, TallyShard
from hookviz.atlas.tally import Tally
from hookviz.capturing.image_shards import ReadyImage, read_batches
from hookviz.machine.memory import keep_freed_memory, own_memory
from hookviz.types import Model

IMAGES = 1000
_TURN = 64  # images
_SIZE = 400, 300


@dataclass(frozen=True)
class Speed:
    """Time that a contestant takes for all images: on the clock, and of all processors."""

    what: str
    images: int
    seconds: float
    processor: float

    @property
    def per_second(self) -> float:
        """Images a second."""
        return self.images / self.seconds


def measure_atlas(images: int = IMAGES, model: str = "resnet50") -> list[Speed]:
    """Time the bare batched passes first, then what is compared with them."""
    with tempfile.TemporaryDirectory() as folder:
        _draw(Path(folder), images)
        return _measured(hookviz.load_model(model, "random"), Path(folder))


def table(speeds: list[Speed]) -> str:
    """Return the measurements as Markdown; the ratios are of the bare passes' times."""
    bare = speeds[0]
    lines = ["| what | images/s | ms CPU | ratio | in CPU time |", "|---|---:|---:|---:|---:|"]
    for each in speeds:
        ratio, of_cpu = each.seconds / bare.seconds, each.processor / bare.processor
        spent = 1000 * each.processor / each.images
        lines.append(
            f"| {each.what} | {each.per_second:.1f} | {spent:.0f} | {ratio:.2f} | {of_cpu:.2f} |"
        )
    return "\n".join(lines)


def _draw(folder: Path, count: int) -> None:
    """Smooth random pictures as JPEG files: each other, and none in need of a download."""
    random = np.random.default_rng(0)
    for number in range(count):
        coarse = random.integers(0, 256, (9, 12, 3), dtype=np.uint8)
        picture = Image.fromarray(coarse).resize(_SIZE, Image.Resampling.BICUBIC)
        picture.save(folder / f"{number:05}.jpg", quality=90)


def _measured(model: Model, folder: Path) -> list[Speed]:
    listed = sources(model, folder)
    network = model.network
    channels = table_by(model, listed[0].image, None)
    layers = [layer.name for layer in channels.layers]
    captum = LayerActivation(network, [network.get_submodule(name) for name in layers])
    plan = Plan(model, listed, channels)
    work, tally = ShardWork(plan), Tally.empty(channels.channels, plan.top, 0)

    def bare(images: Tensor) -> object:
        return network(images)

    def hooks(images: Tensor) -> object:
        return _largest(_kept(network, layers, images))

    def by_captum(images: Tensor) -> object:
        return _largest(captum.attribute(images))

    def through(see: Callable[[Tensor], object]) -> Callable[[range], None]:
        def go(indices: range) -> None:
            for images in _batches(model, [listed[index].image for index in indices]):
                see(images)

        return go

    def atlas(indices: range) -> None:
        shard = TallyShard.of(plan, indices, tally.top.least.copy())
        tally.merge(work(shard, lambda *_: None))

    what = f"{model.name}, {len(listed):,} images"
    contestants: dict[str, Callable[[range], None]] = {
        f"{what}: the bare passes, {BATCH} at a time": through(bare),
        f"**{what}: the pass of an atlas**": atlas,
        f"{what}: hooks that keep a batch's maps": through(hooks),
        f"{what}: captum": through(by_captum),
    }
    through(bare)(range(min(BATCH, len(listed))))  # to warm up
    spent = _in_turns(contestants, len(listed))
    speeds = [Speed(name, len(listed), *taken) for name, taken in spent.items()]
    cut = _cut(plan, tally)
    whole = [sum(both) for both in zip(cut, (speeds[1].seconds, speeds[1].processor), strict=True)]
    speeds.insert(2, Speed(f"{what}: an atlas with its patches cut", len(listed), *whole))
    return speeds


def _cut(plan: Plan, tally: Tally) -> tuple[float, float]:
    """Cut the patches of a whole tally; return seconds on the clock and of processors."""
    began = time.perf_counter(), time.process_time()
    patches = CutPatches(tally.top.indices.size, BytesIO())
    for image in cut_images(plan, tally, 0):
        patches.add(image)
    return time.perf_counter() - began[0], time.process_time() - began[1]


def _in_turns(
    contestants: dict[str, Callable[[range], None]], count: int
) -> dict[str, tuple[float, float]]:
    """Time each contestant in turns; return seconds on the clock and of processors."""
    spent = dict.fromkeys(contestants, (0.0, 0.0))
    with torch.no_grad():
        for start in range(0, count, _TURN):
            indices = range(start, min(count, start + _TURN))
            for name, go in contestants.items():
                began = time.perf_counter(), time.process_time()
                go(indices)
                seconds, processor = spent[name]
                seconds += time.perf_counter() - began[0]
                spent[name] = seconds, processor + time.process_time() - began[1]
    return spent


def _batches(model: Model, images: list[object]) -> Iterator[Tensor]:
    """Yield the images in batches, read as an atlas reads them, channels last in memory."""
    for batch in read_batches(model, images, range(len(images)), BATCH, None):
        together = torch.cat([each.tensor for each in batch if isinstance(each, ReadyImage)])
        yield together.contiguous(memory_format=torch.channels_last)


def _kept(network: nn.Module, layers: list[str], images: Tensor) -> list[Tensor]:
    """Return the layers' outputs, all of them in memory at once."""
    kept: list[Tensor] = []
    handles = [
        network.get_submodule(layer).register_forward_hook(lambda *call: kept.append(call[2]))
        for layer in layers
    ]
    try:
        network(images)
    finally:
        for handle in handles:
            handle.remove()
    return kept


def _largest(maps: Iterable[Tensor]) -> list[Tensor]:
    """Find each map's largest value and its cell without an atlas, for comparison."""
    return [index for each in maps for index in each.flatten(2).max(2)]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=IMAGES, help="how many")
    parser.add_argument("--model", default="resnet50", help="a name in the catalog")
    chosen = parser.parse_args()
    keep_freed_memory(own_memory().reserve)  # as `hookviz atlas` does
    print(table(measure_atlas(chosen.images, chosen.model)))


if __name__ == "__main__":
    main()
