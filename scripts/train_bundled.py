"""Train the bundled CNN on drawn pictures and write its weights, figures and model card.

``python -m scripts.train_bundled`` trains it again; ``--check`` measures the weights that are
there and fails where the figures on file are not what comes out. ``--second FILE`` trains the
network that tests ask what a picture of the first one shows.
"""

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import ConcatDataset, DataLoader, Dataset

from hookviz.lessons.drawings import HARD_SEEDS, TEST_SEEDS, TRAIN_SEEDS, draw
from hookviz.models.shapesnet import (
    CATEGORIES,
    FIGURES_FILE,
    INPUT_SIZE,
    MIN_SIZE,
    PREPROCESS,
    SHAPES,
    TEXTURES,
    WEIGHTS_FILE,
    ShapesNet,
)
from hookviz.settings import ASSETS

CARD_FILE = ASSETS / "bundled.md"

BATCH = 128
STEPS = ((96, 900), (INPUT_SIZE, 500))  # (side in pixels, steps): smaller pictures first, for speed
LESSONS = SHAPES + SHAPES + TEXTURES  # shapes are harder to learn, so they come up twice as often
DISTURBED = 0.3  # share of training pictures with clutter and noise, each to a random degree
MOST_DISTURBED = 0.6

ADAM_RATE = 4e-3
ADAM_DECAY = 0.05
STEM_RATE = 0.2
STEM_DECAY = 1e-3

SEED = 0
SECOND_SEED = 1  # of the network for tests: other weights to begin with, other pictures
SECOND_STEPS = ((64, 350), (96, 100))
THREADS = 2  # fixed, because the order of a parallel sum changes its last digits
WORKERS = 2
TEST_PER_CLASS = 200
TOLERANCE = 0.5  # percentage points, one picture of a class: another CPU rounds differently


