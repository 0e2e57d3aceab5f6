"""Time training, atlases and captures on a card, beside plain PyTorch that does the same.

``python -m scripts.gpu_speed`` prints one row for each, in less than four minutes on one GPU. On a
machine without one it runs the same code in small, to be tried. TF32 is off, and what is captured
on the card is compared with the CPU first.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
import torchvision
from PIL import Image
from torch import Tensor, nn

import hookviz
from scripts.timing import Row, median_times


@dataclass(frozen=True)
class Setup:
    """Device and sizes of the measurements.

    Attributes:
        device: that the network is on.
        images: in a batch.
        side: of a training image in pixels.
        rounds: that the contestants take turns in.
        files: JPEG files of an atlas and of features.
    """

    device: torch.device
    images: int
    side: int
    rounds: int
    files: int

    def network(self) -> nn.Module:
        """Return a network with random weights on the device."""
        build = (
            torchvision.models.resnet50
            if self.device.type != "cpu"
            else torchvision.models.resnet18
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            network: nn.Module = build(weights=None).to(self.device)
            return network

    def ended(self, call: Callable[[], object]) -> Callable[[], None]:
        """Return a call that waits for the device, too."""

        def run() -> None:
            call()
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)

        return run


def training(setup: Setup) -> Iterator[Row]:
    """Time a training step, watched and recorded."""
    network = setup.network().train()
    optimizer = torch.optim.SGD(network.parameters(), 1e-3)
    images = torch.randn(setup.images, 3, setup.side, setup.side, device=setup.device)
    classes = torch.arange(setup.images, device=setup.device)

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=setup.device.type == "cuda"):
            loss = nn.functional.cross_entropy(network(images), classes)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    steps = 10 if setup.device.type != "cpu" else 2

    def ten_steps(instrument: Callable[[], AbstractContextManager[object]]) -> None:
        with instrument():
            for _ in range(steps):
                step()

    instruments: dict[str, tuple[Callable[[], AbstractContextManager[object]], str]] = {
        "bare": (nullcontext, ""),
        "watch": (partial(hookviz.watch, network), "≤ 1.35"),
        "record(every=1)": (partial(hookviz.record, network), ""),
        "record(every=10)": (partial(hookviz.record, network, every=10), "≤ 1.25"),
    }
    times = median_times(
        {name: setup.ended(partial(ten_steps, each)) for name, (each, _) in instruments.items()},
        setup.rounds,
    )
    for name, (_, aim) in instruments.items():
        ratio = times[name] / times["bare"]
        yield Row(f"training step: {name}", times[name] / steps, "the bare step", ratio, aim)


def captures(setup: Setup) -> Iterator[Row]:
    """Time captures of one image and of a batch, to the CPU and on the device."""
    network = setup.network().eval()
    convs = [name for name, part in network.named_modules() if isinstance(part, nn.Conv2d)]
    one = torch.randn(1, 3, 224, 224)
    batch = torch.randn(setup.images, 3, 224, 224)
    _check_values(network, convs[-1], one)
    rows = {
        "all convs of an image, to the CPU": (one, convs, "cpu", "≤ 1.15"),
        "all convs of an image, kept on the card": (one, convs, None, "≤ 1.2"),
        "one layer of a batch, to the CPU": (batch, convs[-1:], "cpu", "≤ 2"),
    }
    for what, (images, layers, to, aim) in rows.items():
        device = to or "same"
        contestants: dict[str, Callable[[], object]] = {
            "hooks": setup.ended(partial(_hooked, network, layers, images, to)),
            "hookviz": setup.ended(
                partial(hookviz.capture, network, images, layers, device=device, logits=False)
            ),
        }
        times = median_times(contestants, setup.rounds)
        ratio = times["hookviz"] / times["hooks"]
        yield Row(f"capture: {what}", times["hookviz"], "plain hooks", ratio, aim)


def _hooked(network: nn.Module, layers: list[str], images: Tensor, to: str | None) -> None:
    """Run a pass with hooks that keep the outputs."""
    outputs: list[Tensor] = []
    keep: Callable[..., None] = lambda *call: outputs.append(call[2].clone())  # noqa: E731
    handles = [network.get_submodule(layer).register_forward_hook(keep) for layer in layers]
    with torch.no_grad():
        network(images.to(next(network.parameters()).device))
    for handle in handles:
        handle.remove()
    if to is not None:
        outputs = [each.to(to) for each in outputs]


def _in_batches(network: nn.Module, inputs: Tensor) -> None:
    for start in range(0, len(inputs), 64):
        _hooked(network, [], inputs[start : start + 64], None)


def _check_values(network: nn.Module, layer: str, images: Tensor) -> None:
    """Compare a layer's output with that of the same network on the CPU."""
    ours = hookviz.capture(network, images, layer)[layer].values
    device = next(network.parameters()).device
    reference = hookviz.capture(network.cpu(), images, layer)[layer].values
    network.to(device)
    largest = float((ours - reference).abs().max() / reference.abs().max())
    print(f"{layer}: |card − CPU| ≤ {largest:.1e} of its largest value")
    if largest > 1e-4:
        raise SystemExit("The card computes something else.")


