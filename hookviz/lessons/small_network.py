"""Define the small network of the lessons, train it on drawings, and share trainings.

It is trained on a person's screen, so it is small: three conv layers and a linear one. What it
learns follows from its seed and its rate alone, and shows nobody's image. So forty who press
*Train* in one class share one training: whoever has the lock computes the next steps for everybody.
"""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from hookviz.hooking.hooks import Call
from hookviz.hooking.observe_and_edit import observe
from hookviz.lessons.drawings import TEST_SEEDS, TRAIN_SEEDS, draw
from hookviz.training.recording import record
from hookviz.types import Pixels, Progress

CLASSES = (
    *("circle", "square", "star", "cross"),
    *("vertical stripes", "horizontal stripes", "rising stripes", "falling stripes"),
)
"""What it tells apart: some of ShapesNet's classes."""
SIDE = 48
"""Pixels on a side of a drawing."""
DRAWINGS, UNSEEN = 2400, 240
"""How many drawings it learns from, and how many it never learns from."""
STEPS, EVERY = 2000, 50
"""Steps of a training, and how many lie between two that are looked at."""
BATCH = 32
"""Drawings of a step."""
LAYERS = ("conv1", "conv2", "conv3", "head")
"""Its layers with weights."""

_MOMENTUM = 0.9
_DECAY = 0.02  # of the first kernels alone, so that what nothing needs fades: else noise stays
_MEAN, _SCALE = 0.5, 0.25  # of a colour, 0…1
_AT_ONCE = 120  # drawings between two looks at the clock


@dataclass(frozen=True, eq=False, slots=True)
class Frame:
    """Network as it is at one step of its training, and what was measured there.

    Attributes:
        step: how many steps it has taken.
        weights: its parameters by name.
        loss: mean cross entropy of the unseen drawings.
        accuracy: the share of them that it names right.
        gradients: of each of `LAYERS` the norm of its gradient in the step that led here, as
            `hookviz.record` has it; at the beginning that of one batch, without a step.
    """

    step: int
    weights: Mapping[str, Tensor] = field(repr=False)
    loss: float
    accuracy: float
    gradients: tuple[float, ...]


class SmallNetwork(nn.Sequential):
    """Three conv layers and a linear one: ``(N, 3, SIDE, SIDE)`` to one score per class."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 7, stride=2, padding=3)
        self.relu1 = nn.ReLU()
        self.pool1 = nn.MaxPool2d(2)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.relu2 = nn.ReLU()
        self.pool2 = nn.MaxPool2d(2)
        self.conv3 = nn.Conv2d(16, 24, 3, padding=1)
        self.relu3 = nn.ReLU()
        self.mean = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.head = nn.Linear(24, len(CLASSES))


def random_network(seed: int) -> SmallNetwork:
    """Build the network with random weights, each evenly from ±1/√(numbers that are summed).

    As torch's own layers begin. The generator is its own: nobody else's random numbers change.
    """
    with torch.device("meta"):
        network = SmallNetwork()
    network.to_empty(device="cpu")
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name in LAYERS:
            layer = network.get_submodule(name)
            assert isinstance(layer, nn.Conv2d | nn.Linear)
            assert layer.bias is not None
            bound = 1 / math.sqrt(layer.weight[0].numel())
            for parameter in (layer.weight, layer.bias):
                parameter.copy_(torch.rand(parameter.shape, generator=random) * 2 * bound - bound)
    return network


@cache
def weight_count() -> int:
    """Return how many numbers the network has to learn."""
    return sum(parameter.numel() for parameter in SmallNetwork().parameters())


def network_input(pictures: NDArray[np.uint8]) -> Tensor:
    """Return pictures ``(N, H, W, 3)`` as the network takes them, ``(N, 3, H, W)``."""
    pixels = torch.tensor(pictures).permute(0, 3, 1, 2).float() / 255
    return (pixels - _MEAN) / _SCALE


class Drawings:
    """Drawings to learn from and others to be asked about, made a few at a time.

    They follow from their numbers alone, so that all trainings have the same.
    """

    def __init__(self) -> None:
        self._pictures = np.zeros((UNSEEN + DRAWINGS, SIDE, SIDE, 3), np.uint8)
        self._made = 0

    @property
    def share(self) -> float:
        """How much of them is made, 0…1."""
        return self._made / len(self._pictures)

    def go_on(self) -> None:
        """Make a few more."""
        for at in range(self._made, min(self._made + _AT_ONCE, len(self._pictures))):
            seeds, number = (TEST_SEEDS, at) if at < UNSEEN else (TRAIN_SEEDS, at - UNSEEN)
            category = CLASSES[number % len(CLASSES)]
            self._pictures[at] = np.asarray(draw(category, seeds.start + number, SIDE))
            self._made = at + 1

    def picture(self, number: int) -> Pixels:
        """Return one of those to learn from, RGB uint8 ``(SIDE, SIDE, 3)``."""
        picture: Pixels = self._pictures[UNSEEN + number]
        return picture

    @property
    def unseen(self) -> tuple[Tensor, Tensor]:
        """The unseen drawings ``(UNSEEN, 3, SIDE, SIDE)`` and their classes ``(UNSEEN,)``."""
        return network_input(self._pictures[:UNSEEN]), torch.arange(UNSEEN) % len(CLASSES)

    def some(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """Return drawings to learn from, by their numbers ``(N,)``, with their classes."""
        return network_input(self._pictures[UNSEEN + numbers.numpy()]), numbers % len(CLASSES)


class Training:
    """Training of a `SmallNetwork` from its first random weights on, a few steps at a time.

    Stochastic gradient descent: after each batch every weight goes down its gradient, with
    momentum. In the second half the rate falls to 0, so that it comes to rest.

    Attributes:
        frames: the network at the beginning and after every `EVERY` steps so far.
    """

    def __init__(self, drawings: Drawings, rate: float, seed: int) -> None:
        """Begin with the weights that the seed gives; no step is taken yet."""
        self.frames: list[Frame] = []
        self._drawings, self._rate = drawings, rate
        self._network = random_network(seed)
        self._order = torch.Generator().manual_seed(seed)
        first = list(self._network.conv1.parameters())
        rest = list(self._network.parameters())[len(first) :]
        groups: list[dict[str, Any]] = [
            {"params": first, "weight_decay": _DECAY},
            {"params": rest},
        ]
        self._optimiser = torch.optim.SGD(groups, lr=rate, momentum=_MOMENTUM)
        self._step = 0

    @property
    def is_over(self) -> bool:
        """Whether all steps have been taken."""
        return self._step >= STEPS

    @property
    def share(self) -> float:
        """How much of it is done, 0…1."""
        return self._step / STEPS

    def go_on(self) -> None:
        """Take the steps up to the next frame; at first keep the network as it begins."""
        with torch.inference_mode(mode=False), torch.enable_grad():
            if not self.frames:
                with record(self._network, layers=list(LAYERS)) as log:
                    self._backward(torch.arange(BATCH))
            else:
                for _ in range(EVERY - 1):
                    self._take_step()
                with record(self._network, layers=list(LAYERS)) as log:
                    self._take_step()
        norms = {row.layer: row.gradient_norm for row in log.rows}
        loss, accuracy = self._asked()
        weights = {name: each.detach().clone() for name, each in self._network.named_parameters()}
        self.frames.append(
            Frame(self._step, weights, loss, accuracy, tuple(norms[name] or 0.0 for name in LAYERS))
        )

    def _take_step(self) -> None:
        share = min(1.0, 2 * (1 - self._step / STEPS))
        for group in self._optimiser.param_groups:
            group["lr"] = self._rate * share
        self._backward(torch.randint(DRAWINGS, (BATCH,), generator=self._order))
        self._optimiser.step()
        self._step += 1

    def _backward(self, numbers: Tensor) -> None:
        pictures, classes = self._drawings.some(numbers)
        self._optimiser.zero_grad()
        torch.autograd.backward(F.cross_entropy(self._network(pictures), classes))

    @torch.no_grad()
    def _asked(self) -> tuple[float, float]:
        """Return the mean loss of the unseen drawings, and the share that is named right."""
        pictures, classes = self._drawings.unseen
        scores = self._network(pictures)
        right = (scores.argmax(1) == classes).float().mean()
        return float(F.cross_entropy(scores, classes)), float(right)


def maps_at(frame: Frame, picture: Pixels) -> dict[str, Tensor]:
    """Return each conv layer's maps ``(C, H, W)`` at a step, of a picture ``(SIDE, SIDE, 3)``."""
    with torch.device("meta"):
        network = SmallNetwork()
    network.load_state_dict(dict(frame.weights), assign=True)
    maps: dict[str, Tensor] = {}

    def keep(call: Call) -> None:
        maps[call.layer] = call.output[0]

    with torch.inference_mode(mode=False), torch.no_grad(), observe(network, nn.Conv2d, keep):
        network(network_input(picture[None]))
    return maps


