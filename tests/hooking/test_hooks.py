import gc
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import timm
import torch
from timm.layers import config
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

import hookviz
from hookviz.errors import UnknownLayerError
from hookviz.hooking import hooks
from hookviz.hooking.hooks import CallNumbers, Recorder, map_tensors
from tests.networks import Tiny, hook_count, random_input, seeded

# A validation has no gradients, which torch says of each reentrant checkpoint.
pytestmark = pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad:UserWarning")
REENTRANT = pytest.mark.parametrize("reentrant", [True, False])
GIVEN = torch.tensor([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]])


class Stages(nn.Module):
    """Stages within each other and with a shortcut, and an activation that all of them share."""

    def __init__(self, reentrant: bool | None) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(3, 4), nn.Linear(4, 2)
        self.first, self.second, self.inner = (nn.Linear(4, 4) for _ in range(3))
        self.tanh, self.drop = nn.Tanh(), nn.Dropout(0.5)
        self.reentrant = reentrant

    def run(self, function: Callable[[Tensor], Tensor], given: Tensor) -> Tensor:
        if self.reentrant is None:
            return function(given)
        result: Tensor = checkpoint(function, given, use_reentrant=self.reentrant)
        return result

    def stage(self, layer: nn.Module, given: Tensor) -> Tensor:
        result: Tensor = self.tanh(self.drop(layer(self.tanh(given))))
        return result

    def nested(self, given: Tensor) -> Tensor:
        inside = self.run(lambda values: self.stage(self.inner, values), given)
        return self.stage(self.second, inside)

    def wrapped(self, given: Tensor) -> Tensor:
        return self.run(lambda values: self.stage(self.second, values), self.tanh(given))

    def forward(self, given: Tensor) -> Tensor:
        stem = self.tanh(self.stem(given))
        one = self.run(lambda values: self.stage(self.first, values), stem)
        scores: Tensor = self.head(self.run(self.nested, one) + self.run(self.wrapped, one) + one)
        return scores


def stages(reentrant: bool | None) -> Stages:
    """The same weights, checkpointed or not at all."""
    return seeded(lambda: Stages(reentrant))


def trained(network: nn.Module) -> list[Tensor | None]:
    """The gradients of two steps, with a validation between the two passes of each."""
    torch.manual_seed(5)
    found: list[Tensor | None] = []
    for _ in range(2):
        network.zero_grad()
        loss = network(GIVEN).square().sum()
        with torch.no_grad():
            network(GIVEN)
        loss.backward(retain_graph=True)
        loss.backward()  # a second time through the same graph
        found += [parameter.grad for parameter in network.parameters()]
    return found


def same(ours: list[Any], theirs: list[Any]) -> bool:
    """Whether all are alike; gradients that add up may do so in another order."""
    return len(ours) == len(theirs) and all(
        one is other or torch.allclose(one, other, rtol=1e-5, atol=1e-6)
        for one, other in zip(ours, theirs, strict=True)
    )


@REENTRANT
def test_each_call_is_observed_once(reentrant: bool) -> None:
    found = []
    for network in (stages(reentrant), stages(None)):
        seen: list[tuple[str, int, list[list[float]]]] = []

        def see(call: hookviz.Call, seen: Any = seen) -> None:
            seen.append((call.layer, call.index, call.output.tolist()))

        with hookviz.observe(network, None, see), hookviz.breakpoint_at(network, "tanh", see):
            trained(network)
        found.append(seen)
    assert found[0] == found[1]
    assert len(found[0]) == 4 * (20 + 10)
    network, numbers = stages(reentrant), CallNumbers()
    network.tanh.register_forward_hook(lambda *_: seen.append(numbers.next()))  # type: ignore[arg-type]
    loss = network(GIVEN).sum()
    assert len(numbers._numbers) > 0
    with hookviz.edit(network, "head", lambda _call: None), hookviz.on_gradients(network):
        network(GIVEN)
        loss.backward()  # what was begun before the block is no trouble
    assert network.stem.weight.grad is not None
    del loss
    gc.collect()
    assert len(numbers._numbers) == 0  # they keep nothing of a graph


