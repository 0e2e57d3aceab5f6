from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.capturing.inputs import prepare
from hookviz.errors import HookVizError
from hookviz.explaining import many_inputs
from hookviz.explaining.backward import Quantity
from hookviz.explaining.many_inputs import each_gradient, each_value
from hookviz.types import ignore
from tests.networks import Tiny, all_hooks, as_model, random_input, seeded

CLASS = Quantity(3)
QUANTITIES = (
    CLASS,
    Quantity(None, "conv1", 2),
    Quantity(None, "conv2", 5, (3, 2)),
    Quantity(None, "conv1", None, (3, 2)),
    Quantity(None, "conv2", None),
)


def plainly(network: Tiny, images: Tensor, quantity: Quantity) -> Tensor:
    """The quantities, with functions in place of hooks."""
    first = network.conv1(images)
    second = network.conv2(first.relu())
    if quantity.layer is None:
        scores: Tensor = network.head(second.relu().mean((2, 3)))[:, quantity.target]
        return scores
    maps = {"conv1": first, "conv2": second}[quantity.layer]
    part = maps.mean(1) if quantity.channel is None else maps[:, quantity.channel]
    if quantity.cell is None:
        means: Tensor = part.mean((1, 2))
        return means
    cells: Tensor = part[:, quantity.cell[0], quantity.cell[1]]
    return cells


@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("rows", [1, 4, 32])
def test_they_are_what_autograd_gives_however_many_go_at_once(
    monkeypatch: pytest.MonkeyPatch, quantity: Quantity, rows: int
) -> None:
    monkeypatch.setattr(many_inputs, "MOST_AT_ONCE", rows)
    network = seeded(Tiny)
    model, images = as_model(network), torch.cat([random_input(seed) for seed in range(6)])
    given = images.clone().requires_grad_()
    expected = plainly(network, given, quantity)
    (gradient,) = torch.autograd.grad(expected.sum(), given)
    made = prepare(model, random_input(9))
    asked: list[tuple[int, int]] = []

    def inputs(start: int, stop: int) -> Tensor:
        asked.append((start, stop))
        return images[start:stop]

    found = list(each_gradient(model, made, quantity, inputs, count=6, progress=ignore))
    assert [some.start for some in found] == list(range(0, 6, min(rows, 6)))
    assert [stop - start for start, stop in asked] == [len(some.values) for some in found]
    values = torch.cat([some.values for some in found])
    torch.testing.assert_close(values, expected.detach().double(), rtol=1e-5, atol=1e-6)
    gradients = torch.cat([some.gradients for some in found])
    torch.testing.assert_close(gradients, gradient, rtol=1e-5, atol=1e-7)
    alone = [
        some.values for some in each_value(model, made, quantity, inputs, count=6, progress=ignore)
    ]
    torch.testing.assert_close(torch.cat(alone), values, rtol=1e-5, atol=1e-6)
    assert all_hooks(model) == 0


class Mixing(Tiny):
    """Takes the mean of the batch off, so that the rows of a batch know each other."""

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = super().forward(images)
        return scores if len(images) == 1 else scores - scores.mean(0)


class OneAlone(Tiny):
    """Made for one image."""

    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images.reshape(1, 3, 16, 16))


@pytest.mark.parametrize("kind", [Mixing, OneAlone])
def test_images_that_are_not_apart_go_one_by_one(kind: type[Tiny]) -> None:
    model = as_model(seeded(kind))
    images = torch.cat([random_input(seed) for seed in range(3)])
    made = prepare(model, images[:1])
    some = list(
        each_value(model, made, CLASS, lambda at, to: images[at:to], count=3, progress=ignore)
    )
    assert [each.start for each in some] == [0, 1, 2]
    expected = plainly(seeded(Tiny), images, CLASS).double()
    torch.testing.assert_close(torch.cat([each.values for each in some]), expected)


def test_progress_goes_up_and_what_it_raises_ends_the_run(tiny: hookviz.Model) -> None:
    class Stopped(BaseException):
        pass

    images = random_input(0).repeat(40, 1, 1, 1)
    made = prepare(tiny, images[:1])
    for each in (each_value, each_gradient):
        told: list[float] = []
        options: dict[str, Any] = {"count": 40, "progress": told.append}
        list(each(tiny, made, CLASS, lambda at, to: images[at:to], **options))
        assert told == sorted(told)
        assert told[0] < 0.5
        assert 0.9 <= told[-1] <= 1

        def stop(share: float) -> None:
            if share > 0.4:
                raise Stopped

        options["progress"] = stop
        with pytest.raises(Stopped):
            list(each(tiny, made, CLASS, lambda at, to: images[at:to], **options))
        assert all_hooks(tiny) == 0


def test_no_gradient_is_said() -> None:
    class Cut(Tiny):
        def forward(self, images: Tensor) -> Tensor:
            return super().forward(images.detach())

    model = as_model(seeded(Cut))
    made = prepare(model, random_input(0))
    with pytest.raises(HookVizError, match="cuts the gradient between the input and"):
        list(
            each_gradient(model, made, CLASS, lambda at, to: made.tensor, count=1, progress=ignore)
        )


def test_a_pass_takes_no_more_than_there_is_room_for() -> None:
    class Wide(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 64, 1)

        def forward(self, images: Tensor) -> Tensor:
            scores: Tensor = self.conv(images).mean((2, 3))
            return scores

    model = as_model(seeded(Wide))
    made = prepare(model, random_input(0, 512))  # 64 MB of activations an image
    found = each_gradient(
        model,
        made,
        CLASS,
        lambda at, to: made.tensor.repeat(to - at, 1, 1, 1),
        count=4,
        progress=ignore,
    )
    assert [len(some.values) for some in found] == [2, 2]