def folders(setup: Setup) -> Iterator[Row]:
    """Time atlases and features over files, beside reading them and the bare batched pass."""
    network = setup.network().eval()
    convs = [name for name, part in network.named_modules() if isinstance(part, nn.Conv2d)]
    model = hookviz.wrap(network)
    with tempfile.TemporaryDirectory() as folder:
        photos = Path(folder) / "photos"
        _draw(photos, setup.files)
        files = sorted(photos.iterdir())
        started = time.perf_counter()
        inputs = torch.cat([hookviz.prepare_input(model, file).tensor for file in files])
        reading = 1000 * (time.perf_counter() - started) / setup.files
        yield Row("reading a JPEG, one process", reading, "itself", 1.0)
        bare = setup.ended(partial(_in_batches, network, inputs))
        contestants: dict[str, Callable[[], object]] = {"bare": bare}
        for what, layers in (("one layer", convs[-1:]), ("all convs", convs)):
            contestants[f"atlas, {what}"] = partial(
                hookviz.make_atlas,
                model,
                photos,
                Path(folder) / f"{len(layers)}.atlas",
                layers=layers,
                overwrite=True,
            )
        contestants["extract_features"] = partial(hookviz.extract_features, model, photos)
        times = median_times(contestants, 1)
    for name, each in times.items():
        spent = each / setup.files
        aim = {"atlas, one layer": "≤ 2 × the reading", "atlas, all convs": "≤ 5 ms"}.get(name, "")
        beside = "an image, of the bare pass and its reading"
        yield Row(name, spent, beside, spent / (times["bare"] / setup.files + reading), aim)


def _draw(folder: Path, count: int) -> None:
    """Write smooth random pictures as JPEG files."""
    folder.mkdir()
    random = np.random.default_rng(0)
    for number in range(count):
        coarse = random.integers(0, 256, (9, 12, 3), dtype=np.uint8)
        picture = Image.fromarray(coarse).resize((400, 300), Image.Resampling.BICUBIC)
        picture.save(folder / f"{number:04}.jpg")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(parser.parse_args().device)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    setup = Setup(device, 32, 128, 7, 512) if device.type != "cpu" else Setup(device, 4, 64, 1, 8)
    print(f"{device.type}, torch {torch.__version__}, {setup}")
    print("| what | ms | beside | ratio | aim |\n|---|---:|---|---:|---|")
    for measure in (training, captures, folders):
        for row in measure(setup):
            figures = f"{row.milliseconds:.2f} | {row.beside} | {row.ratio:.2f} | {row.aim}"
            print(f"| {row.what} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