def scaled(value: Tensor, call: hookviz.Call) -> Tensor:
    return value * (1 + call.index % 14 / 8)


@REENTRANT
@pytest.mark.parametrize("early_stop", [True, False])
def test_an_edit_is_made_again_at_the_call_that_is_repeated(
    reentrant: bool, early_stop: bool
) -> None:
    found = []
    for network in (stages(reentrant), stages(None)):
        with (
            set_checkpoint_early_stop(early_stop),
            hookviz.edit(network, "tanh", lambda call: scaled(call.output, call)),
            hookviz.edit_inputs(network, "drop", lambda call: scaled(call.inputs[0], call)),
        ):
            found.append(trained(network))
        assert hook_count(network) == 0
    assert same(*found)
    assert not same(found[0], trained(stages(None)))


@REENTRANT
def test_gradients_in_a_checkpoint_are_those_of_autograd_without(reentrant: bool) -> None:
    network, plain = stages(reentrant).eval(), stages(None).eval()
    tensors: dict[str, tuple[Tensor, Tensor]] = {}
    counts: dict[str, int] = {}
    for name, module in plain.named_children():

        def keep(_module: Any, args: Any, output: Tensor, name: str = name) -> None:
            number = counts[name] = counts.get(name, -1) + 1
            tensors[f"{name}#{number}" if number else name] = args[0], output

        module.register_forward_hook(keep)
    image, other = GIVEN.clone().requires_grad_(), GIVEN.clone().requires_grad_()
    loss = plain(other).square().sum()
    with hookviz.on_gradients(network) as found:
        network(image).square().sum().backward()
    assert list(found) == list(tensors)
    assert len(found) == 20
    for name, pair in tensors.items():
        at_input, at_output = torch.autograd.grad(loss, pair, retain_graph=True)
        assert same(found[name].inputs, [at_input]), name
        assert same(found[name].outputs, [at_output]), name


@REENTRANT
def test_a_gradient_is_changed_once_in_a_checkpoint(reentrant: bool) -> None:
    def change(gradient: hookviz.Gradient) -> Tensor:
        seen.append((gradient.layer, gradient.index, gradient.side, gradient.place))
        return gradient.value * 1.5

    found = []
    for network in (stages(reentrant), stages(None)):
        seen: list[tuple[str, int, str, int]] = []
        with hookviz.on_gradients(network, None, change):
            found.append((trained(network), sorted(seen)))
    assert found[0][1] == found[1][1]
    assert same(found[0][0], found[1][0])
    assert not same(found[0][0], trained(stages(None)))


def test_layers_in_a_checkpoint_that_has_no_gradients_are_named() -> None:
    network = nn.ModuleDict({"first": nn.Linear(3, 4), "relu": nn.ReLU(), "head": nn.Linear(4, 2)})

    def run(given: Tensor) -> Tensor:
        first = checkpoint(
            nn.Sequential(network["first"], network["relu"]), given, use_reentrant=True
        )
        scores: Tensor = network["head"](first)
        return scores

    def look(given: Tensor) -> dict[str, hookviz.LayerGradients]:
        with hookviz.on_gradients(network) as found:
            run(given).sum().backward()  # type: ignore[no-untyped-call]
        return found

    with pytest.warns(RuntimeWarning, match="no gradient of first and relu:.*use_reentrant=False"):
        found = look(GIVEN)
    assert found["relu"].outputs == [None]
    assert found["head"].outputs != [None]
    assert look(GIVEN.clone().requires_grad_())["relu"].outputs != [None]
    with torch.no_grad(), hookviz.on_gradients(network):  # no backward pass at all
        run(GIVEN)


