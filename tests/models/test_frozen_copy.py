"""Networks that run only as a person set them up."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from tests.networks import seeded

IMAGE = torch.linspace(-1, 1, 3 * 12 * 12).reshape(1, 3, 12, 12)
STEPS = hookviz.Preprocess(resize=12, crop=12)


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, images: Tensor) -> Tensor:
        found: Tensor = self.norm(self.conv(images))
        return found


class TrainReturnsNothing(Plain):
    def train(self, mode: bool = True) -> None:  # type: ignore[override]
        super().train(mode)


class EvalTakesMore(Plain):
    def eval(self, how: str) -> "EvalTakesMore":  # type: ignore[override]
        super().eval()
        return self


class Groups(Plain):
    def parameters(self, recurse: bool = True) -> Any:
        return [{"params": list(super().parameters(recurse)), "lr": 0.1}]


class TrainsAsItRuns(Plain):
    """A step of its own for every image, as test-time training does."""

    def forward(self, images: Tensor) -> Tensor:
        with torch.enable_grad():
            gradient = torch.autograd.grad(self.conv(images).square().sum(), self.conv.weight)[0]
        found: Tensor = self.norm(self.conv(images) * gradient.mean())
        return found


class Mixed(nn.Module):
    """The first parameter is of another precision than the input."""

    def __init__(self) -> None:
        super().__init__()
        self.tail = nn.Conv2d(4, 2, 1).bfloat16()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, images: Tensor) -> Tensor:
        found: Tensor = self.tail(self.conv(images).bfloat16())
        return found


class EqualisedRate:
    """A pre-hook that makes the weight of a parameter before each call, as StyleGAN's does."""

    def __call__(self, module: Any, _inputs: Any) -> None:
        setattr(module, "weight", module.weight_orig * 0.5)  # noqa: B010 - as it is written there


class Equalised(Plain):
    def __init__(self) -> None:
        super().__init__()
        weight = self.conv.weight
        del self.conv._parameters["weight"]
        self.conv.register_parameter("weight_orig", nn.Parameter(weight.detach()))
        self.conv.weight = weight.detach()
        self.conv.register_forward_pre_hook(EqualisedRate())


def used_and_loaded() -> nn.Module:
    """One that ran, and got other weights afterwards."""
    network = Equalised()
    network(IMAGE)
    with torch.no_grad():
        network.conv.weight_orig.mul_(3)  # type: ignore[operator]
    return network


def with_a_closure() -> nn.Module:
    """A hook set in ``__init__`` whose find the forward reads."""

    class Reads(Plain):
        def __init__(self) -> None:
            super().__init__()
            found = self.found = dict[str, Tensor]()

            def keep(_module: nn.Module, _inputs: Any, output: Tensor) -> None:
                found["conv"] = output * 2

            self.conv.register_forward_hook(keep)

        def forward(self, images: Tensor) -> Tensor:
            self.conv(images)
            return self.found["conv"].mean((2, 3))

    network = Reads()
    network(IMAGE)
    return network


BUILD: dict[str, Callable[[], nn.Module]] = {
    **{kind.__name__: kind for kind in (TrainReturnsNothing, Groups, TrainsAsItRuns, Mixed)},
    "equalised": used_and_loaded,
    "closure": with_a_closure,
}


@pytest.mark.parametrize("steps", [STEPS, None])
@pytest.mark.parametrize("build", BUILD.values(), ids=BUILD)
def test_it_is_shown_as_it_runs(
    build: Callable[[], nn.Module], steps: hookviz.Preprocess | None
) -> None:
    twin, network = seeded(build), seeded(build)
    nn.Module.train(twin, mode=False)
    model = hookviz.wrap(network, steps)
    seen: list[Tensor] = []
    layer: Any = twin.conv
    layer.register_forward_hook(lambda *call: seen.append(call[-1].detach().clone()))
    for image in (IMAGE, IMAGE * 9):
        with torch.no_grad():
            expected = twin(image)
        cap = hookviz.capture(model, image, "conv")
        assert torch.equal(cap["conv"].values, seen[-1][0].float())
        if expected.ndim == 2:
            assert cap.logits is not None
            assert torch.equal(cap.logits, expected[0].float())


def test_an_eval_with_arguments_of_its_own_is_gone_round() -> None:
    model = hookviz.wrap(seeded(EvalTakesMore), STEPS)
    assert not any(part.training for part in model.network.modules())
    assert hookviz.capture(model, IMAGE)["conv"].values.shape == (4, 10, 10)


def test_a_hook_that_somebody_looks_on_with_stays_off_the_copy() -> None:
    class Looks:
        def __init__(self) -> None:
            self.seen = 0

        def __call__(self, *_call: Any) -> None:
            self.seen += 1

    looks, network = Looks(), seeded(Plain)
    network.conv.register_forward_hook(looks)
    model = hookviz.wrap(network, STEPS)
    hookviz.capture(model, IMAGE)
    assert looks.seen == 0
    assert not model.network.get_submodule("conv")._forward_hooks
