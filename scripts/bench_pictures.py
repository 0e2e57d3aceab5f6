"""Measure pictures of units: their cost beside bare passes, and what they reach beside peers.

Contestants take turns. Ratios are of processor time, so that other work on the machine hardly
counts; milliseconds are by the clock.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

import hookviz
from hookviz.images.samples import samples
from hookviz.synthesis.maximizing import STEPS, begin
from hookviz.synthesis.optimizing import Optimization
from scripts.picture_peers import (
    SIDE,
    Maker,
    horama_maker,
    lucent_maker,
    mean_of_channel,
    plain_copy,
    version_of,
)

UNITS = (
    ("features.4.expand3x3", 12),
    ("features.6.expand3x3", 40),
    ("features.9.expand3x3", 5),
    ("features.11.expand3x3", 100),
    ("features.12.expand3x3", 200),
)
"""Chosen by nothing but their depth, before any picture of them was made."""
_LAYER = "features.12.expand3x3"
_AT_ONCE = range(9)
_ROUNDS, _BLOCK = 6, 24  # a block is so many steps
_RESIDENT = Path("/proc/self/status")


def optimization(
    layer: str, channels: range | tuple[int, ...], side: int, space: str
) -> Optimization:
    """Begin an optimization of SqueezeNet's channels, without a step yet."""
    model = hookviz.load_model("squeezenet")
    objectives = [hookviz.Objective.of_channel(layer, channel) for channel in channels]
    return begin(model, objectives, hookviz.MaximizationConfig(size=side, space=space))


def both_times(work: dict[str, Callable[[], object]]) -> dict[str, tuple[float, float]]:
    """Return each one's milliseconds a step, by the clock and of processor time: medians of turns.

    Args:
        work: what does `_BLOCK` steps when it is called.
    """
    for each in work.values():
        each()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in work}
    for _ in range(_ROUNDS):
        for name, each in work.items():
            clock, processor = time.perf_counter(), time.process_time()
            each()
            times[name].append((time.perf_counter() - clock, time.process_time() - processor))
    return {
        name: (
            statistics.median(each[0] for each in taken) * 1000 / _BLOCK,
            statistics.median(each[1] for each in taken) * 1000 / _BLOCK,
        )
        for name, taken in times.items()
    }


def bare(network: nn.Module, images: Tensor) -> Callable[[], object]:
    """Run passes to the layer and back to the images, and nothing else."""
    block, _, part = _LAYER.rpartition(".")
    fire = network.get_submodule(block)
    before = list(network.get_submodule("features").children())[: int(block.split(".")[1])]
    passed = nn.Sequential(
        *before,
        *(fire.get_submodule(name) for name in ("squeeze", "squeeze_activation", part)),
    )

    def there_and_back() -> None:
        for _ in range(_BLOCK):
            leaf = images.detach().requires_grad_()
            torch.autograd.grad(passed(leaf)[:, 5].mean(), leaf)

    return there_and_back


def costs() -> list[tuple[str, float, str, float, str]]:
    """Measure rows: what, milliseconds a step, beside what, ratio of processor time, aim."""
    network = plain_copy(hookviz.load_model("squeezenet").network)
    noise = torch.randn(1, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(0))
    channels_last = noise.contiguous(memory_format=torch.channels_last)
    runs = {
        "one of 128": optimization(_LAYER, (5,), SIDE, "Fourier"),
        "one of 128, MACO": optimization(_LAYER, (5,), SIDE, "MACO"),
        "nine of 80": optimization(_LAYER, _AT_ONCE, 80, "Fourier"),
        "nine of 64": optimization(_LAYER, _AT_ONCE, 64, "Fourier"),
    }
    work: dict[str, Callable[[], object]] = {name: _more_of(ours) for name, ours in runs.items()}
    work["bare, channels last"] = bare(network, channels_last)
    work["bare"] = bare(network, noise)
    times = both_times(work)
    beside = {
        "one of 128": (("bare, channels last", "≤ 1.3"), ("bare", "")),
        "one of 128, MACO": (("bare, channels last", ""),),
        "nine of 80": (("one of 128", "≤ 2.5"),),
        "nine of 64": (("one of 128", "≤ 2.5"),),
    }
    return [
        (what, times[what][0], other, times[what][1] / times[other][1], aim)
        for what, others in beside.items()
        for other, aim in others
    ]


