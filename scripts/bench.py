"""Measure speed beside peers and the physical limit, and print docs/benchmarks.md's tables.

Every row is measured in one run, the contestants taking turns, so that a busy machine slows all
of them alike; what counts is the ratio.
"""

import argparse
import copy
import io
import json
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import chain, repeat

import numpy as np
import timm
import torch
from captum.attr import LayerActivation
from matplotlib.figure import Figure
from torch import Tensor, nn
from torchvision import models
from torchvision.models.feature_extraction import create_feature_extractor

import hookviz
from hookviz.machine.memory import keep_freed_memory, own_memory
from scripts import atlas_speed, batch_speed, bench_pictures
from scripts.screen_speed import measure_screen
from scripts.timing import Row, median_times

ROUNDS = 15


def one_layer(name: str, image: Tensor) -> Iterable[Row]:
    """Compare the capture of one ResNet layer with a pass cut off by hand right behind it."""
    model = hookviz.load_model(name, "random")
    network = model.network
    stem = nn.Sequential(*list(network.children())[:4])
    layer = "layer2.0.conv1"
    parts = [stem, network.get_submodule("layer1"), network.get_submodule(layer)]
    truncated = nn.Sequential(*parts).eval()
    extractor = create_feature_extractor(network, [layer])
    captum = LayerActivation(network, network.get_submodule(layer))
    made = hookviz.prepare_input(model, image)
    with torch.no_grad():
        times = median_times(
            {
                "truncated": lambda: truncated(image),
                "hookviz": lambda: hookviz.capture(model, made, layer, logits=False),
                "captum": lambda: captum.attribute(image),
                "torchvision": lambda: extractor(image),
            },
            ROUNDS,
        )
    what = f"{name}, {layer}"
    yield from _rows(what, times, "truncated", "the pass truncated there", "≤ 1.10")


def every_layer(name: str, image: Tensor) -> Iterable[Row]:
    """Compare the capture of all conv layers with the bare forward pass."""
    model = hookviz.load_model(name, "random")
    network = model.network
    convs = [layer.name for layer in hookviz.list_layers(model)]
    captum = LayerActivation(network, [network.get_submodule(conv) for conv in convs])
    made = hookviz.prepare_input(model, image)
    with torch.no_grad():
        contestants: dict[str, Callable[[], object]] = {
            "bare": lambda: network(image),
            "the least that keeps them": lambda: _keep(network, convs, image),
            "hookviz": lambda: hookviz.capture(model, made),
            "captum": lambda: captum.attribute(image),
        }
        with suppress(ValueError):  # it can't look into torchvision's own blocks, as MobileNet's
            extractor = create_feature_extractor(network, convs)
            contestants["torchvision"] = lambda: extractor(image)
        network.eval()  # where it could not, it left the network in training mode
        times = median_times(contestants, ROUNDS)
    what = f"{name}, all {len(convs)} conv layers"
    aim = {"resnet50": "≤ 1.12, kept", "mobilenet_v2": "≤ 1.15, kept"}.get(name, "")
    yield from _rows(what, times, "bare", "the bare forward pass", aim)


def _keep(network: nn.Module, layers: list[str], image: Tensor) -> list[Tensor]:
    """Run a pass whose hooks only hold on to the outputs: the physical limit."""
    kept: list[Tensor] = []
    handles = [
        network.get_submodule(layer).register_forward_hook(lambda *call: kept.append(call[2]))
        for layer in layers
    ]
    network(image)
    for handle in handles:
        handle.remove()
    return kept


