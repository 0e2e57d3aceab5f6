import copy
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import hookviz
from hookviz.capturing.inputs import prepare_input
from hookviz.explaining.attribution import batched_passes
from hookviz.explaining.attribution.batched_passes import (
    agree_within,
    batch_tolerance,
    half_and_whole,
    iter_target_values,
    run_alone_and_batched,
)
from hookviz.explaining.attribution.target import AttributionTarget
from hookviz.hooking.forward_pass import ProgressReporter
from hookviz.types import ignore
from tests.networks import Tiny, all_hooks, as_model, random_input, seeded
from tests.odd_batches import ODD, Odd, alone

CLASS = AttributionTarget(3)
QUANTITIES = (
    CLASS,
    AttributionTarget(None, "conv1", 2),
    AttributionTarget(None, "conv2", 5, (3, 2)),
    AttributionTarget(None, "conv1", None, (3, 2)),
    AttributionTarget(None, "conv2", None),
)


def plainly(network: Tiny, images: Tensor, target: AttributionTarget) -> Tensor:
    """The quantities, with functions in place of hooks."""
    first = network.conv1(images)
    second = network.conv2(first.relu())
    if target.layer is None:
        scores: Tensor = network.head(second.relu().mean((2, 3)))[:, target.class_index]
        return scores
    maps = {"conv1": first, "conv2": second}[target.layer]
    part = maps.mean(1) if target.channel is None else maps[:, target.channel]
    if target.cell is None:
        means: Tensor = part.mean((1, 2))
        return means
    cells: Tensor = part[:, target.cell[0], target.cell[1]]
    return cells


@pytest.mark.parametrize("target", QUANTITIES)
@pytest.mark.parametrize("rows", [1, 4, 32])
def test_they_are_what_autograd_gives_however_many_go_at_once(
    monkeypatch: pytest.MonkeyPatch, target: AttributionTarget, rows: int
) -> None:
    monkeypatch.setattr(batched_passes, "MAX_BATCH_SIZE", rows)
    network = seeded(Tiny)
    model, images = as_model(network), torch.cat([random_input(seed) for seed in range(6)])
    leaf = images.clone().requires_grad_()
    expected = plainly(network, leaf, target)
    (gradient,) = torch.autograd.grad(expected.sum(), leaf)
    model_input = prepare_input(model, random_input(9))
    asked: list[tuple[int, int]] = []

    def inputs(start: int, stop: int) -> Tensor:
        asked.append((start, stop))
        return images[start:stop]

    batches = list(
        iter_target_values(
            model, model_input, target, inputs, count=6, progress=ignore, gradients=True
        )
    )
    assert [batch.start for batch in batches] == list(range(0, 6, min(rows, 6)))
    assert [stop - start for start, stop in asked] == [len(batch.values) for batch in batches]
    values = torch.cat([batch.values for batch in batches])
    torch.testing.assert_close(values, expected.detach().double(), rtol=1e-5, atol=1e-6)
    gradients = torch.cat([batch.gradients for batch in batches])
    torch.testing.assert_close(gradients, gradient, rtol=1e-5, atol=1e-7)
    alone = [
        batch.values
        for batch in iter_target_values(
            model, model_input, target, inputs, count=6, progress=ignore
        )
    ]
    torch.testing.assert_close(torch.cat(alone), values, rtol=1e-5, atol=1e-6)
    assert all_hooks(model) == 0


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("target", [CLASS, AttributionTarget(None, "conv2", 1, (3, 2))])
def test_each_input_has_what_a_fresh_network_gives_it_alone(
    kind: type[Odd], target: AttributionTarget
) -> None:
    """Whatever the network takes over its batch, and whatever it keeps from pass to pass."""
    network = seeded(kind)
    image = random_input(3)
    scales = torch.linspace(0.1, 1.1, 7).view(-1, 1, 1, 1)
    images = torch.cat([scales * image, random_input(4), image.flip(-1)])

    def plain(images: Tensor) -> Tensor:
        if target.layer is None:
            return alone(network, images)[:, 3]
        copies = [copy.deepcopy(network) for _ in images]
        maps = [
            one.conv2(one.between(one.conv1(image[None]).relu()))
            for one, image in zip(copies, images, strict=True)
        ]
        return torch.cat(maps)[:, 1, 3, 2]

    leaf = images.clone().requires_grad_()
    expected = plain(leaf)
    (gradient,) = torch.autograd.grad(expected.sum(), leaf)
    model = as_model(network)
    model_input = prepare_input(model, image)
    options: dict[str, Any] = {"count": len(images), "progress": ignore}

    def inputs(start: int, stop: int) -> Tensor:
        return images[start:stop]

    values = [
        batch.values for batch in iter_target_values(model, model_input, target, inputs, **options)
    ]
    close = partial(torch.testing.assert_close, rtol=1e-4, atol=1e-6)
    close(torch.cat(values), expected.detach().double())
    batches = list(
        iter_target_values(model, model_input, target, inputs, gradients=True, **options)
    )
    values, gradients = [batch.values for batch in batches], [batch.gradients for batch in batches]
    close(torch.cat(values), expected.detach().double())
    close(torch.cat(gradients), gradient)
    assert all_hooks(model) == 0


