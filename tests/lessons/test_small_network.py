"""The small network's training, against one that is written out with plain torch."""

import math
import threading

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from hookviz.lessons import small_network
from hookviz.lessons.drawings import TEST_SEEDS, TRAIN_SEEDS, draw
from hookviz.lessons.small_network import (
    BATCH,
    CLASSES,
    DRAWINGS,
    EVERY,
    LAYERS,
    SIDE,
    STEPS,
    UNSEEN,
    Drawings,
    Training,
    computing,
    maps_at,
    network_input,
    random_network,
    training,
    weight_count,
)
from hookviz.types import ignore


@pytest.fixture(scope="module")
def drawings() -> Drawings:
    made = Drawings()
    while made.share < 1:
        made.go_on()
    return made


def plain(seed: int) -> dict[str, torch.Tensor]:
    return {
        name: each.detach().clone().requires_grad_()
        for name, each in random_network(seed).named_parameters()
    }


def scores(weights: dict[str, torch.Tensor], images: torch.Tensor) -> torch.Tensor:
    """The network as a formula."""
    x = F.conv2d(images, weights["conv1.weight"], weights["conv1.bias"], 2, 3)
    x = F.max_pool2d(F.relu(x), 2)
    x = F.max_pool2d(F.relu(F.conv2d(x, weights["conv2.weight"], weights["conv2.bias"], 1, 1)), 2)
    x = F.relu(F.conv2d(x, weights["conv3.weight"], weights["conv3.bias"], 1, 1)).mean((2, 3))
    return F.linear(x, weights["head.weight"], weights["head.bias"])


def test_the_drawings_are_those_of_the_generator_and_unseen_ones_have_other_seeds(
    drawings: Drawings,
) -> None:
    number = 13
    drawn = draw(CLASSES[number % len(CLASSES)], TRAIN_SEEDS.start + number, SIDE)
    assert np.array_equal(drawings.picture(number), np.asarray(drawn))
    images, classes = drawings.unseen
    assert len(images) == UNSEEN
    drawn = draw(CLASSES[int(classes[10])], TEST_SEEDS.start + 10, SIDE)
    assert torch.equal(images[10], network_input(np.asarray(drawn)[None])[0])
    assert set(TRAIN_SEEDS[:DRAWINGS]).isdisjoint(TEST_SEEDS[:UNSEEN])


def test_it_begins_with_random_numbers_of_its_seed_and_touches_nobody_elses() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, again, other = (random_network(seed).conv1.weight.detach() for seed in (1, 1, 2))
    assert torch.equal(torch.rand(3), expected)
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    bound = 1 / math.sqrt(3 * 7 * 7)
    assert 0.95 * bound < float(first.abs().max()) <= bound
    assert weight_count() == sum(each.numel() for each in plain(1).values()) < 10_000