class _SmallUNet(nn.Module):
    """A network as people write one for 64 × 64 pixels, which a pass goes through in no time."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        self.inner = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU())
        self.up = nn.ConvTranspose2d(32, 16, 2, 2)
        self.head = nn.Conv2d(32, 2, 1)

    def forward(self, images: Tensor) -> Tensor:
        wide = self.down(images)
        inner = self.inner(nn.functional.max_pool2d(wide, 2))
        maps: Tensor = self.head(torch.cat([wide, self.up(inner)], 1))
        return maps


def own_networks(image: Tensor) -> Iterable[Row]:
    """Compare wrapping and looking at networks of one's own with a plain pass with hooks."""
    builds: dict[str, tuple[Callable[[], nn.Module], Tensor]] = {
        "a small U-Net": (_SmallUNet, image[..., :64, :64]),
        "torchvision's ResNet-50": (models.resnet50, image),
        "timm's ViT-S": (partial(timm.create_model, "vit_small_patch16_224"), image),
        "timm's ConvNeXt-T": (partial(timm.create_model, "convnext_tiny"), image),
    }
    for what, (build, given) in builds.items():
        network = build().eval()
        convs = [name for name, part in network.named_modules() if isinstance(part, nn.Conv2d)]
        with torch.no_grad():
            contestants: dict[str, Callable[[], object]] = {
                "plain": partial(batch_speed.keep_copies, network, convs, given),
                "wrap": partial(hookviz.wrap, network),
                "a later capture": partial(hookviz.capture, network, given),
            }
            model = hookviz.wrap(network)  # kept, as who looks twice keeps it
            times = median_times(contestants, ROUNDS)
            times["the first capture"] = statistics.median(
                _first_capture(build, given) for _ in range(5)
            )
        del model
        aims = {"wrap": "≤ 5 ms", "the first capture": "≤ 2", "a later capture": "≤ 1.15"}
        for name, aim in aims.items():
            beside = "a plain pass with hooks that copy"
            ratio = times[name] / times["plain"]
            yield Row(f"**{what}, {name}: HookViz**", times[name], beside, ratio, aim)


def _first_capture(build: Callable[[], nn.Module], image: Tensor) -> float:
    """Return the milliseconds of the first capture of a network that nobody has looked at."""
    network = build().eval()
    network(image)
    started = time.perf_counter()
    hookviz.capture(network, image)
    return (time.perf_counter() - started) * 1000


def recorded_training(every: int) -> Row:
    """Compare a recorded training loop with the bare one, ten steps of ResNet-18 each."""
    network = hookviz.load_model("resnet18", "random").network
    network = copy.deepcopy(network).train().requires_grad_(True)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(8, 3, 64, 64, generator=generator)
    labels = torch.randint(0, 1000, (8,), generator=generator)

    def train() -> None:
        for _ in range(10):
            optimiser.zero_grad()
            loss = nn.functional.cross_entropy(network(images), labels)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()

    times = median_times({"bare": train, "hookviz": hookviz.record(network, every=every)(train)}, 7)
    ratio = times["hookviz"] / times["bare"]
    what = f"**ten training steps of resnet18, record(every={every}): HookViz**"
    return Row(what, times["hookviz"], "the bare steps", ratio, "≤ 1.10" if every == 10 else "")


def torchlens_beside_bare(name: str, image: Tensor) -> Row:
    """Time all that torchlens logs of a pass; it changes torch for good, so it comes last."""
    import torchlens  # noqa: PLC0415 - importing it is what changes torch

    network = hookviz.load_model(name, "random").network
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        contestants: dict[str, Callable[[], object]] = {
            "bare": lambda: network(image),
            "torchlens": lambda: torchlens.trace(network, image),
        }
        times = median_times(contestants, 3)
    ratio = times["torchlens"] / times["bare"]
    return Row(
        f"{name}, all operations: torchlens", times["torchlens"], "the bare forward pass", ratio
    )


def _rows(what: str, times: dict[str, float], base: str, beside: str, aim: str) -> Iterable[Row]:
    for contestant, taken in times.items():
        if contestant != base:
            label = f"**{what}: HookViz**" if contestant == "hookviz" else f"{what}: {contestant}"
            ours = aim if contestant == "hookviz" else ""
            yield Row(label, taken, beside, taken / times[base], ours)


