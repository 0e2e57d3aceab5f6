"""A pass is followed for so long; what goes out of torch's sight has all of the image in it."""

import math
import threading
import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from hookviz.explaining.receptive_fields.receptive_field import receptive_fields, trace_fields
from hookviz.explaining.receptive_fields.tracer import Budget
from tests.explaining.receptive_fields.test_rules import Calls, check_not_too_small, conv
from tests.networks import Tiny, as_model, seeded

SHAPE = (3, 14, 12)
CONSTANT = torch.tensor([0.5, 0.25, 0.125], dtype=torch.float64).reshape(1, 3, 1, 1)


class Kind(Tensor):
    """A subclass of a person's own."""


def scripted(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        made: Callable[[Tensor], Tensor] = torch.jit.script(function)
    return made


@scripted
def upside_down(images: Tensor) -> Tensor:
    return images.flip(2)


@scripted
def turned_over_in_place(images: Tensor) -> Tensor:
    return images.add_(images.flip(2).flip(3))


class Turned(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, images: Tensor) -> Tensor:
        return images.flip(3)


def in_thread(function: Callable[[], Tensor]) -> Tensor:
    result: list[Tensor] = []

    def run() -> None:
        with torch.no_grad():
            result.append(function())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return result[0]


def written_unseen_beside_a_view(images: Tensor) -> Tensor:
    doubled = images * 2
    view = doubled[:, :, 1:]
    turned_over_in_place(doubled)
    view.relu_()
    return doubled


def written_in_a_thread(images: Tensor) -> Tensor:
    doubled = images * 2
    in_thread(lambda: doubled.add_(doubled.flip(2)))
    return doubled


def drawn_on_a_canvas(images: Tensor) -> Tensor:
    canvas = torch.zeros_like(images)
    canvas.transpose(2, 3).add_(images.flip(2).transpose(2, 3))
    return canvas


def given_other_values_unseen(images: Tensor) -> Tensor:
    doubled = images * 2

    def give() -> Tensor:
        doubled.data = images.flip(2).data
        return doubled

    return in_thread(give)


def turned_unseen(images: Tensor) -> Tensor:
    doubled = images * 2
    in_thread(lambda: doubled.transpose_(2, 3))
    return doubled


def through_numbers(images: Tensor) -> Tensor:
    return torch.tensor(images.tolist(), dtype=images.dtype).flip(2)


UNFOLLOWED: dict[str, Callable[[Tensor], Tensor]] = {
    "script function": lambda x: upside_down(x),  # noqa: PLW0108 - which itself can't be copied
    "subclass": lambda x: x.as_subclass(Kind).flip(2).as_subclass(Tensor),
    "function with a gradient of its own": Turned.apply,
    "thread": lambda x: in_thread(lambda: x.flip(2)),
    "numpy": lambda x: torch.from_numpy(x.numpy()[:, :, ::-1].copy()),
    "numbers": through_numbers,
    "a number": lambda x: x * x.sum().item(),
    "vmap": torch.vmap(lambda each: each.flip(1)),
    "written unseen beside a view": written_unseen_beside_a_view,
    "written in a thread": written_in_a_thread,
    "drawn on a canvas": drawn_on_a_canvas,
    "given other values unseen": given_other_values_unseen,
    "turned unseen": turned_unseen,
    "filled with the sum": lambda x: x * x.new_full((1,), x.sum()),  # type: ignore[arg-type]
    "joined with what is known": lambda x: torch.cat(
        [conv(2, (3, 3))(x), upside_down(x)[:, :, 2:, 2:]], 1
    ),
    "added to what is smaller": lambda x: upside_down(x) + x[:, :1, :, :1],
}  # fmt: skip


def behind(found: Tensor) -> Tensor:
    result: Tensor = conv(2, (3, 3), given=found.shape[1])(found)
    return result


@pytest.mark.parametrize("name", UNFOLLOWED)
def test_no_box_is_too_small_behind_what_is_not_followed(name: str) -> None:
    check_not_too_small(lambda x: behind(UNFOLLOWED[name](x)))


@pytest.mark.parametrize("name", ["script function", "subclass", "thread", "vmap"])
def test_a_layer_behind_it_sees_all_of_the_image(name: str) -> None:
    field = receptive_fields(as_model(Calls(UNFOLLOWED[name])), SHAPE)["inside"]
    assert field.size is None
    assert field.box(0, 0) == field.box(13, 11) == (0, 0, 14, 12)


class Constants(nn.Module):
    """Adds what was there before to what sees little: by a buffer, an attribute, a closure."""

    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 3, 3))
        self.register_buffer("scale", torch.ones(1, 3, 1, 1))
        self.shifts = {"shift": torch.zeros(1, 3, 1, 1)}
        self.places = _Places()
        self.last = nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        values = self.conv(images - CONSTANT) * self.scale + self.shifts["shift"]
        result: Tensor = self.last(values + self.places(values))
        return result


class _Places(nn.Module):
    """How far down a row is; nothing of the image."""

    def forward(self, found: Tensor) -> Tensor:
        mask = found.new_zeros(1, 1, found.shape[2], 1)
        mask[:, :, 1:].fill_(2.0)
        return mask + torch.arange(found.shape[2], dtype=found.dtype)[None, None, :, None]


def test_what_was_there_before_has_nothing_of_the_image() -> None:
    fields = receptive_fields(as_model(seeded(Constants).double()), SHAPE)
    assert fields["last"].size == (3, 3)
    assert fields["last"].box(2, 3) == (2, 3, 5, 6)
    assert fields["places"].box(1, 0) == (0, 0, 0, 0)


def passed(network: nn.Module, budget: Budget) -> dict[str, tuple[int, int] | None]:
    fields = trace_fields(network.eval(), torch.zeros(1, 3, 16, 16), budget=budget)
    return {address: field.size for address, field in fields.items()}


def test_beyond_the_time_a_layer_sees_all() -> None:
    ticks = iter(range(10_000))
    plenty = passed(seeded(Tiny), Budget(seconds=1e9, clock=lambda: float(next(ticks))))
    assert plenty == {
        "conv1": (3, 3),
        "relu": (3, 3),
        "conv2": (5, 5),
        "relu#1": (5, 5),
        "head": (16, 16),
    }
    ticks = iter(range(10_000))
    short = passed(seeded(Tiny), Budget(seconds=1, clock=lambda: float(next(ticks))))
    assert short == dict.fromkeys(("relu", "conv2", "relu#1")) | {
        "conv1": (3, 3),
        "head": (16, 16),
    }


def test_beyond_the_memory_a_layer_sees_all() -> None:
    edges = 4 * 16 + 4 * 16  # of the image and of the first map; and of what is kept
    assert passed(seeded(Tiny), Budget(values=4 * edges))["relu#1"] == (5, 5)
    assert passed(seeded(Tiny), Budget(values=edges))["relu#1"] is None


def test_the_edges_of_a_large_network_that_pads_are_few() -> None:
    """As TensorFlow does: as much before and behind each map as its side and stride take."""
    timm = pytest.importorskip("timm")
    with torch.device("meta"):
        network = timm.create_model("tf_efficientnet_b0", pretrained=False).eval()
        image = torch.empty(1, 3, 513, 513)
    budget = Budget(seconds=math.inf, values=500_000)  # 2 MB
    fields = trace_fields(network, image, budget=budget)
    assert not budget.spent
    assert fields["blocks.0.0.conv_dw"].size == (7, 7)
    assert fields["conv_head"].size is None
