"""Measure batches, edited passes and streams to a disk beside plain hooks that do the same.

``python -m scripts.batch_speed`` prints these rows of `scripts.bench` alone.
"""

import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torchvision import models

import hookviz
from scripts.timing import Row, median_times

IMAGES, SIDE = 32, 64
LAYER = "layer4.1.conv2"
ROUNDS = 7


def keep_copies(network: nn.Module, layers: Iterable[str], images: Tensor) -> dict[str, Tensor]:
    """Run a pass with hooks that copy the outputs, as a tutorial has them."""
    outputs: dict[str, Tensor] = {}

    def hook(name: str) -> Callable[..., None]:
        return lambda *call: outputs.update({name: call[2].clone()})

    handles = [network.get_submodule(name).register_forward_hook(hook(name)) for name in layers]
    network(images)
    for handle in handles:
        handle.remove()
    return outputs


def one_by_one(network: nn.Module, layers: list[str], images: Tensor) -> None:
    """Capture each image in a pass of its own."""
    for image in images:
        hookviz.capture(network, image, layers)


def batches(network: nn.Module, images: Tensor) -> Iterable[Row]:
    """Compare the capture of a batch with hooks on the same pass, and with one by one."""
    convs = [name for name, part in network.named_modules() if isinstance(part, nn.Conv2d)]
    for layers, aim in (([LAYER], "≤ 1.15"), (convs, "≤ 1.15")):
        contestants: dict[str, Callable[[], object]] = {
            "hooks": partial(keep_copies, network, layers, images),
            "hookviz": partial(hookviz.capture, network, images, layers),
            "one by one": partial(one_by_one, network, layers, images),
        }
        times = median_times(contestants, ROUNDS)
        what = f"resnet18, {IMAGES} × {SIDE}², layers: {len(layers)}"
        beside = "the pass with hooks that copy"
        ratio = times["hookviz"] / times["hooks"]
        yield Row(f"**{what}, as a batch: HookViz**", times["hookviz"], beside, ratio, aim)
        ratio = times["one by one"] / times["hooks"]
        yield Row(f"{what}, one by one: HookViz", times["one by one"], beside, ratio)


def edits(network: nn.Module, images: Tensor) -> Iterable[Row]:
    """Compare an edited pass with a hook that returns another output."""
    half = hookviz.edits.scale(0.5)

    def by_hand() -> Tensor:
        layer = network.get_submodule(LAYER)
        handle = layer.register_forward_hook(lambda *call: call[2] * 0.5)
        output: Tensor = network(images)
        handle.remove()
        return output

    def ours() -> Tensor:
        with hookviz.edit(network, {LAYER: half}):
            output: Tensor = network(images)
        return output

    assert torch.equal(by_hand(), ours())
    times = median_times({"by hand": by_hand, "hookviz": ours}, ROUNDS)
    ratio = times["hookviz"] / times["by hand"]
    what = f"**resnet18, {IMAGES} × {SIDE}², one layer edited: HookViz**"
    yield Row(what, times["hookviz"], "a hook that returns another output", ratio, "≤ 1.10")


def streams(network: nn.Module, images: Tensor) -> Iterable[Row]:
    """Compare a stream of four batches to a disk with hooks and a file for each."""
    many = [images.roll(step, 0) for step in range(4)]
    with tempfile.TemporaryDirectory() as folder:
        counts = iter(range(10_000))

        def by_hand() -> None:
            for batch in many:
                save_file(keep_copies(network, [LAYER], batch), Path(folder, f"{next(counts)}.own"))

        def ours() -> None:
            rows = chain.from_iterable(many)
            hookviz.stream(network, rows, LAYER, to=Path(folder, f"{next(counts)}"))

        times = median_times({"by hand": by_hand, "hookviz": ours}, ROUNDS)
    ratio = times["hookviz"] / times["by hand"]
    what = f"**resnet18, {4 * IMAGES} × {SIDE}², one layer to a disk: HookViz**"
    yield Row(what, times["hookviz"], "hooks, and a safetensors file a batch", ratio, "≤ 1.3")


def rows() -> list[Row]:
    """Measure every row, on a ResNet-18 with random weights."""
    network = models.resnet18().eval()
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(IMAGES, 3, SIDE, SIDE, generator=generator)
    with torch.no_grad():
        found = (batches(network, images), edits(network, images), streams(network, images))
        return list(chain.from_iterable(found))


if __name__ == "__main__":
    for row in rows():
        print(f"{row.what} | {row.milliseconds:.1f} ms | {row.ratio:.2f} | {row.aim}")
