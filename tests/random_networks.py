"""Random networks, built from a small description so that a failure can be made smaller.

A long file: what a description can say, what is built from it and how one is drawn belong together.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tests import (
    random_answers,
    random_axes,
    random_hooks,
    random_outside,
    random_states,
    random_tokens,
)
from tests.networks import random_input
from tests.random_blocks import BLOCKS
from tests.random_forms import FORMS
from tests.random_kinds import COMMON, KIND_OF, KINDS, RARE, REMEMBERS
from tests.random_operations import OPERATIONS, WIDTH, Holder

# their blocks are BLOCKS, and their forms FORMS
assert all((random_answers, random_axes, random_hooks, random_outside, random_states))
assert random_tokens

SIDE = 12
DTYPES = ("float32", "float64", "bfloat16")
LIVES = ("new", "used", "loaded")
"""What became of a network before it is looked at: nothing; a pass; and then other weights."""


@dataclass(frozen=True)
class Step:
    """One feature of a network.

    Attributes:
        feature: an operation, a block or a junction, by its name.
        number: picks among the feature's options.
        inner: of a junction, the chains that it joins.
    """

    feature: str
    number: int = 0
    inner: tuple[tuple["Step", ...], ...] = ()

    def features(self) -> Iterator[str]:
        """Its own feature and those of all the steps inside it."""
        yield self.feature
        for chain in self.inner:
            for step in chain:
                yield from step.features()


@dataclass(frozen=True)
class Description:
    """All that a network is built from: equal descriptions build equal networks.

    Attributes:
        steps: what is between its first layer and its classes.
        dtype: of its weights, and of its input.
        seed: of its weights.
        writes_its_input: whether it does.
        form: what is made of it in the end, one of `FORMS`; empty for nothing.
        life: what became of it before it is looked at, one of `LIVES`.
        guessed: whether it is wrapped without a word on its input.
    """

    steps: tuple[Step, ...]
    dtype: str = "float32"
    seed: int = 0
    writes_its_input: bool = False
    form: str = ""
    life: str = "new"
    guessed: bool = False

    @property
    def features(self) -> frozenset[str]:
        """Every feature in it, by name, the type of its weights among them."""
        inner = {feature for step in self.steps for feature in step.features()}
        flags = ("writes_its_input",) * self.writes_its_input + ("guessed",) * self.guessed
        return frozenset(inner.union(flags, (self.dtype, self.form, self.life))) - {"", "new"}

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of networks that it is one of, as `KINDS` orders them."""
        own = {KIND_OF[feature] for feature in self.features if feature in KIND_OF}
        return tuple(kind for kind in KINDS if kind in own)

    @property
    def is_exact(self) -> bool:
        """Whether hooks change nothing: torch computes a padded transformer by another way."""
        return "PaddedEncoder" not in self.features

    @property
    def is_repeatable(self) -> bool:
        """Whether every pass over an image computes the same, when buffers are put back."""
        return self.features.isdisjoint(REMEMBERS)


