import copy
import gc
from dataclasses import replace
from typing import Any
from weakref import ref

import pytest
import torch
from torch import Tensor, nn
from torchvision.models import resnet18

import hookviz
from hookviz.hooking import gradients as gradient_hooks
from hookviz.hooking.gradients import GraphHooks
from tests.networks import Tiny, hook_count, random_input, seeded


def back(loss: Tensor, **options: Any) -> None:
    loss.backward(**options)  # type: ignore[no-untyped-call]


def same(found: Tensor | None, expected: Tensor | None) -> bool:
    if found is None or expected is None:
        return found is expected
    return torch.equal(found, expected)


def test_resnet_has_the_gradients_that_autograd_gives_at_every_layer() -> None:
    network = seeded(resnet18).eval()
    image = random_input(0, 64).requires_grad_()
    with hookviz.on_gradients(network) as found:
        back(network(image)[0, 3])

    # The reference writes nothing over: its ReLUs make tensors of their own.
    apart = copy.deepcopy(network)
    tensors: dict[str, tuple[Tensor, Tensor]] = {}
    counts: dict[str, int] = {}

    def keep(name: str, given: Tensor, output: Tensor) -> None:
        number = counts.get(name, 0)
        counts[name] = number + 1
        tensors[name if not number else f"{name}#{number}"] = given, output

    for name, module in apart.named_modules():
        if isinstance(module, nn.ReLU):
            module.inplace = False
        if name:
            module.register_forward_hook(lambda _, args, out, name=name: keep(name, args[0], out))
    loss = apart(image)[0, 3]
    assert set(found) == set(tensors)
    assert len(found) == 75
    for name, (given, output) in tensors.items():
        at_input, at_output = torch.autograd.grad(loss, [given, output], retain_graph=True)
        (ours_in,), (ours_out,) = found[name].inputs, found[name].outputs
        torch.testing.assert_close(ours_in, at_input, rtol=1e-5, atol=1e-9, msg=name)
        torch.testing.assert_close(ours_out, at_output, rtol=1e-5, atol=1e-9, msg=name)
    assert hook_count(network) == 0
    assert image._backward_hooks is None or not image._backward_hooks