_MOST = 12  # trainings that are kept, about a megabyte each
_DRAWING = 0.15  # of a training's time: before the first of all, the drawings are made
_SLICE_S = 0.5  # seconds that are computed before the page is drawn again


class SharedTraining:
    """Training that anybody can take further, one after the other.

    Attributes:
        rate: how far a step goes down the gradient.
        seed: of the first weights and of the order of the drawings.
    """

    def __init__(self, rate: float, seed: int, drawings: Drawings) -> None:
        self.rate, self.seed = rate, seed
        self._drawings = drawings
        self._training = Training(drawings, rate, seed)

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The network at the beginning and as it was every few steps since."""
        return tuple(self._training.frames)

    @property
    def is_over(self) -> bool:
        """Whether all steps have been taken."""
        return self._training.is_over

    @property
    def share(self) -> float:
        """How far it is, 0…1."""
        if not self._training.frames:
            return _DRAWING * self._drawings.share
        return _DRAWING + (1 - _DRAWING) * self._training.share

    def go_on(self, progress: Progress) -> None:
        """Take it further for a moment, where `computing` says that nobody else does.

        Args:
            progress: called with the share done; what it raises ends this.
        """
        until = time.monotonic() + _SLICE_S
        while time.monotonic() < until and not self.is_over:
            progress(self.share)
            if self._drawings.share < 1:
                self._drawings.go_on()
            else:
                self._training.go_on()


@contextmanager
def computing() -> Iterator[bool]:
    """Yield whether one may compute in the block; after a moment's wait not, as somebody else does.

    A training takes one core, and others who wait for one take no turn in the queue of runs.
    """
    mine = _computing.acquire(timeout=_SLICE_S)
    try:
        yield mine
    finally:
        if mine:
            _computing.release()


_computing = threading.Lock()
_kept: OrderedDict[tuple[float, int], SharedTraining] = OrderedDict()
_keeping = threading.Lock()


@cache
def _drawings() -> Drawings:
    return Drawings()


def training(rate: float, seed: int) -> SharedTraining:
    """Return the training with that rate and seed, new or as far as anybody took it."""
    with _keeping:
        known = _kept.pop((rate, seed), None) or SharedTraining(rate, seed, _drawings())
        _kept[rate, seed] = known
        while len(_kept) > _MOST:
            _kept.popitem(last=False)
    return known


def finished() -> tuple[SharedTraining, ...]:
    """Return the trainings that somebody took to their end, the newest last."""
    with _keeping:
        return tuple(each for each in _kept.values() if each.is_over)