class Chain(Holder):
    """Steps one after another, operations in its own ``forward`` and blocks as modules."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        super().__init__()
        self.plan: list[str] = []
        for index, step in enumerate(steps):
            if step.feature in OPERATIONS:
                self.plan.append(step.feature)
                continue
            name = f"{step.feature}{index}"
            self.add_module(name, _module(step))
            self.plan.append(name)

    def forward(self, x: Tensor) -> Tensor:
        for name in self.plan:
            x = OPERATIONS[name](self, x) if name in OPERATIONS else self.get_submodule(name)(x)
        return x


class RandomNetwork(nn.Module):
    """A conv layer, a chain of steps, and five classes."""

    def __init__(self, steps: tuple[Step, ...], *, writes_its_input: bool = False) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, WIDTH, 3)
        self.body = Chain(steps)
        self.head = nn.Linear(WIDTH, 5)
        self.writes_its_input = writes_its_input

    def forward(self, images: Tensor) -> Any:
        if self.writes_its_input:
            images.mul_(0.5)
        return self.head(self.body(self.stem(images)).mean((2, 3)))


def build(description: Description) -> nn.Module:
    """The network, in eval mode; the same weights for the same description in any process."""
    dtype = getattr(torch, description.dtype)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(description.seed)
        network: nn.Module = RandomNetwork(
            description.steps, writes_its_input=description.writes_its_input
        )
        network = network.to(dtype).eval()
        if description.form:
            network = FORMS[description.form](network)
    return network.eval()


def lived(description: Description) -> nn.Module:
    """The network as a person has it when they come to look at it."""
    network = build(description)
    if description.life == "new":
        return network
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        network(random_input(5, SIDE).to(getattr(torch, description.dtype)))
    if description.life == "loaded":
        other = build(replace(description, seed=description.seed + 1))
        network.load_state_dict(other.state_dict())
    return network


class Junction(nn.Module):
    """Some chains, and a number that picks how they are used."""

    def __init__(self, number: int, *chains: Chain) -> None:
        super().__init__()
        self.number = number
        self.chains = nn.ModuleList(chains)

    def branches(self, x: Tensor) -> list[Tensor]:
        """What each chain makes of `x`, all of the size of the first."""
        outputs = [chain(x.clone() if index else x) for index, chain in enumerate(self.chains)]
        size = outputs[0].shape[-2:]
        return [y if y.shape[-2:] == size else F.adaptive_avg_pool2d(y, size) for y in outputs]


class Adds(Junction):
    def forward(self, x: Tensor) -> Tensor:
        first, *others = self.branches(x)
        for other in others:
            first = first.add_(other) if self.number % 2 else first + other
        return first


class Concatenates(Junction):
    def __init__(self, number: int, *chains: Chain) -> None:
        super().__init__(number, *chains)
        self.mix = nn.Conv2d(WIDTH * len(chains), WIDTH, 1)

    def forward(self, x: Tensor) -> Any:
        return self.mix(torch.cat(self.branches(x), 1))


class Gates(Junction):
    def forward(self, x: Tensor) -> Tensor:
        first, *others = self.branches(x)
        for other in others:
            gate = torch.sigmoid(other.mean((2, 3), keepdim=True))
            first = first.mul_(gate) if self.number % 2 else first * gate
        return first


class Residual(Junction):
    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.chains[0](x)
        return x + y if y.shape == x.shape else y


class CalledTwice(Junction):
    def forward(self, x: Tensor) -> Any:
        for _ in range(2 + self.number % 2):
            x = self.chains[0](x)
        return x


class Checkpointed(Junction):
    def forward(self, x: Tensor) -> Any:
        return checkpoint(self.chains[0], x, use_reentrant=self.number % 2 == 0)


class InInference(Junction):
    def forward(self, x: Tensor) -> Any:
        with torch.inference_mode():
            return self.chains[0](x)


class ByValue(Junction):
    def forward(self, x: Tensor) -> Any:
        value = x.mean() if self.number % 2 else x.flatten()[0]
        return self.chains[0 if value > 0 else -1](x)


class LoopByValue(Junction):
    def forward(self, x: Tensor) -> Any:
        for _ in range(int(x.abs().mean().clamp(0, 1).mul(3).nan_to_num(0).item())):
            x = self.chains[0](x)
        return x


class ByShape(Junction):
    def forward(self, x: Tensor) -> Any:
        return self.chains[0 if x.shape[-1] > 8 else -1](x)


class Tries(Junction):
    """Goes another way where one fails, as code for optional libraries does."""

    def forward(self, x: Tensor) -> Any:
        try:
            y = self.chains[0](x)
            if not torch.isfinite(y).all():
                raise ValueError("not finite")
        except Exception:  # noqa: BLE001 - what is tried here is that nothing else is swallowed
            return x
        return y


_JUNCTIONS: dict[str, tuple[type[Junction], int]] = {
    kind.__name__: (kind, chains)
    for kind, chains in (
        *((Adds, 2), (Concatenates, 2), (Gates, 2), (Residual, 1), (CalledTwice, 1)),
        *((Checkpointed, 1), (InInference, 1), (ByValue, 2), (LoopByValue, 1), (ByShape, 2)),
        (Tries, 1),
    )
}


def _module(step: Step) -> nn.Module:
    if step.feature in BLOCKS:
        return BLOCKS[step.feature](step.number)
    kind, _ = _JUNCTIONS[step.feature]
    return kind(step.number, *map(Chain, step.inner))


_TRACEABLE = (
    *("conv", "transposed_conv", "norm", "activation", "TiedWeights", "TiedModules", "own_conv"),
    *("SqueezeAndExcite", "HoldsLambdas", "WeightNorm", "Flips", "relu_in_place", "turns"),
    *("adds_in_place", "swaps_halves", "chooses_by_mask", "convolves_by_function"),
)
_GRAPHS = KINDS["graph modules"]


def random_description(random: Random, kind: str = "") -> Description:
    """A network of one to six steps, some of which join chains of up to three steps.

    Args:
        random: where it comes from.
        kind: one of `KINDS`, of which it is one; by default most often one of `RARE`.
    """
    kinds = (*RARE, random.choice(tuple(COMMON)))
    feature = random.choice(KINDS[kind or random.choice(kinds)])
    # most people's networks are of single precision
    dtype = random.choice((*DTYPES, *("float32",) * 4))
    description = Description(
        _chain(random, 5, depth=2),
        dtype,
        random.randrange(4),
        writes_its_input=random.randrange(6) == 5,
        life=random.choice(("new", *LIVES)),
        guessed=random.randrange(6) == 5,
    )
    description = with_feature(random, description, feature)
    # what takes a step or a row for each cell takes minutes or 20 GB of a guessed 224×224
    if not description.features.isdisjoint(("Recurrent", *KINDS["tokens and windows"])):
        again = feature == "guessed"
        return random_description(random, kind) if again else replace(description, guessed=False)
    return description


def with_feature(random: Random, description: Description, feature: str) -> Description:
    """The network with one more feature, whichever kind of feature that is."""
    if feature in DTYPES:
        return replace(description, dtype=feature)
    if feature in LIVES:
        return replace(description, life=feature)
    if feature == "writes_its_input":
        return replace(description, writes_its_input=True)
    if feature == "guessed":
        return replace(description, guessed=True)
    if feature in FORMS:
        mixed = feature in KINDS["mixed precision"]
        dtype = "float32" if mixed else description.dtype
        steps = description.steps
        if feature in _GRAPHS:  # with a norm, which computes something else in training
            names = ["norm", *random.choices(_TRACEABLE, k=random.randint(1, 4))]
            random.shuffle(names)
            steps = tuple(Step(name, 4 * random.randrange(2)) for name in names)
        return replace(description, form=feature, dtype=dtype, steps=steps)
    position = random.randint(0, len(description.steps))
    step = _step_of(random, feature, depth=2)
    steps = (*description.steps[:position], step, *description.steps[position:])
    return replace(description, steps=steps)


def _chain(random: Random, longest: int, depth: int) -> tuple[Step, ...]:
    return tuple(_step(random, depth) for _ in range(random.randint(1, longest)))


def _step(random: Random, depth: int) -> Step:
    kind = random.randrange(8)
    if kind >= 6 and depth:
        return _step_of(random, random.choice(tuple(_JUNCTIONS)), depth)
    if kind >= 4:
        return _step_of(random, "conv", depth)
    names = [name for name in BLOCKS if name != "Noise" or random.randrange(4) == 0]
    return _step_of(random, random.choice(tuple(OPERATIONS) if kind < 2 else names), depth)


def _step_of(random: Random, feature: str, depth: int) -> Step:
    if feature not in _JUNCTIONS:
        return Step(feature, random.randrange(9))
    inner = tuple(_chain(random, 3, depth - 1) for _ in range(_JUNCTIONS[feature][1]))
    return Step(feature, random.randrange(4), inner)


def nearby(description: Description) -> Iterator[Description]:
    """Networks that differ in one option or in the order of two steps."""
    for index, step in enumerate(description.steps):
        before, after = description.steps[:index], description.steps[index + 1 :]
        yield replace(description, steps=(*before, replace(step, number=step.number + 1), *after))
        if after and after[0] != step:
            yield replace(description, steps=(*before, after[0], step, *after[1:]))