def _more_of(ours: Optimization) -> Callable[[], object]:
    return lambda: ours.run(ours.steps + _BLOCK)


def fresh() -> dict[str, float]:
    """Measure the first picture and a run's memory in a new process, warmed up by a capture."""
    hookviz.capture(hookviz.load_model("squeezenet"), samples()[0].path)
    clock, processor = time.perf_counter(), time.process_time()
    ours = optimization(_LAYER, (5,), SIDE, "Fourier")
    ours.run(1)
    ours.pictures()
    first = time.perf_counter() - clock, time.process_time() - processor
    before = _resident("VmRSS")
    many = optimization(_LAYER, _AT_ONCE, 224, "Fourier")
    Path("/proc/self/clear_refs").write_text("5", "ascii")  # the peak begins anew
    many.run(4)
    grown = _resident("VmHWM") - before
    return {"clock": first[0], "processor": first[1], "told": many.nbytes, "grown": grown}


def _resident(field: str) -> int:
    """Return the process's resident bytes, as Linux counts them."""
    line = next(
        line for line in _RESIDENT.read_text("utf-8").splitlines() if line.startswith(field)
    )
    return int(line.split()[1]) * 1024


def hookviz_maker(space: str) -> Maker:
    """Make pictures by HookViz with its defaults."""

    def make(layer: str, channel: int, steps: int) -> Tensor:
        ours = optimization(layer, (channel,), SIDE, space)
        ours.run(steps)
        return ours.tensor()[0]

    return make


def makers(network: nn.Module) -> dict[str, Maker]:
    """Return HookViz and the peers that are installed; print a line for one that is not."""
    made = {f"**HookViz, {space}**": hookviz_maker(space) for space in ("Fourier", "MACO")}
    for package in ("torch-lucent", "Horama"):
        try:
            title = f"{package} {version_of(package)}"
            if package == "torch-lucent":
                made[title] = lucent_maker(network)
            else:
                made[f"{title}, fourier"] = horama_maker(network, "fourier")
                made[f"{title}, maco"] = horama_maker(network, "maco")
        except ImportError as error:
            print(f"{package} is left out: {error}. make .venv/peers has it.\n")
    return made


def reached(network: nn.Module, make: Maker, steps: int) -> tuple[list[float], float]:
    """Measure the mean of the channel in each unit's picture, and processor milliseconds a step."""
    values, began = [], time.process_time()
    for layer, channel in UNITS:
        picture = make(layer, channel, steps)
        with torch.no_grad():
            values.append(float(mean_of_channel(network, layer, channel, picture[None])))
    return values, (time.process_time() - began) * 1000 / steps / len(UNITS)


def main() -> None:
    """Print the tables."""
    print(f"| pictures of {_LAYER} | ms a step | beside | ratio | aim |\n|---|---:|---|---:|---:|")
    for what, taken, beside, ratio, aim in costs():
        print(f"| {what} | {taken:.1f} | {beside} | {ratio:.2f} | {aim} |")
    program = "import json, scripts.bench_pictures as b; print(json.dumps(b.fresh()))"
    output = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout
    alone = json.loads(output)
    print(
        f"\nThe first picture, in a process that has captured before: {alone['clock']:.2f} s, "
        f"{alone['processor']:.2f} s of processor time. Nine of 224 pixels: "
        f"{alone['told'] / 2**20:.0f} MB told, {alone['grown'] / 2**20:.0f} MB grown.\n"
    )
    network = plain_copy(hookviz.load_model("squeezenet").network)
    units = " | ".join(f"{layer}, {channel}" for layer, channel in UNITS)
    print(f"| {STEPS} steps, {SIDE} px | {units} | CPU ms a step |\n|---|{'---:|' * 6}")
    for name, make in makers(network).items():
        values, taken = reached(network, make, STEPS)
        print(f"| {name} | {' | '.join(f'{value:.1f}' for value in values)} | {taken:.1f} |")


if __name__ == "__main__":
    main()