def test_the_first_steps_are_those_of_plain_sgd(
    drawings: Drawings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Momentum 0.9 from the second step on, decay of the first kernels alone.

    Five steps: in fifty, what two orders of the same sums differ by grows to 3e-4, on some
    processors.
    """
    rate, steps = 0.03, 5
    monkeypatch.setattr(small_network, "EVERY", steps)
    training = Training(drawings, rate, 3)
    training.go_on()  # looks, and takes no step
    begun = {name: each.clone() for name, each in training.frames[0].weights.items()}
    weights = plain(3)
    assert all(torch.equal(begun[name], weights[name]) for name in weights)
    order = torch.Generator().manual_seed(3)
    speed = {name: torch.zeros_like(each) for name, each in weights.items()}
    for _ in range(steps):
        numbers = torch.randint(DRAWINGS, (BATCH,), generator=order)
        images = network_input(np.stack([drawings.picture(int(each)) for each in numbers]))
        loss = F.cross_entropy(scores(weights, images), numbers % len(CLASSES))
        gradients = dict(
            zip(weights, torch.autograd.grad(loss, list(weights.values())), strict=True)
        )
        for name, weight in weights.items():
            decay = 0.02 if name.startswith("conv1") else 0.0
            speed[name] = 0.9 * speed[name] + gradients[name] + decay * weight.detach()
            weights[name] = (weight.detach() - rate * speed[name]).requires_grad_()
    training.go_on()
    frame = training.frames[1]
    assert frame.step == steps
    for name, weight in weights.items():
        torch.testing.assert_close(frame.weights[name], weight.detach(), rtol=1e-4, atol=1e-6)
    # What the hooks measured is the length of the last step's gradient.
    for layer, measured in zip(LAYERS, frame.gradients, strict=True):
        both = [gradients[f"{layer}.{part}"].flatten() for part in ("weight", "bias")]
        assert measured == pytest.approx(float(torch.cat(both).norm()), rel=1e-2)


def test_the_first_frame_has_the_gradient_of_one_batch_and_no_step(drawings: Drawings) -> None:
    training = Training(drawings, 0.03, 1)
    training.go_on()
    weights = plain(1)
    images = network_input(np.stack([drawings.picture(each) for each in range(BATCH)]))
    loss = F.cross_entropy(scores(weights, images), torch.arange(BATCH) % len(CLASSES))
    gradients = dict(zip(weights, torch.autograd.grad(loss, list(weights.values())), strict=True))
    for layer, measured in zip(LAYERS, training.frames[0].gradients, strict=True):
        both = [gradients[f"{layer}.{part}"].flatten() for part in ("weight", "bias")]
        assert measured == pytest.approx(float(torch.cat(both).norm()), rel=1e-4)
    unseen, classes = drawings.unseen
    found = scores(weights, unseen).detach()
    assert training.frames[0].loss == pytest.approx(
        float(F.cross_entropy(found, classes)), rel=1e-4
    )
    right = (found.argmax(1) == classes).float().mean()
    assert training.frames[0].accuracy == pytest.approx(float(right))
    hooks = [module._forward_hooks for module in training._network.modules()]
    assert not any(hooks)  # between two frames none is left


def test_maps_are_those_of_the_weights_at_that_step(drawings: Drawings) -> None:
    training = Training(drawings, 0.03, 1)
    for _ in range(2):
        training.go_on()
    frame, picture = training.frames[1], drawings.picture(0)
    weights = dict(frame.weights)
    expected = F.conv2d(
        network_input(picture[None]), weights["conv1.weight"], weights["conv1.bias"], 2, 3
    )
    maps = maps_at(frame, picture)
    torch.testing.assert_close(maps["conv1"], expected[0])
    assert {name: each.shape[0] for name, each in maps.items()} == {
        "conv1": 8,
        "conv2": 16,
        "conv3": 24,
    }


def test_it_learns_with_the_right_rate_and_not_with_the_others(drawings: Drawings) -> None:
    from hookviz.ui.lessons.parts.training import RATES  # noqa: PLC0415

    ends = {}
    for name, rate in RATES.items():
        training = Training(drawings, rate, 1)
        while not training.is_over:
            training.go_on()
        assert [frame.step for frame in training.frames] == list(range(0, STEPS + 1, EVERY))
        ends[name] = training.frames[-1]
    assert ends["right"].accuracy > 0.85
    assert ends["small"].accuracy < 0.5 > ends["large"].accuracy
    assert ends["small"].loss > ends["right"].loss < ends["large"].loss
    assert ends["large"].gradients[0] == 0  # the ReLUs are dead: nothing comes back
    assert small_network.STEPS % small_network.EVERY == 0


def test_it_is_the_same_one_for_everybody_and_one_computes_at_a_time() -> None:
    first = training(0.5, 101)
    assert training(0.5, 101) is first
    assert training(0.5, 102) is not first
    for seed in range(200, 200 + small_network._MOST):
        training(0.5, seed)
    assert training(0.5, 101) is not first
    seen: list[bool] = []

    def other() -> None:
        with computing() as mine:
            seen.append(mine)

    with computing() as mine:
        assert mine
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert seen == [False]
    with computing() as mine:
        assert mine


def test_it_goes_on_a_little_at_a_time_and_progress_can_end_it() -> None:
    shared = training(0.03, 111)
    told: list[float] = []
    while len(shared.frames) < 3:
        shared.go_on(told.append)
    assert told == sorted(told)
    assert 0 < shared.share < 1
    assert not shared.is_over
    assert shared not in small_network.finished()
    assert shared.frames[2].step == 2 * EVERY
    shared = training(0.03, 112)
    while not shared.frames:
        shared.go_on(ignore)
    before = len(shared.frames)

    def stop(_share: float) -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        shared.go_on(stop)
    assert len(shared.frames) == before