class Odd(nn.Module):
    """Works in place, puts out a dict and takes keywords, runs layers twice, has a shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.relu = nn.ReLU(inplace=True)
        self.split = Split()
        self.sum = Sum()

    def forward(self, values: Tensor) -> Tensor:
        parts = self.split(self.relu(self.linear(values)))
        second = self.relu(self.linear(parts["left"]))
        scaled: Tensor = self.sum(second * 1, other=parts["left"]) * parts["rest"][0]
        return scaled


class Split(nn.Module):
    def forward(self, values: Tensor) -> dict[str, Any]:
        return {"left": values * 3, "rest": (values.sum(), None, "text")}


class Sum(nn.Module):
    def forward(self, one: Tensor, *, other: Tensor) -> Tensor:
        one += other * other
        return one


def test_odd_layers_have_the_gradients_of_explicit_tensors() -> None:
    network = seeded(Odd)
    given = torch.randn(2, 3, generator=torch.Generator().manual_seed(1))
    with hookviz.on_gradients(network) as found:
        back(network(given).sum())

    a = network.linear(given)
    b = a.relu()
    left, rest = b * 3, b.sum()
    c = network.linear(left)
    d = c.relu()
    copied = d * 1
    e = copied + left**2
    at = dict(
        zip(
            ["a", "b", "left", "rest", "c", "d", "copied", "e"],
            torch.autograd.grad((e * rest).sum(), [a, b, left, rest, c, d, copied, e]),
            strict=True,
        )
    )
    expected: dict[str, tuple[list[Tensor | None], list[Tensor | None]]] = {
        "linear": ([None], [at["a"]]),
        "relu": ([at["a"]], [at["b"]]),
        "split": ([at["b"]], [at["left"], at["rest"]]),
        "linear#1": ([at["left"]], [at["c"]]),
        "relu#1": ([at["c"]], [at["d"]]),
        "sum": ([at["copied"], at["left"]], [at["e"]]),
    }
    assert list(found) == list(expected)
    for name, (inputs, outputs) in expected.items():
        assert all(map(same, found[name].inputs, inputs)), name
        assert all(map(same, found[name].outputs, outputs)), name
        assert len(found[name].inputs) == len(inputs)
        assert len(found[name].outputs) == len(outputs)


def test_a_changed_gradient_is_what_everything_upstream_gets() -> None:
    network = seeded(Tiny)
    image = random_input(0).requires_grad_()

    def weight_gradients(scale: float) -> list[Tensor]:
        a = network.conv1(image)
        b = a.relu()
        c = network.conv2(b)
        scores = network.head(c.relu().mean((2, 3)))
        (at_c,) = torch.autograd.grad(scores.sum(), c, retain_graph=True)
        changed = at_c.clamp(-0.01, 0.01) * scale
        return list(torch.autograd.grad(c, [image, network.conv1.weight], changed))

    def change(gradient: hookviz.Gradient) -> Tensor | None:
        if gradient.side == "input":
            return None
        return gradient.value.clamp(-0.01, 0.01) * 2

    with hookviz.on_gradients(network, "conv2", change) as found:
        back(network(image).sum())
    expected = weight_gradients(2)
    assert found == {}
    assert image.grad is not None
    assert network.conv1.weight.grad is not None
    torch.testing.assert_close(image.grad, expected[0], rtol=1e-6, atol=0)
    torch.testing.assert_close(network.conv1.weight.grad, expected[1], rtol=1e-6, atol=0)


def test_each_side_is_told_and_the_last_layer_comes_first_in_each_pass() -> None:
    network, image = seeded(Tiny), random_input(0).requires_grad_()
    back(network(image).sum())
    plain, image.grad = image.grad, None
    seen: list[tuple[str, int, str, tuple[int, ...]]] = []

    def see(gradient: hookviz.Gradient) -> Tensor | None:
        seen.append((gradient.layer, gradient.index, gradient.side, tuple(gradient.value.shape)))
        is_first = gradient.layer == "conv1" and gradient.side == "input"
        return gradient.value * 2 if is_first else None

    @hookviz.on_gradients(network, ["relu", "head"], see)
    def step() -> None:
        back(network(image).sum())

    for _ in range(2):
        seen.clear()
        step()
        assert seen == [
            ("head", 0, "output", (1, 5)),
            ("head", 0, "input", (1, 6)),
            *(("relu", 1, side, (1, 6, 7, 7)) for side in ("output", "input")),
            *(("relu", 0, side, (1, 4, 16, 16)) for side in ("output", "input")),
        ]
    assert plain is not None
    with hookviz.on_gradients(network, "conv1", see):
        for _ in range(3):
            image.grad = None
            back(network(image).sum())
            assert same(image.grad, plain * 2)  # a leaf is changed once in each pass
    image.grad = None
    with hookviz.on_gradients(network, "conv1") as found:  # two passes before their gradients
        back((network(image) + network(image)).sum())
    assert same(image.grad, plain * 2)
    assert len(found) == 2
    image.grad = None
    back(network(image).sum())
    assert same(image.grad, plain)


def test_a_call_that_fails_does_not_mix_up_those_after_it() -> None:
    network = seeded(Tiny)
    with hookviz.on_gradients(network, "conv1") as found:
        with pytest.raises(RuntimeError, match="channels"):
            network(torch.ones(1, 2, 16, 16, requires_grad=True))
        back(network(random_input(0)).sum())
    assert found["conv1"].outputs == []
    (at_output,) = found["conv1#1"].outputs
    assert at_output is not None
    assert at_output.shape == (1, 4, 16, 16)


def test_what_needs_no_gradient_and_a_view_that_is_written_into_have_none() -> None:
    network = seeded(Tiny)
    with torch.no_grad(), hookviz.on_gradients(network) as found:
        network(random_input(0))
    assert found["conv2"].inputs == found["conv2"].outputs == [None]
    views = nn.Sequential(nn.Linear(4, 4), nn.Flatten(), nn.Unflatten(1, (2, 2)), nn.ReLU(True))
    with hookviz.on_gradients(views) as found:
        back(views(torch.ones(1, 4)).sum())
    assert found["2"].outputs == [None]
    assert found["3"].outputs[0] is not None


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_every_hook_is_gone_whatever_is_raised(error: type[BaseException]) -> None:
    network = seeded(Tiny)
    image = random_input(0).requires_grad_()

    def fail(_gradient: hookviz.Gradient) -> None:
        raise error

    with pytest.raises(error), hookviz.on_gradients(network, None, fail):
        back(network(image).sum())
    assert hook_count(network) == 0
    assert not image._backward_hooks


@pytest.mark.by_day
def test_graphs_are_not_kept_alive_and_nothing_is_seen_after_the_block() -> None:
    network = seeded(Tiny)
    alive: list[ref[Tensor]] = []
    seen: list[hookviz.Gradient] = []
    with hookviz.on_gradients(network, None, lambda gradient: seen.append(replace(gradient))):
        for seed in range(3):
            scores = network(random_input(seed))
            alive.append(ref(scores))
            back(scores.sum())
            del scores
        gc.collect()
        assert [each() for each in alive] == [None] * 3
        loss = network(random_input(0)).sum()
        back(loss, retain_graph=True)
        assert len(seen) == 4 * 9
    back(loss)
    assert len(seen) == 4 * 9
    assert hook_count(network) == 0


def test_gradients_come_under_their_keys_and_what_is_returned_takes_their_place() -> None:
    leaf = torch.ones(3, requires_grad=True)
    seen: list[tuple[int, list[float]]] = []

    def see(key: int, gradient: Tensor) -> Tensor | None:
        seen.append((key, gradient.tolist()))
        return gradient * 10 if key == 1 else None

    with GraphHooks(see) as graphs:
        one = leaf * 2
        graphs.add(1, one)
        two = one * 3
        graphs.add(2, two)
        (found,) = torch.autograd.grad(two.sum(), leaf, retain_graph=True)
        for number in range(10 * gradient_hooks._TENSORS_PER_BLOCK):
            graphs.add(number, leaf * 2)
        assert len(graphs._blocks) <= 3  # of graphs that are gone little is kept
    (after,) = torch.autograd.grad(two.sum(), leaf)
    assert seen == [(2, [1, 1, 1]), (1, [3, 3, 3])]
    assert found.tolist() == [60, 60, 60]
    assert after.tolist() == [6, 6, 6]