@REENTRANT
@pytest.mark.parametrize(("name", "options"), [("test_resnet", {}), ("test_vit", {"img_size": 32})])
def test_networks_of_timm_with_checkpoints(
    reentrant: bool, name: str, options: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "_USE_REENTRANT_CKPT", reentrant)
    network = seeded(lambda: timm.create_model(name, num_classes=3, **options)).train()
    image = torch.randn(2, 3, 32, 32)
    found = []
    for _ in range(2):
        network.zero_grad()
        seen: list[str] = []
        with (
            hookviz.on_gradients(network, [nn.Linear, nn.Conv2d]) as gradients,
            hookviz.observe(network, None, lambda call: seen.append(call.layer)),  # noqa: B023
        ):
            network(image).square().sum().backward()
        found.append(gradients)
        assert len(seen) == len(set(seen)) or name.startswith("resnet")
        network.set_grad_checkpointing()
    plain, ours = found
    assert list(ours) == list(plain)
    for layer, expected in plain.items():
        for one, other in zip(
            (*ours[layer].inputs, *ours[layer].outputs),
            (*expected.inputs, *expected.outputs),
            strict=True,
        ):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


class BadBackward(torch.autograd.Function):
    @staticmethod
    def forward(_ctx: Any, values: Tensor) -> Tensor:
        return values.clone()

    @staticmethod
    def backward(_ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0] * torch.nan


class Bad(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        result: Tensor = BadBackward.apply(values)
        return result


@REENTRANT
def test_watch_finds_a_bad_gradient_within_a_checkpoint(reentrant: bool) -> None:
    network = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), Bad(), nn.Tanh())
    values = GIVEN.clone().requires_grad_()
    with hookviz.watch(network, record=True) as bad:
        checkpoint(network, values, use_reentrant=reentrant).sum().backward()
    found = [(each.layer, each.call, each.phase, each.tensor) for each in bad]
    assert found[:2] == [("1", 0, "backward", "output"), ("0", 0, "backward", "output")]
    assert {each[3] for each in found[2:]} == {"weight", "bias"}


@REENTRANT
def test_record_counts_what_is_computed_again_once(reentrant: bool) -> None:
    logs = []
    for network in (stages(reentrant), stages(None)):
        with hookviz.record(network) as log:
            trained(network)
        logs.append(log.rows)
    assert logs[0] == logs[1]
    assert len(logs[0]) == 2 * 7


class Pair(NamedTuple):
    left: Tensor
    right: str


@dataclass(frozen=True)
class Box:
    values: Tensor
    note: str = "no tensor"


def test_tensors_in_nested_outputs_have_paths_and_a_mapping_keeps_the_form() -> None:
    a, b, c, d = (torch.full((1,), float(number)) for number in range(4))
    nested = OrderedDict(top=(a, [b, None]), pair=Pair(c, "text"), box=Box(d))
    found = list(hooks.tensors_in(nested))
    assert [path for path, _ in found] == [
        *(("top", "0"), ("top", "1", "0"), ("pair", "left"), ("box", "values")),
    ]
    assert [tensor.item() for _, tensor in found] == [0, 1, 2, 3]
    changed = map_tensors(nested, lambda tensor: tensor + 1)
    assert changed == OrderedDict(
        top=(a + 1, [b + 1, None]), pair=Pair(c + 1, "text"), box=Box(d + 1)
    )
    assert [type(each) for each in (changed, *changed.values())] == [OrderedDict, tuple, Pair, Box]
    assert a.item() == 0
    # Gone through one by one, the first would take hours.
    beside = (range(10**11), memoryview(bytes(10**6)), bytearray(10**6))
    assert [path for path, _ in hooks.tensors_in((*beside, a))] == [("3",)]