def drawing(channels: int, side: int) -> Row:
    """Compare a grid as PNG with one ``imshow`` per channel."""
    values = np.random.default_rng(0).normal(size=(channels, side, side)).astype(np.float32)
    ours = median_times({"hookviz": lambda: hookviz.make_grid(values).png()}, ROUNDS)["hookviz"]
    started = time.perf_counter()
    _subplots(values)
    theirs = (time.perf_counter() - started) * 1000
    return Row(
        f"**grid of {channels} × {side} × {side} to PNG: HookViz**",
        ours,
        f"one `imshow` per channel, {theirs / 1000:.1f} s",
        ours / theirs,
        "≤ 1/100" if channels == 512 else "",
    )


def _subplots(values: np.ndarray) -> bytes:
    columns = int(np.ceil(np.sqrt(len(values))))
    figure = Figure(figsize=(12, 12))
    axes = figure.subplots(columns, columns)
    for axis, channel in zip(axes.flat, values, strict=False):
        axis.imshow(channel)
    for axis in axes.flat:
        axis.axis("off")
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def main() -> None:
    """Print the table and the machine that it was measured on."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--images", type=int, default=atlas_speed.IMAGES, help="of the row of the atlas"
    )
    parser.add_argument("--own", action="store_true", help="networks of one's own alone")
    parser.add_argument(
        "--kept", action="store_true", help="captures alone, with memory kept, ratios as JSON"
    )
    chosen = parser.parse_args()
    image = torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    if chosen.own:
        for row in own_networks(image):
            print(f"{row.what} | {row.milliseconds:.1f} ms | {row.ratio:.2f} | {row.aim}")
        return
    if chosen.kept:
        keep_freed_memory(own_memory().reserve)  # as the app's server and `hookviz` do
        print(json.dumps({row.what: row.ratio for row in captures(image)}))
        return
    bench_pictures.main()  # first, since torchlens comes last
    print()
    kept = json.loads(_output("scripts.bench", "--kept"))
    rows = [
        *captures(image),
        *own_networks(image),
        *batch_speed.rows(),
        *(drawing(*size) for size in ((64, 112), (256, 56), (512, 28), (2048, 7))),
        *map(recorded_training, (1, 10)),
    ]
    rows.append(torchlens_beside_bare("resnet18", image))
    print("| what | ms | beside | ratio | kept | aim |\n|---|---:|---|---:|---:|---:|")
    for row in rows:
        ratio = f"{row.ratio:.2f}" if row.ratio > 0.05 else f"1/{1 / row.ratio:.0f}"
        alike = f"{kept[row.what]:.2f}" if row.what in kept else ""
        took = f"{row.milliseconds:.1f} | {row.beside} | {ratio} | {alike}"
        print(f"| {row.what} | {took} | {row.aim} |")
    print("\n| in Chromium | seconds | aim |\n|---|---:|---:|")
    for what, seconds, aim in measure_screen():
        print(f"| {what} | {seconds:.2f} | {aim} |")
    for name in ("resnet50", "mobilenet_v2"):  # in processes that keep memory, as `hookviz atlas`
        options = "--images", str(chosen.images), "--model", name
        print(f"\n{_output('scripts.atlas_speed', *options)}", end="")
    print(
        f"\n{platform.system()}, {torch.get_num_threads()} CPU threads ({_processor()}), "
        f"Python {platform.python_version()}, torch {torch.__version__}"
    )


def captures(image: Tensor) -> list[Row]:
    """Compare captures with passes."""
    everything = map(every_layer, ("resnet18", "resnet50", "mobilenet_v2"), repeat(image))
    return [*one_layer("resnet18", image), *chain.from_iterable(everything)]


def _output(module: str, *options: str) -> str:
    return subprocess.check_output([sys.executable, "-m", module, *options], text=True)


def _processor() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as file:  # noqa: PTH123
        names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


if __name__ == "__main__":
    main()
