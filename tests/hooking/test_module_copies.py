"""Copies of modules that copy themselves in a way of their own, or that torch copies wrongly."""

import threading
import weakref
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest
import torch
from torch import Tensor, fx, nn
from torchvision.models import resnet18
from torchvision.models.feature_extraction import create_feature_extractor

import hookviz
from hookviz.hooking import replicas
from tests.networks import seeded

IMAGE = torch.linspace(-1, 1, 3 * 12 * 12).reshape(1, 3, 12, 12)
STEPS = hookviz.Preprocess(resize=12, crop=12)


class Part(nn.Module):
    """Has a layer, and a number that it multiplies by."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.number = 2

    def forward(self, values: Tensor) -> Tensor:
        found: Tensor = self.conv(values) * self.number
        return found


class ReturnsItself(Part):
    def __deepcopy__(self, _memo: dict[int, Any]) -> "ReturnsItself":
        return self


class BuildsAnew(Part):
    def __deepcopy__(self, _memo: dict[int, Any]) -> "BuildsAnew":
        return BuildsAnew()


class LeavesOut(Part):
    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "number"}


class HasSlots(Part):
    __slots__ = ("number",)


class HoldsALock(Part):
    """Which it takes care of itself."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def __deepcopy__(self, _memo: dict[int, Any]) -> "HoldsALock":
        return HoldsALock()


class CachesAMethod(Part):
    def __init__(self) -> None:
        super().__init__()
        self.quick = lru_cache(self.times)

    def times(self, number: int) -> Tensor:
        return self.conv.weight.sum() * number

    def forward(self, values: Tensor) -> Tensor:
        return super().forward(values) + self.quick(self.number)


class KnowsItsParent(Part):
    """By a weak reference, from a part of it."""

    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()
        self.relu.parent = weakref.ref(self)  # type: ignore[assignment]
        self.bound = weakref.WeakMethod(self.twice)

    def twice(self, values: Tensor) -> Tensor:
        found: Tensor = self.relu(self.conv(values)) * self.number
        return found

    def forward(self, values: Tensor) -> Tensor:
        parent: Any = self.relu.parent
        twice = self.bound()
        assert twice is not None
        found: Tensor = super().forward(values) + parent().conv(values) + twice(values)
        return found


class HoldsWeakly(Part):
    def __init__(self) -> None:
        super().__init__()
        self.other = nn.Conv2d(3, 3, 1)
        self.keys = weakref.WeakKeyDictionary({self.conv: 2, self.other: 3})
        self.values = weakref.WeakValueDictionary({"conv": self.conv, "other": self.other})
        self.every = weakref.WeakSet([self.conv, self.other])

    def forward(self, values: Tensor) -> Tensor:
        assert len(self.every) == 2
        parts = sorted(self.every, key=lambda part: part.kernel_size, reverse=True)
        found = sum(self.keys[part] * part(values) for part in parts)
        return self.values["other"](values) + found  # type: ignore[no-any-return]


class HasAView(Part):
    """A buffer, a view of it that is one too, and a third in a list."""

    table: Tensor
    first: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.arange(6.0))
        self.register_buffer("first", self.table[1:3])
        self.views = [self.table[2:]]

    def forward(self, values: Tensor) -> Tensor:
        self.table.mul_(2)
        return super().forward(values) + self.first.sum() + self.views[0].sum()


BUILD = (
    *(Part, ReturnsItself, BuildsAnew, LeavesOut, HasSlots, HoldsALock, CachesAMethod),
    *(KnowsItsParent, HoldsWeakly, HasAView),
)


@pytest.mark.parametrize("build", BUILD)
@pytest.mark.parametrize("whole", [True, False])
def test_a_copy_computes_the_same_and_the_network_stays_its_own(
    build: type[Part], whole: bool
) -> None:
    def made() -> nn.Module:
        return build() if whole else nn.Sequential(nn.ReLU(), build())

    twin, network = seeded(made).eval(), seeded(made)
    with torch.no_grad():
        expected = twin(IMAGE)
    model = hookviz.wrap(network, STEPS)
    assert all(part.training for part in network.modules())
    assert all(parameter.requires_grad for parameter in network.parameters())
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(1)  # it learns on, which is nothing to the model
    name = "conv" if whole else "1.conv"
    for _ in range(2):
        with torch.no_grad():
            own = replicas.full_copy(model.network)
            assert {id(part) for part in own.modules()}.isdisjoint(map(id, network.modules()))
            assert torch.equal(own(IMAGE), expected)
        cap = hookviz.capture(model, IMAGE, name)
        with torch.no_grad():
            given = IMAGE if whole else IMAGE.relu()
            assert torch.equal(cap[name].values, twin.get_submodule(name)(given)[0])


def extractor() -> nn.Module:
    module: nn.Module = create_feature_extractor(
        resnet18(), {"layer1.0.relu_1": "a", "layer2": "b"}
    )
    return module


def traced() -> nn.Module:
    inner = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Dropout(0.5), nn.ReLU())
    return fx.symbolic_trace(inner)


GRAPHS: dict[str, Callable[[], nn.Module]] = {"torchvision": extractor, "torch.fx": traced}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("build", GRAPHS.values(), ids=GRAPHS)
def test_a_graph_module_is_copied_in_its_mode(
    build: Callable[[], nn.Module], inside: bool, training: bool
) -> None:
    twin, network = seeded(build).eval(), seeded(build).train(training)
    network.note = ["kept"]  # type: ignore[assignment]
    if inside:
        twin, network = nn.Sequential(twin), nn.Sequential(network).train(training)
    image = torch.rand(1, 3, 32, 32)
    seen: dict[str, Tensor] = {}
    convs = [name for name, part in twin.named_modules() if isinstance(part, nn.Conv2d)]
    for name in convs:
        twin.get_submodule(name).register_forward_hook(
            lambda _module, _given, output, name=name: seen.update({name: output})
        )
    with torch.no_grad():
        twin(image)
    model = hookviz.wrap(network, hookviz.Preprocess(resize=32, crop=32))
    assert network.training is training
    for _ in range(2):
        cap = hookviz.capture(model, image)
        assert list(cap) == list(seen)
        assert all(torch.equal(cap[name].values, output[0]) for name, output in seen.items())
    graph = model.network[0] if inside else model.network  # type: ignore[index]
    assert vars(graph)["note"] == ["kept"]