class Drawings(Dataset[tuple[Tensor, int]]):
    """Pictures drawn when asked for, with their labels; each follows from its seed alone.

    Picture i is uint8, ``(3, size, size)``, of the lessons' category i modulo their count.
    """

    def __init__(
        self,
        seeds: range,
        lessons: tuple[str, ...] = CATEGORIES,
        *,
        size: int = INPUT_SIZE,
        share: float = 0.0,
        degradation: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        self.seeds = seeds
        self.lessons = lessons
        self.size = size
        self.share = share
        self.degradation = degradation

    def __len__(self) -> int:
        return len(self.seeds)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        seed, category = self.seeds[index], self.lessons[index % len(self.lessons)]
        rng = np.random.default_rng(seed)
        degree = rng.uniform(*self.degradation) if rng.random() < self.share else 0.0
        picture = draw(category, seed, self.size, degradation=degree)
        pixels = torch.from_numpy(np.array(picture)).permute(2, 0, 1)
        return pixels, CATEGORIES.index(category)


def unseen_set(per_class: int = TEST_PER_CLASS, size: int = INPUT_SIZE) -> Drawings:
    """Draw pictures like those of the training, from seeds that it never saw."""
    return Drawings(TEST_SEEDS[: per_class * len(CATEGORIES)], size=size)


def hard_set(per_class: int = TEST_PER_CLASS, size: int = INPUT_SIZE) -> Drawings:
    """Draw unseen pictures with more clutter, occlusion, blur and noise than the training's."""
    seeds = HARD_SEEDS[: per_class * len(CATEGORIES)]
    return Drawings(seeds, size=size, share=1.0, degradation=(1.0, 1.0))


def normalise(pixels: Tensor) -> Tensor:
    """Normalise uint8 ``(N, 3, H, W)`` to what the network takes, float32 of the same shape."""
    mean = torch.tensor(PREPROCESS.mean).view(3, 1, 1)
    std = torch.tensor(PREPROCESS.std).view(3, 1, 1)
    return ((pixels / 255 - mean) / std).contiguous(memory_format=torch.channels_last)


def confusion(network: nn.Module, drawings: Drawings, workers: int = WORKERS) -> Tensor:
    """Count the pictures of each class taken for each class, ``(true, predicted)``."""
    counts = torch.zeros(len(CATEGORIES), len(CATEGORIES), dtype=torch.long)
    network.eval()
    with torch.no_grad():
        for pixels, labels in DataLoader(drawings, BATCH, num_workers=workers):
            guesses = network(normalise(pixels)).argmax(dim=1)
            counts.index_put_((labels, guesses), torch.ones_like(labels), accumulate=True)
    return counts


def train(seed: int = SEED, plan: tuple[tuple[int, int], ...] = STEPS, first: int = 0) -> ShapesNet:
    """Train a network from scratch; every picture is drawn for it and seen once.

    Args:
        seed: of the weights to begin with.
        plan: sides in pixels, and for how many steps each.
        first: the place of the first picture among all for training.
    """
    torch.manual_seed(seed)
    network = ShapesNet().to(memory_format=torch.channels_last)
    kernels = network.stem.first.conv.weight
    _smooth(kernels)
    others = [weights for weights in network.parameters() if weights is not kernels]
    total = sum(steps for _, steps in plan)
    # Adam divides each weight's step by its own noise, which leaves kernels speckled. Plain
    # gradients are correlations with the pictures: kernels that follow them stay smooth.
    optimizers = (
        torch.optim.AdamW(others, weight_decay=ADAM_DECAY),
        torch.optim.SGD([kernels], momentum=0.9, nesterov=True, weight_decay=STEM_DECAY),
    )
    schedules = [
        OneCycleLR(optimizer, rate, total, pct_start=0.15, cycle_momentum=False)
        for optimizer, rate in zip(optimizers, (ADAM_RATE, STEM_RATE), strict=True)
    ]
    network.train()
    started, recent = time.perf_counter(), 0.0
    for step, (pixels, labels) in enumerate(_lessons(plan, first), start=1):
        scores = network(normalise(pixels))
        loss = functional.cross_entropy(scores, labels, label_smoothing=0.05)
        network.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        for optimizer, schedule in zip(optimizers, schedules, strict=True):
            optimizer.step()
            schedule.step()
        recent += loss.item() / 50
        if step % 50 == 0:
            seconds = time.perf_counter() - started
            print(f"step {step:4d} of {total}  loss {recent:.3f}  {seconds:4.0f} s", flush=True)
            recent = 0.0
    return network


def _smooth(kernels: Tensor) -> None:
    """Blur random kernels and keep their strength, so that no noise of the start remains."""
    with torch.no_grad():
        blurred = functional.avg_pool2d(functional.avg_pool2d(kernels, 3, 1, 1), 3, 1, 1)
        kernels.copy_(blurred * (kernels.std() / blurred.std()))


def _lessons(plan: tuple[tuple[int, int], ...], first: int) -> DataLoader[tuple[Tensor, int]]:
    """Yield the batches of the whole training, in a fixed order whatever the number of workers."""
    parts = []
    for size, steps in plan:
        seeds = TRAIN_SEEDS[first : first + steps * BATCH]
        degradation = (0.0, MOST_DISTURBED)
        parts.append(Drawings(seeds, LESSONS, size=size, share=DISTURBED, degradation=degradation))
        first += steps * BATCH
    return DataLoader(ConcatDataset(parts), BATCH, num_workers=WORKERS, prefetch_factor=8)


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures measured of the weights on file; accuracies in percent.

    Attributes:
        accuracy: top-1 on pictures like those of the training, from unseen seeds.
        hard_accuracy: top-1 on unseen pictures with full degradation.
        per_class, hard_per_class: the same for each category.
        mixed_up: for each category that was ever mistaken in either set, the category that it was
            most often taken for in both together.
        test_per_class: pictures of each category in either set.
        parameters: numbers that are learned.
    """

    accuracy: float
    hard_accuracy: float
    per_class: dict[str, float]
    hard_per_class: dict[str, float]
    mixed_up: dict[str, str]
    test_per_class: int
    parameters: int


def measure(network: nn.Module, size: int = INPUT_SIZE) -> Figures:
    """Measure a network on the unseen and on the hard set, drawn at `size` pixels."""
    plain, hard = (confusion(network, drawn(size=size)) for drawn in (unseen_set, hard_set))
    mistakes = plain + hard
    mistakes.fill_diagonal_(0)
    return Figures(
        accuracy=_percent(plain.trace(), plain.sum()),
        hard_accuracy=_percent(hard.trace(), hard.sum()),
        per_class=_per_class(plain),
        hard_per_class=_per_class(hard),
        mixed_up={
            category: CATEGORIES[int(row.argmax())]
            for category, row in zip(CATEGORIES, mistakes, strict=True)
            if row.any()
        },
        test_per_class=TEST_PER_CLASS,
        parameters=sum(weights.numel() for weights in network.parameters()),
    )


def _percent(part: Tensor, whole: Tensor) -> float:
    return round(100 * part.item() / whole.item(), 2)


def _per_class(counts: Tensor) -> dict[str, float]:
    return {
        category: _percent(counts[index, index], counts[index].sum())
        for index, category in enumerate(CATEGORIES)
    }


def load() -> ShapesNet:
    """Load the network with the weights on file."""
    network = ShapesNet()
    network.load_state_dict(load_file(WEIGHTS_FILE))
    return network.to(memory_format=torch.channels_last)


def differences(found: Figures, filed: Figures) -> list[str]:
    """List what differs between two measurements by more than rounding, a line each."""
    pairs = {
        "accuracy": (found.accuracy, filed.accuracy),
        "hard accuracy": (found.hard_accuracy, filed.hard_accuracy),
        "parameters": (found.parameters, filed.parameters),
    }
    for category in CATEGORIES:
        pairs[category] = (found.per_class[category], filed.per_class[category])
        hard = (found.hard_per_class[category], filed.hard_per_class[category])
        pairs[f"{category}, hard"] = hard
    return [
        f"{name}: {new:g} now, {old:g} on file"
        for name, (new, old) in pairs.items()
        if abs(new - old) > TOLERANCE
    ]


def is_on_file(network: nn.Module, file: Path, size: int = INPUT_SIZE) -> bool:
    """Measure a network, print what comes out and whether it is what the file of figures says."""
    figures = measure(network, size)
    show(figures)
    on_file = json.loads(file.read_text(encoding="utf-8"))
    del on_file["training"]
    different = differences(figures, Figures(**on_file))
    print("\n".join(different) or "These are the figures on file.")
    return not different


def show(figures: Figures) -> None:
    """Print the figures, a class a line."""
    print(f"unseen draws {figures.accuracy:.2f} %, hard draws {figures.hard_accuracy:.2f} %")
    for category in CATEGORIES:
        plain, hard = figures.per_class[category], figures.hard_per_class[category]
        print(f"  {category:<20}{plain:6.1f} %{hard:8.1f} %")


@dataclass(frozen=True, slots=True)
class Training:
    """Settings and history of the training of the weights on file.

    Attributes:
        pictures: how many were drawn for the training; each was seen once.
        seconds: wall time of drawing, training and measuring.
        torch: the version that computed it.
        threads: that torch used; the figures repeat exactly with the same torch, threads and CPU.
    """

    pictures: int
    seconds: int
    torch: str
    threads: int


def _write(network: ShapesNet, figures: Figures, training: Training) -> None:
    weights = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
    # One fact alone: safetensors writes several in random order, and equal weights should be
    # equal files.
    save_file(weights, WEIGHTS_FILE, metadata={"accuracy": f"{figures.accuracy:.2f}"})
    WEIGHTS_FILE.chmod(0o644)  # safetensors keeps it from everybody but its owner
    listed = asdict(figures) | {"training": asdict(training)}
    FIGURES_FILE.write_text(json.dumps(listed, indent=2) + "\n", encoding="utf-8")
    CARD_FILE.write_text(card(figures, training), encoding="utf-8")


def table(figures: Figures) -> str:
    """Write a model card's table of classes in Markdown."""
    plain, hard = figures.per_class, figures.hard_per_class
    rows = [
        f"| {category} | {plain[category]:.1f} | {hard[category]:.1f} "
        f"| {figures.mixed_up.get(category, '–')} |"
        for category in CATEGORIES
    ]
    head = ["| class | unseen | hard | most often mistaken for |", "|---|---|---|---|"]
    return "\n".join(head + rows)


def card(figures: Figures, training: Training) -> str:
    """Write the model card in Markdown."""
    sizes = ", then ".join(f"{steps} steps at {size} × {size} px" for size, steps in STEPS)
    return f"""# ShapesNet: the CNN for drawings that ships with HookViz

A small residual CNN for {len(CATEGORIES)} classes of drawn shapes and textures:
{figures.parameters:,} parameters, ten convolutions (a 7×7 stem and three residual stages, each with
two 3×3 convolutions and a 1×1 shortcut), global average pooling and one linear layer. It exists so
that there is a network for lessons, small and wholly documented, whose data can be drawn anew.
`hookviz/models/shapesnet.py` is its code. Code, data and weights are under HookViz's own licence
(MIT).

| set | pictures | accuracy |
|---|---|---|
| unseen draws | {figures.test_per_class * len(CATEGORIES):,} | **{figures.accuracy:.2f} %** |
| hard draws | {figures.test_per_class * len(CATEGORIES):,} | {figures.hard_accuracy:.2f} % |

## Data

`hookviz/lessons/drawings.py` draws everything with Pillow from seeds. Colours are random, a third
of the pairs differ in hue and hardly in brightness; sizes, places, rotations, proportions, line
widths, gradients, blotches, shadows, lighting, blur and grain vary. Pictures for training, unseen
draws and hard draws come from ranges of seeds that share none.

- Training: {training.pictures:,} pictures, each seen once; shapes twice as often as textures.
  {DISTURBED:.0%} of them are disturbed to a random degree of up to {MOST_DISTURBED:.0%}.
- Unseen draws: like the training's, undisturbed, {figures.test_per_class} of each class.
- Hard draws: all disturbed to the full, {figures.test_per_class} of each class: ten scraps strewn
  behind the shape, up to four larger ones on top that can hide what tells classes apart, more blur,
  and noise with a standard deviation of up to 18 % of the brightness range.

## Training

Cross-entropy with label smoothing 0.05, batches of {BATCH}: {sizes}.
AdamW at {ADAM_RATE:g} with weight decay {ADAM_DECAY:g}; the stem's kernels start blurred and follow
SGD with momentum 0.9 at {STEM_RATE:g} with weight decay {STEM_DECAY:g}, which keeps them smooth
enough to look at. One-cycle learning rates.

`python -m scripts.train_bundled` trains it again on the CPU; the weights on file took
{training.seconds / 60:.1f} minutes on two cores, measuring included, with torch {training.torch}.
The same torch on the same kind of CPU gives the same figures; another one rounds differently.
`python -m scripts.train_bundled --check` measures the weights on file and fails where a figure is
off by more than {TOLERANCE:g} points.

## Accuracy per class, in percent

{table(figures)}

## Limits

- It knows drawings only. A photograph gets one of these {len(CATEGORIES)} names too, often with
  high confidence, and that name means nothing. Its feature maps of photographs are worth a look:
  edges, blobs and colours are the same everywhere.
- There is no class for "none of these" and none for two shapes at once.
- It takes any size from {MIN_SIZE} px up, but accuracy was measured at {INPUT_SIZE} px alone.
- Shapes across less than a third of the picture, and textures finer than a sixteenth of it, were
  not in the data.
- Clutter, occlusion and noise cost accuracy, as the hard draws show.
"""


def main(arguments: list[str] | None = None) -> int:
    """Train, or check; return the process's exit status."""
    parser = argparse.ArgumentParser(description="Train the bundled CNN on drawn pictures.")
    parser.add_argument("--check", action="store_true", help="measure the weights on file instead")
    parser.add_argument("--second", metavar="FILE", help="train another one for the tests")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(THREADS)
    torch.use_deterministic_algorithms(True)
    if chosen.second:
        pictures = BATCH * sum(steps for _, steps in STEPS)
        second = train(SECOND_SEED, SECOND_STEPS, first=pictures)
        halves = {name: each.half().contiguous() for name, each in second.state_dict().items()}
        save_file(halves, chosen.second)
        return 0
    if chosen.check:
        return 0 if is_on_file(load(), FIGURES_FILE) else 1
    started = time.perf_counter()
    network = train()
    figures = measure(network)
    seconds = round(time.perf_counter() - started)
    show(figures)
    pictures = BATCH * sum(steps for _, steps in STEPS)
    _write(network, figures, Training(pictures, seconds, torch.__version__, THREADS))
    return 0


if __name__ == "__main__":
    sys.exit(main())