def test_what_an_observer_returns_changes_nothing_and_before_sees_what_goes_in() -> None:
    network = seeded(Tiny)
    taken: list[tuple[int, Tensor]] = []
    calls: list[hooks.Call] = []

    def see(call: hooks.Call) -> None:
        assert call.output is None
        taken.append((call.index, call.inputs[0].clone()))

    with (
        torch.no_grad(),
        hooks.before(network, ["relu"], see),
        hooks.observe(network, ["conv2"], lambda call: call.output * 0),
        hooks.observe(network, [""], calls.append),
    ):
        scores = network(random_input(0))
    assert torch.equal(scores, network(random_input(0)))
    assert [(call.layer, call.output) for call in calls] == [("", scores)]
    assert [index for index, _ in taken] == [0, 1]
    assert (taken[0][1] < 0).any()  # the ReLU works in place, and afterwards nothing is negative
    assert hook_count(network) == 0


class Nested(nn.Module):
    """A layer that goes by two names, a place without one, and a block."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU())
        self.alias = self.block[0]
        self.nothing = None
        self.register_module("empty", None)

    def forward(self, images: Tensor) -> Tensor:
        maps: Tensor = self.alias(images)
        return maps


class Renamed(Nested):
    """Lists its modules in a way of its own, as a wrapper does that hides itself."""

    def named_modules(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, nn.Module]]:
        for name, module in super().named_modules(*args, **kwargs):
            yield name.replace("block", "own"), module


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:FutureWarning")
@pytest.mark.parametrize(
    ("build", "name"),
    [(Nested, "alias"), (Nested, "block.0"), (Renamed, "own.0")],
)
def test_a_layer_is_found_by_any_of_its_names(build: Callable[[], nn.Module], name: str) -> None:
    calls: list[hooks.Call] = []
    network = build()
    with hooks.observe(network, [name], calls.append):
        network(random_input(0))
    assert [call.layer for call in calls] == [name]
    assert hook_count(network) == 0
    block: nn.Module = torch.jit.script(nn.Sequential(nn.Conv2d(3, 4, 1)))
    scripted = nn.Sequential(block)
    with hooks.observe(scripted, ["0.0"], print):
        assert hook_count(scripted) == 1
    assert hook_count(scripted) == 0


@pytest.mark.parametrize(
    "name", ["empty", "nothing", "alias.0", "block.", "block..0", "weight", "aliaz"]
)
def test_what_is_no_layer_is_refused_with_the_nearest_and_nothing_is_hooked(name: str) -> None:
    network = Nested()
    with (
        pytest.raises(UnknownLayerError) as caught,
        hooks.observe(network, ["block.0", name], print),
    ):
        pytest.fail("the block must not run")
    assert set(caught.value.nearest) <= {"block", "block.0", "block.1", "alias"}
    assert name != "aliaz" or caught.value.nearest[0] == "alias"
    assert hook_count(network) == 0


def test_recorder_notices_a_write_through_a_view() -> None:
    layer = nn.Identity()
    recorder = Recorder()
    network = nn.Sequential(layer, nn.Flatten())
    with hooks.observe(network, ["0"], recorder.see):
        flat = network(torch.ones(1, 2, 2, 2))
    assert recorder.overwritten_layers() == frozenset()
    flat.mul_(2)
    assert recorder.overwritten_layers() == {"0"}
    tiny, image, recorder = seeded(Tiny), random_input(0), Recorder(copy=["conv1"])
    with torch.no_grad(), hooks.observe(tiny, ["conv1", "conv2"], recorder.see):
        tiny(image)
        expected = tiny.conv1(image)
    # It copies where asked: the ReLU behind it writes in place.
    assert torch.equal(recorder.records[0].tensor, expected)
    assert recorder.overwritten_layers() == {"conv2"}
    copying = Recorder(copy=["0"])  # which copies nothing of the last call, and notices a write
    with hooks.observe(network, ["0"], lambda call: copying.see(call, is_last=True)):
        flat = network(torch.ones(1, 2, 2, 2))
    assert copying.records[0].tensor.data_ptr() == flat.data_ptr()
    flat.mul_(2)
    assert copying.overwritten_layers() == {"0"}
