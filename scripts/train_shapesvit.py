"""Train the bundled transformer on drawn pictures and write its weights, figures and model card.

``python -m scripts.train_shapesvit`` trains it again; ``--check`` measures the weights that are
there and fails where the figures on file are not what comes out. ``--minutes`` has the schedule
reach its end by then at the latest, whatever the machine; ``--folder`` keeps what it has meanwhile.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader

from hookviz.lessons.drawings import TRAIN_SEEDS
from hookviz.models import shapesnet
from hookviz.models.shapesnet import CATEGORIES, ShapesNet
from hookviz.models.shapesvit import FIGURES_FILE, INPUT_SIZE, MIN_SIZE, WEIGHTS_FILE, ShapesViT
from hookviz.settings import ASSETS
from scripts import train_bundled
from scripts.train_bundled import (
    DISTURBED,
    LESSONS,
    MOST_DISTURBED,
    TOLERANCE,
    Drawings,
    Figures,
    confusion,
    hard_set,
    normalise,
    unseen_set,
)

CARD_FILE = ASSETS / "shapesvit.md"

BATCH = 64
STEPS = 9000
WARM_UP = 0.04  # share of the steps
RATE = 1.2e-3
SECOND_STEPS, SECOND_RATE = 3000, 6e-4  # of a round that begins with the weights of the first
DECAY = 0.05
SMOOTHING = 0.05
TEMPERATURE = 2.0
ALIKE, FETCHED = 0.7, 0.4  # as the paper named in `prepare_input` has them
ITS_SIZE = 96  # of pictures that ShapesNet is asked about; it knows little at the pupil's size
MEMORY = 0.998  # of the weights' moving average, which is what is written

REUSE = 3  # a drawing takes a third of a step's time: each is seen three times, turned otherwise
KEPT_BATCHES = 128  # to choose from

SEED = 0
THREADS = 1
CHECK_SECONDS = 300
CHECK_PER_CLASS = 20


def _swapped(*pairs: tuple[str, str]) -> Tensor:
    """Return the class of a picture turned over, by its class before."""
    other = dict(pairs) | {second: first for first, second in pairs}
    return torch.tensor([CATEGORIES.index(other.get(name, name)) for name in CATEGORIES])


MIRRORED = _swapped(("rising stripes", "falling stripes"))
TRANSPOSED = _swapped(("horizontal stripes", "vertical stripes"))


def turned(pixels: Tensor, labels: Tensor, chance: torch.Generator) -> tuple[Tensor, Tensor]:
    """Mirror and turn an eighth of a batch each of eight ways, and swap its colours at random.

    What mirrored stripes are called is another class; all other labels stay as they are.
    """
    pictures, names = [], []
    for way in range(8):
        some, called = pixels[way::8], labels[way::8]
        some = some[:, torch.randperm(3, generator=chance)]
        if way & 1:
            some, called = some.flip(3), MIRRORED[called]
        if way & 2:
            some, called = some.flip(2), MIRRORED[called]
        if way & 4:
            some, called = some.transpose(2, 3), TRANSPOSED[called]
        pictures.append(some)
        names.append(called)
    return torch.cat(pictures), torch.cat(names)


def lessons(steps: int, chance: torch.Generator, first: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
    """Draw pictures in another process and give batches of the latest ones, each turned anew.

    `first` is the place of the first picture among all for training.
    """
    seeds = TRAIN_SEEDS[first : first + BATCH * (steps // REUSE + 2)]
    drawings = Drawings(
        seeds, LESSONS, size=INPUT_SIZE, share=DISTURBED, degradation=(0, MOST_DISTURBED)
    )
    kept = torch.empty(BATCH * KEPT_BATCHES, 3, INPUT_SIZE, INPUT_SIZE, dtype=torch.uint8)
    called = torch.empty(len(kept), dtype=torch.long)
    drawn = 0
    fresh = iter(DataLoader(drawings, BATCH, num_workers=1, prefetch_factor=8))
    for step in range(steps):
        if step % REUSE == 0:
            start = drawn % len(kept)
            kept[start : start + BATCH], called[start : start + BATCH] = next(fresh)
            drawn += BATCH
        chosen = torch.randint(min(drawn, len(kept)), (BATCH,), generator=chance)
        yield turned(kept[chosen], called[chosen], chance)


class Teacher:
    """ShapesNet with the weights on file, asked what it makes of a batch."""

    def __init__(self) -> None:
        self.network: ShapesNet = train_bundled.load().eval()

    @torch.no_grad()
    def __call__(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return its scores and what stages 2 and 3 see at each patch: ``(N, patches, C)``."""
        network = self.network
        large = functional.interpolate(images, (ITS_SIZE, ITS_SIZE), mode="bilinear")
        with torch.autocast("cpu", torch.bfloat16):
            early = network.stage2(network.stage1(network.stem(large)))
            late = network.stage3(early)
            scores = network.head(network.flatten(network.pool(late)))
        return scores.float(), self._seen(early.float()), self._seen(late.float())

    @staticmethod
    def _seen(maps: Tensor) -> Tensor:
        """Bring maps to a cell a patch, and each channel to mean 0 and variance 1 in the batch."""
        sides = (INPUT_SIZE // 8, INPUT_SIZE // 8)
        fitting = functional.interpolate(maps, sides, mode="bilinear", antialias=True)
        even = functional.batch_norm(fitting, None, None, training=True)
        return even.flatten(2).transpose(1, 2)


class Pupil(nn.Module):
    """The network, with two views of its tokens that are for the training alone."""

    def __init__(self) -> None:
        super().__init__()
        self.network = ShapesViT()
        self.early = nn.Linear(96, 96)
        self.late = nn.Linear(96, 128)

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return scores, and what it says of each patch half-way and last."""
        network = self.network
        halfway = network.blocks[:2](network.tokens(images))
        tokens = network.norm(network.blocks[2:](halfway))
        seen: Tensor = tokens[:, 1:]
        return network.head(tokens[:, 0]), self.early(halfway[:, 1:]), self.late(seen)


@torch.no_grad()
def prepare(network: ShapesViT) -> None:
    """Give it a start from which little data is enough: places as waves, and heads that look near.

    Places begin as sines and cosines of row and column (Beyer et al., "Better plain ViT baselines",
    2022). Queries and keys begin alike, so that each token looks for those like it, which lie
    nearby; what is fetched begins as minus a part of it (Trockman and Kolter, "Mimetic
    initialization of self-attention layers", 2023).
    """
    _, rows, columns, width = network.pos_embed.shape
    waves = torch.arange(width // 4) / (width // 4)
    phases = torch.arange(rows)[:, None] * 100.0**-waves
    down = torch.cat([phases.sin(), phases.cos()], 1)[:, None].expand(rows, columns, -1)
    network.pos_embed[0] = torch.cat([down, down.transpose(0, 1)], dim=2)
    for block in network.blocks:
        layer: Any = block.attn
        likeness = nn.init.orthogonal_(torch.empty(width, width))
        fetched = nn.init.orthogonal_(torch.empty(width, width))
        layer.qkv.weight[: 2 * width] += ALIKE**0.5 * likeness.repeat(2, 1)
        layer.qkv.weight[2 * width :] += FETCHED**0.5 * fetched
        layer.proj.weight -= FETCHED**0.5 * fetched.T


def rate_at(progress: float) -> float:
    """Return the share of the learning rate: a ramp up, then half a cosine down to 0."""
    if progress < WARM_UP:
        return progress / WARM_UP
    return 0.5 + 0.5 * math.cos(math.pi * min(1.0, (progress - WARM_UP) / (1 - WARM_UP)))


def train(
    folder: Path | None = None, minutes: float = math.inf, start: Path | None = None
) -> tuple[ShapesViT, int]:
    """Train a network from scratch, or for a second round.

    Args:
        folder: for what it has after each five minutes; None to keep nothing.
        minutes: after which to be done, with the schedule hurried on where the machine is slow.
        start: weights to begin the second round with: with other pictures, a lower rate, and
            ShapesNet's scores alone.

    Returns:
        The moving average of its weights, and how many steps there were.
    """
    second = start is not None
    torch.manual_seed(SEED + second)
    chance = torch.Generator().manual_seed(SEED + second)
    pupil, teacher = Pupil(), Teacher()
    if start is None:
        prepare(pupil.network)
    else:
        pupil.network.load_state_dict(load_file(start))
    steps, rate = (SECOND_STEPS, SECOND_RATE) if second else (STEPS, RATE)
    average = deepcopy(pupil.network)
    matrices = [weights for weights in pupil.parameters() if weights.ndim > 1]
    vectors = [weights for weights in pupil.parameters() if weights.ndim < 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0}],
        betas=(0.9, 0.98),
    )
    started = looked = time.perf_counter()
    recent = torch.zeros(5)
    hurried, first = 0.0, BATCH * STEPS if second else 0
    for step, (pixels, labels) in enumerate(lessons(steps, chance, first), start=1):
        progress = max(step / steps, hurried)
        images = normalise(pixels)
        known, early, late = teacher(images)
        scores, halfway, last = pupil(images)
        right = functional.cross_entropy(scores, labels, label_smoothing=SMOOTHING)
        alike = (
            functional.kl_div(
                functional.log_softmax(scores / TEMPERATURE, 1),
                functional.softmax(known / TEMPERATURE, 1),
                reduction="batchmean",
            )
            * TEMPERATURE**2
        )
        seen_early = functional.mse_loss(halfway, early)
        seen_late = functional.mse_loss(last, late)
        loss = right + alike
        if not second:
            loss = loss + (1 - progress) * (seen_early + seen_late)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(pupil.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = rate * rate_at(progress)
        optimizer.step()
        memory = min(MEMORY, step / (step + 9))
        with torch.no_grad():
            for mean, now in zip(average.parameters(), pupil.network.parameters(), strict=True):
                mean.lerp_(now, 1 - memory)
        hits = (scores.argmax(1) == labels).float().mean()
        recent += torch.stack([right, alike, seen_early, seen_late, hits]).detach() / 50
        now_at = time.perf_counter()
        hurried = max(hurried, (now_at - started) / 60 / minutes)
        if step % 50 == 0:
            told = "  ".join(f"{value:.3f}" for value in recent)
            print(f"step {step} {progress:.3f}  {told}  {now_at - started:.0f} s", flush=True)
            recent.zero_()
        if folder and now_at - looked > CHECK_SECONDS:
            looked = now_at
            _keep(average, folder, now_at - started)
        if hurried >= 1:
            break
    return average, step


def _keep(network: ShapesViT, folder: Path, seconds: float) -> None:
    """Write what there is and print how good it is, so that a cut loses five minutes at most."""
    minutes = round(seconds / 60)
    save_file(halves(network), folder / f"at_{minutes:02d}.safetensors")
    for name, drawn in (("unseen", unseen_set), ("hard", hard_set)):
        counts = confusion(network, drawn(CHECK_PER_CLASS, INPUT_SIZE), workers=0)
        print(f"{minutes} min: {name} {100 * counts.trace() / counts.sum():.1f} %", flush=True)


def halves(network: ShapesViT) -> dict[str, Tensor]:
    """Return the weights in half precision, as they are on file."""
    return {name: each.half().contiguous() for name, each in network.state_dict().items()}


def load(file: Path = WEIGHTS_FILE) -> ShapesViT:
    """Load the network with the weights on file, in float32."""
    network = ShapesViT()
    network.load_state_dict(load_file(file))  # copies into float32
    return network.eval()


@dataclass(frozen=True, slots=True)
class Training:
    """History of the training of the weights on file.

    Attributes:
        steps: how many the first round had.
        second_steps: how many the second one had; 0 without one.
        seconds: wall time of drawing and training, of both.
        torch: the version that computed it.
        threads: that torch used.
    """

    steps: int
    second_steps: int
    seconds: int
    torch: str
    threads: int


def _write(network: ShapesViT, training: Training) -> None:
    """Write the weights, what is measured of them as they are on file, and the card."""
    weights = halves(network)
    network.load_state_dict(weights)  # the figures are those of the rounded ones
    figures = train_bundled.measure(network, INPUT_SIZE)
    train_bundled.show(figures)
    # One fact alone: safetensors writes several in random order.
    save_file(weights, WEIGHTS_FILE, metadata={"accuracy": f"{figures.accuracy:.2f}"})
    WEIGHTS_FILE.chmod(0o644)  # safetensors keeps it from everybody but its owner
    listed = asdict(figures) | {"training": asdict(training)}
    FIGURES_FILE.write_text(json.dumps(listed, indent=2) + "\n", encoding="utf-8")
    CARD_FILE.write_text(card(figures, training), encoding="utf-8")


def card(figures: Figures, training: Training) -> str:
    """Write the model card in Markdown."""
    beside = json.loads(shapesnet.FIGURES_FILE.read_text(encoding="utf-8"))
    rounds = (training.steps, training.second_steps)
    shown = sum(rounds) * BATCH
    drawn = BATCH * sum(steps // REUSE + 1 for steps in rounds if steps)
    pictures = figures.test_per_class * len(CATEGORIES)
    return f"""# ShapesViT: the transformer for drawings that ships with HookViz

A small vision transformer for the {len(CATEGORIES)} classes of drawn shapes and textures that
[ShapesNet](bundled.md) knows: {figures.parameters:,} parameters in half precision, patches of
8 × 8 px, a class token, four blocks of four heads, 96 numbers a token. It exists so that there is
attention to look at that means something, without a download.
`hookviz/models/shapesvit.py` is its code. Code, data and weights are under HookViz's own licence
(MIT).

| set | pictures | ShapesViT | ShapesNet |
|---|---|---|---|
| unseen draws | {pictures:,} | **{figures.accuracy:.2f} %** | {beside["accuracy"]:.2f} % |
| hard draws | {pictures:,} | {figures.hard_accuracy:.2f} % | {beside["hard_accuracy"]:.2f} % |

Both are measured on the same pictures, drawn at the size that each was trained on:
{INPUT_SIZE} × {INPUT_SIZE} px for ShapesViT, {shapesnet.INPUT_SIZE} × {shapesnet.INPUT_SIZE} px for
ShapesNet.

## Data

The drawings of `hookviz/lessons/drawings.py`, as [ShapesNet's card](bundled.md) describes them, at
{INPUT_SIZE} × {INPUT_SIZE} px. {drawn:,} were drawn for the training, shapes twice as often as
textures, {DISTURBED:.0%} of them disturbed to a random degree of up to {MOST_DISTURBED:.0%}. Each
was seen {REUSE} times on average, mirrored or turned by quarters (mirrored stripes get the name of
what they then are) and with its colour channels in another order: {shown:,} in all.

## Training

Steps of {BATCH} pictures. The loss is cross-entropy with label
smoothing {SMOOTHING:g}, plus the divergence from ShapesNet's probabilities for the same picture at
temperature {TEMPERATURE:g} (Hinton et al., "Distilling the knowledge in a neural network", 2015),
plus two squared errors: how well a linear view of each patch's token after the second block tells
ShapesNet's second stage at that place, and after the last block its third stage. These two fade to
nothing towards the end, and their views are thrown away. AdamW at {RATE:g} with weight decay
{DECAY:g}, a ramp up over {WARM_UP:.0%} of the steps, half a cosine down. The weights on file are a
moving average with a memory of {MEMORY:g}. Places begin as sines and cosines of row and column, and
heads so that they look at what is near and alike; `prepare_input` in the script names the papers.
ShapesNet is asked about the picture enlarged to {ITS_SIZE} px.

{_rounds(training)}

`python -m scripts.train_shapesvit` trains it again on the CPU; the weights on file took
{training.seconds / 60:.0f} minutes with {training.threads} thread and a second process that draws,
on two cores that had other work too, with torch {training.torch}.
`python -m scripts.train_shapesvit --check` measures the weights on file and fails where a figure is
off by more than {TOLERANCE:g} points.

## Accuracy per class, in percent

{train_bundled.table(figures)}

## Limits

- It knows drawings only, and less well than ShapesNet, from which it learned. A photograph gets one
  of these {len(CATEGORIES)} names too, and that name means nothing.
- It takes any size from {MIN_SIZE} px up: what it adds to patches for their places is stretched
  then. Its accuracy was measured at {INPUT_SIZE} px alone.
- What a head attends to is what the network fetches, and no proof that the answer rests on it.
- The limits of the drawings are [ShapesNet's](bundled.md#limits).
"""


def _rounds(training: Training) -> str:
    """Tell how many steps there were, and that another run may have others."""
    first = f"It had {training.steps:,} of {STEPS:,} steps"
    second = (
        f", then {training.second_steps:,} of {SECOND_STEPS:,} of a second round (`--from`)\n"
        f"with other pictures, at {SECOND_RATE:g} and without the squared errors"
    )
    return (
        f"{first}{second if training.second_steps else ''}. The schedule was hurried on\n"
        "(`--minutes`) to be done in time, so another run comes out different."
    )


def main(arguments: list[str] | None = None) -> int:
    """Train, or check; return the process's exit status."""
    parser = argparse.ArgumentParser(description="Train the bundled transformer on drawn pictures.")
    parser.add_argument("--check", action="store_true", help="measure the weights on file instead")
    parser.add_argument("--minutes", type=float, default=math.inf, help="be done by then")
    parser.add_argument("--from", dest="start", type=Path, help="begin a second round with these")
    parser.add_argument("--folder", type=Path, help="for what there is after each five minutes")
    chosen = parser.parse_args(arguments)
    torch.set_num_threads(THREADS)
    if chosen.check:
        return 0 if train_bundled.is_on_file(load(), FIGURES_FILE, INPUT_SIZE) else 1
    started = time.perf_counter()
    network, steps = train(chosen.folder, chosen.minutes, chosen.start)
    seconds = round(time.perf_counter() - started)
    training = Training(steps, 0, seconds, torch.__version__, THREADS)
    if chosen.start:  # what is on file is the first round's
        before = json.loads(FIGURES_FILE.read_text(encoding="utf-8"))["training"]
        whole = seconds + before["seconds"]
        training = Training(before["steps"], steps, whole, torch.__version__, THREADS)
    _write(network, training)
    return 0


if __name__ == "__main__":
    sys.exit(main())
