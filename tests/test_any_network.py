"""Single layers, no layer, sound, volumes, and every rare kind of network, all through."""

import json
import sys
import types
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import hookviz
from tests.cli.command import output_of
from tests.kinds_of_networks import KINDS
from tests.network_trial import trial
from tests.networks import as_model, seeded
from tests.random_kinds import RARE
from tests.random_networks import Description, Step, with_feature


class WithoutLayers(nn.Module):
    """All of it in functions; the one part that it has is never run."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.ReLU()
        self.weight = nn.Parameter(torch.randn(4, 3, 3, 3))

    def forward(self, images: Tensor) -> Tensor:
        return F.conv2d(images, self.weight).mean((2, 3))


class WithoutParts(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        return images.mean((2, 3))


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "no layer": (WithoutLayers, (3, 16, 16)),
    "no part": (WithoutParts, (3, 16, 16)),
    **{
        name: (KINDS[name].build, KINDS[name].shape)
        for name in ("conv alone", "no conv", "sound", "volume")
    },
}
EVERY = pytest.mark.parametrize(("build", "shape"), NETWORKS.values(), ids=NETWORKS)


def model_of(build: Callable[[], nn.Module], shape: tuple[int, ...]) -> hookviz.Model:
    network = seeded(build)
    return as_model(network) if len(shape) == 3 else hookviz.wrap(network)


def input_of(shape: tuple[int, ...]) -> Tensor:
    return torch.randn(1, *shape, generator=torch.Generator().manual_seed(0))


@EVERY
def test_layers_and_captures(build: Callable[[], nn.Module], shape: tuple[int, ...]) -> None:
    model = model_of(build, shape)
    convs = hookviz.list_layers(model, input_shape=shape)
    hookviz.list_layers(model, kind="all", input_shape=shape)
    assert list(hookviz.capture(model, input_of(shape))) == [layer.name for layer in convs]


@EVERY
@pytest.mark.parametrize("lens", [lens.slug for lens in hookviz.list_lenses()])
def test_every_lens_shows_something_or_says_why_not(
    lens: str, build: Callable[[], nn.Module], shape: tuple[int, ...]
) -> None:
    model = model_of(build, shape)
    try:
        assert hookviz.run_lens(lens, model, input_of(shape)).panels
    except hookviz.HookVizError as error:
        said = str(error)
    else:
        return
    assert model.title in said or "layer" in said
    assert said.endswith(".")


@EVERY
def test_the_shell_lists_its_layers(
    build: Callable[[], nn.Module],
    shape: tuple[int, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A class or a function of this file is a factory that the command line can name."""
    name = f"odd_{'_'.join(map(str, shape))}_{abs(hash(str(build)))}"
    module = types.ModuleType(name)
    vars(module)["make"] = lambda: model_of(build, shape)
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.chdir(tmp_path)
    assert "kind" in output_of("layers", f"{name}:make")
    assert json.loads(output_of("layers", f"{name}:make", "--all", "--json")) is not None


@pytest.mark.parametrize(
    ("kind", "feature"),
    [(kind, feature) for kind, features in RARE.items() for feature in features],
)
def test_a_rare_kind_is_shown_as_it_computes(kind: str, feature: str) -> None:
    """One small network each, of the thousands that `make networks` draws."""
    between = Description((Step("norm"), Step("conv", 1)))
    description = with_feature(Random(1), between, feature)
    assert kind in description.kinds
    outcome = trial(description)
    assert outcome.runs
    assert not outcome.wrong
    assert not outcome.raw
    assert not outcome.refused