class Clipped(Odd):
    """Scales the gradient by its length, over all images of a pass; its values are apart."""

    def between(self, maps: Tensor) -> Tensor:
        if maps.requires_grad:
            maps.register_hook(lambda gradient: gradient / gradient.norm())  # type: ignore[no-untyped-call]
        return maps


def test_gradients_that_know_each_other_are_taken_one_by_one() -> None:
    network, image = seeded(Clipped), random_input(3)
    images = torch.linspace(0.3, 1, 6).view(-1, 1, 1, 1) * image
    expected = []
    for one in images:
        leaf = one[None].clone().requires_grad_()
        expected += torch.autograd.grad(network(leaf)[0, 3], leaf)
    model = as_model(network)
    batches = iter_target_values(
        *(model, prepare_input(model, image), CLASS, lambda at, to: images[at:to]),
        count=6,
        gradients=True,
        progress=ignore,
    )
    gradients = torch.cat([batch.gradients for batch in batches])
    torch.testing.assert_close(gradients, torch.cat(expected), rtol=1e-4, atol=1e-6)


def test_a_pass_takes_no_more_than_there_is_room_for() -> None:
    class Wide(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 64, 1)

        def forward(self, images: Tensor) -> Tensor:
            scores: Tensor = self.conv(images).mean((2, 3))
            return scores

    model = as_model(seeded(Wide))
    model_input = prepare_input(model, random_input(0, 512))  # 64 MB of activations an image
    batches = iter_target_values(
        model,
        model_input,
        CLASS,
        lambda at, to: model_input.tensor.repeat(to - at, 1, 1, 1),
        count=4,
        gradients=True,
        progress=ignore,
    )
    assert [len(batch.values) for batch in batches] == [2, 2]


@pytest.mark.parametrize(
    ("whole", "apart"),
    [
        (torch.sin, True),
        (lambda images: images / images.amax((1, 2, 3), keepdim=True), True),
        (lambda images: images / images.amax(), False),
        (lambda images: images.softmax(0), False),
        (lambda images: images * len(images), False),
        (lambda images: images.flatten(0, 1), True),
    ],
)
def test_whatever_is_taken_over_both_shows(whole: object, apart: bool) -> None:
    assert callable(whole)
    image = random_input(0)
    alone, together = run_alone_and_batched(half_and_whole(image), whole)
    assert torch.equal(alone, torch.cat([whole(image / 2), whole(image)]))
    assert agree_within(alone, together, 1e-6) == apart


def test_a_refused_batch_is_none_and_what_an_image_or_the_caller_raises_comes_out() -> None:
    def one_alone(images: Tensor) -> Tensor:
        if len(images) > 1:
            raise hookviz.ModelError("too many")
        return images

    alone, together = run_alone_and_batched(half_and_whole(random_input(0)), one_alone)
    assert together is None
    assert not agree_within(alone, together, 1)
    with pytest.raises(hookviz.ModelError, match="too many"):
        run_alone_and_batched(random_input(0), lambda images: one_alone(images[0]))

    def stop(_share: float) -> None:
        raise hookviz.ModelError("enough")

    reporter = ProgressReporter(stop)

    def whole(images: Tensor) -> Tensor:
        if len(images) > 1:
            reporter.share(0.5)
        return images

    with pytest.raises(hookviz.ModelError, match="enough"):
        run_alone_and_batched(half_and_whole(random_input(0)), whole, reporter)


def test_rounding_is_a_share_of_the_largest_number_in_the_networks_precision() -> None:
    network = nn.Linear(2, 2)
    values = torch.tensor([1.0, -4.0, torch.nan, torch.inf])
    assert batch_tolerance(network, values) == pytest.approx(4 * 256 * 2**-23)
    assert batch_tolerance(network.double(), values) == pytest.approx(4 * 256 * 2**-52)
    assert batch_tolerance(network.bfloat16(), values) == pytest.approx(4 * 0.02)
    assert batch_tolerance(network, values[2:]) == 0


def test_a_batch_that_memory_is_short_for_is_halved() -> None:
    """As a card's allocator says it, here of a pass over more than five images."""
    sizes: list[int] = []

    def allocate(_network: nn.Module, given: tuple[Tensor, ...]) -> None:
        sizes.append(len(given[0]))
        if len(given[0]) > 5:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    network = seeded(Tiny)
    images = torch.cat([random_input(seed) for seed in range(20)])
    network.register_forward_pre_hook(allocate)
    model = as_model(network)
    batches = list(
        iter_target_values(
            model,
            prepare_input(model, random_input(9)),
            CLASS,
            lambda start, stop: images[start:stop],
            count=20,
            progress=ignore,
        )
    )
    found = torch.cat([batch.values for batch in batches])
    expected = plainly(seeded(Tiny), images, CLASS)
    torch.testing.assert_close(found, expected.double(), rtol=0, atol=1e-5)
    assert {20, 10, 5} <= set(sizes)
    assert sizes.count(1) < 5  # and not one by one
