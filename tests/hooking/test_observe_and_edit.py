import inspect
import os
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torchvision.models import resnet34

import hookviz
from hookviz.errors import SettingError, UnknownNameError
from tests.networks import Tiny, hook_count, random_input, seeded


@pytest.fixture
def network() -> Tiny:
    return seeded(Tiny)


def test_resnet_is_seen_as_plain_hooks_see_it() -> None:
    network = seeded(resnet34).eval()
    image = random_input(0, 64)
    ours: dict[str, Tensor] = {}
    plain: dict[str, Tensor] = {}

    def keep(call: hookviz.Call) -> None:
        ours[call.layer] = call.output.clone()

    handles = [
        module.register_forward_hook(
            lambda _module, _args, output, name=name: plain.update({name: output.clone()})
        )
        for name, module in network.named_modules()
        if isinstance(module, nn.Conv2d)
    ]
    with torch.no_grad(), hookviz.observe(network, nn.Conv2d, keep):
        seen = network(image)
    for handle in handles:
        handle.remove()
    assert list(ours) == list(plain)
    assert len(ours) == 36
    assert all(torch.equal(ours[name], plain[name]) for name in plain)
    assert torch.equal(seen, network(image))
    assert hook_count(network) == 0


def test_a_block_is_a_decorator_too_each_call_a_block_of_its_own(network: Tiny) -> None:
    calls: list[tuple[str, int]] = []

    @hookviz.observe(network, "conv?", lambda call: calls.append((call.layer, call.index)))
    def step() -> Tensor:
        assert hook_count(network.conv1) == 2  # one of them notes whether the layer ran
        found: Tensor = network(random_input(0))
        return found

    assert hook_count(network) == 0
    for _ in range(2):
        assert step().shape == (1, 5)
        assert hook_count(network) == 0
    assert calls == [("conv1", 0), ("conv2", 0)] * 2
    parallel = nn.DataParallel(network)
    shapes: list[tuple[int, ...]] = []
    with hookviz.observe(parallel, "conv1", lambda call: shapes.append(call.output.shape)):
        parallel(random_input(0))
        # What `torch.nn.parallel.replicate` makes of each module for each further GPU.
        replica = network.conv1._replicate_for_data_parallel()  # type: ignore[no-untyped-call]
        replica.weight, replica.bias = network.conv1.weight, network.conv1.bias
        replica(random_input(0, 8))
    assert shapes == [(1, 4, 16, 16), (1, 4, 8, 8)]


def test_keyword_arguments_are_seen_and_replaced(network: Tiny) -> None:
    class Both(nn.Module):
        def forward(self, image: Tensor, *, scale: float, shift: Tensor) -> tuple[Tensor, float]:
            return image * scale + shift, scale

    class Calls(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.both, self.lstm = Both(), nn.LSTM(2, 2, batch_first=True)

        def forward(self, image: Tensor) -> Any:
            return self.both(image, scale=2.0, shift=image)[0], self.lstm(image[None], None)[0]

    calls, image = Calls(), torch.ones(1, 2)
    seen: list[hookviz.Call] = []
    with hookviz.observe(calls, "both", seen.append):
        assert calls(image)[0].tolist() == [[3, 3]]
    assert seen[0].arguments == ((image,), {"scale": 2.0, "shift": image})
    for change, expected in (
        (lambda call: (call.inputs[0], 5.0, image * 0), [[5, 5]]),
        (lambda call: call.inputs[0] * 10, [[21, 21]]),
    ):
        with hookviz.edit_inputs(calls, "both", change):
            assert calls(image)[0].tolist() == expected
    with hookviz.edit(calls, "both", lambda call: (call.output[0] * 0, 1)):
        assert calls(image)[0].tolist() == [[0, 0]]
    with (
        pytest.raises(SettingError, match="2 inputs are given for both, which was called with 3"),
        hookviz.edit_inputs(calls, "both", lambda call: (image, 1)),
    ):
        calls(image)
    state = torch.ones(1, 1, 2), torch.ones(1, 1, 2)  # a tuple, which goes into one input
    with torch.no_grad(), hookviz.edit_inputs(calls, "lstm", lambda call: (call.inputs[0], state)):
        found = calls(image)[1]
    assert torch.equal(found, calls.lstm(image[None], state)[0])
    assert not torch.equal(found, calls(image)[1])
    assert hook_count(calls) == 0


def test_a_second_call_has_its_number_in_an_edit(network: Tiny) -> None:
    image = random_input(0)
    with torch.no_grad():
        by_hand = network.conv1(image) * 3
        by_hand = network.relu(network.conv2(network.relu(by_hand)) + 1)
        with (
            hookviz.edit(network, "conv1", lambda call: call.output * 3),
            hookviz.edit_inputs(
                network, "relu", lambda call: call.inputs[0] + 1 if call.index == 1 else None
            ),
        ):
            found = network(image)
        assert torch.equal(found, network.head(by_hand.mean((2, 3))))


def test_nested_blocks_outer_first_and_other_peoples_hooks_stay(network: Tiny) -> None:
    order: list[str] = []
    theirs = network.conv1.register_forward_hook(lambda *_: order.append("theirs"))
    with (
        hookviz.observe(network, "conv1", lambda _call: order.append("outer")),
        hookviz.edit(network, "conv1", lambda call: call.output * 0),
        hookviz.observe(network, "conv1", lambda call: order.append(f"{call.output.abs().sum()}")),
    ):
        network(random_input(0))
    assert order == ["theirs", "outer", "0.0"]
    assert hook_count(network) == 1
    theirs.remove()


def test_threads_are_all_seen_each_call_with_a_number_of_its_own(network: Tiny) -> None:
    seen: list[tuple[str, int, int]] = []
    network.relu.inplace = False

    def see(call: hookviz.Call) -> None:
        seen.append((call.layer, call.index, threading.get_ident()))

    together = threading.Barrier(4)  # a thread that ends gives its identity to the next

    def work() -> None:
        together.wait()
        for seed in range(20):
            with torch.no_grad():
                network(random_input(seed))
        together.wait()

    with hookviz.observe(network, None, see), ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(work)
    counts = Counter(layer for layer, _, _ in seen)
    assert counts == {"conv1": 80, "relu": 160, "conv2": 80, "head": 80}
    assert sorted(index for layer, index, _ in seen if layer == "relu") == list(range(160))
    assert len({ident for _, _, ident in seen}) == 4


def test_calls_that_fail_are_seen_where_asked_for(network: Tiny) -> None:
    image = random_input(0)[:, :2]  # a channel too few
    for always, expected in ((False, []), (True, [("conv1", None)])):
        seen: list[tuple[str, Any]] = []
        with (
            pytest.warns(RuntimeWarning, match="observe saw no call of conv2: "),
            hookviz.observe(
                network,
                "conv?",
                lambda call, seen=seen: seen.append((call.layer, call.output)),  # type: ignore[misc]
                always_call=always,
            ),
            pytest.raises(RuntimeError, match="channels"),
        ):
            network(image)
        assert seen == expected
        assert hook_count(network) == 0


@pytest.mark.parametrize("fullgraph", [True, False])
def test_a_program_that_is_made_in_a_block_keeps_nothing_of_it(
    network: Tiny, fullgraph: bool
) -> None:
    calls: list[hookviz.Call] = []
    compiled = torch.compile(network, backend="eager", fullgraph=fullgraph)
    expected = network(random_input(0))
    with (
        pytest.warns(RuntimeWarning) as said,
        hookviz.edit(network, None, calls.append, always_call=True),
        hookviz.edit_inputs(compiled, None, calls.append),  # type: ignore[arg-type]
    ):
        found = compiled(random_input(0))
    texts = [str(each.message) for each in said]
    assert texts[0].startswith(
        "edit_inputs saw no call of conv1, relu, conv2 and 1 more: a program that"
    )
    assert texts[1].startswith("edit saw nothing: the block ran no passes of this Tiny.")
    assert torch.equal(found, expected)
    assert torch.equal(compiled(random_input(0)), expected)
    assert calls == []
    with hookviz.observe(compiled, "conv1", calls.append):  # type: ignore[arg-type]
        with torch.compiler.set_stance("force_eager"):
            compiled(random_input(0))
        assert [call.layer for call in calls] == ["conv1"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, GeneratorExit])
@pytest.mark.parametrize("block", [hookviz.observe, hookviz.edit, hookviz.edit_inputs])
def test_hooks_are_gone_whatever_is_raised(
    network: Tiny, block: Any, error: type[BaseException]
) -> None:
    def fail(_call: hookviz.Call) -> None:
        raise error

    with pytest.raises(error), block(network, None, fail):
        network(random_input(0))
    assert hook_count(network) == 0


@pytest.mark.parametrize("copy", [True, False])
def test_without_a_function_each_layers_last_call_is_kept(copy: bool) -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True), nn.Flatten())
    images = torch.rand(2, 3, 6, 6)
    with hookviz.observe(network, ["0", "2"], copy=copy) as seen:
        assert seen == {}
        network(torch.zeros(2, 3, 6, 6))
        scores = network(images)
    conv = nn.functional.conv2d(images, network[0].weight, network[0].bias)  # type: ignore[arg-type]
    assert torch.equal(seen["0"].output, conv if copy else conv.relu())  # which was overwritten
    assert torch.equal(seen["2"].output, scores)
    assert (seen["0"].index, list(seen)) == (1, ["0", "2"])
    assert seen["0"].output.requires_grad
    several = nn.Sequential(nn.LSTM(3, 2, batch_first=True))
    with hookviz.observe(several, "0", copy=copy) as seen:
        rows, state = several(torch.ones(1, 4, 3))
    kept, kept_state = seen["0"].output
    for ours, theirs in zip((kept, *kept_state), (rows, *state), strict=True):
        assert torch.equal(ours, theirs)
        assert (ours.data_ptr() != theirs.data_ptr()) == copy


ROOT = Path(__file__).parent.parent.parent


def test_the_debugger_opens_where_the_layer_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def note() -> None:
        frame = inspect.currentframe()
        assert frame is not None
        assert frame.f_back is not None
        seen.append(frame.f_back.f_locals["call"])

    monkeypatch.setattr(sys, "breakpointhook", note)
    network, image = seeded(Tiny), random_input(1)
    plain = network(image)
    with hookviz.breakpoint_at(network, "relu"):
        assert torch.equal(network(image), plain)
    assert [(call.layer, call.index) for call in seen] == [("relu", 0), ("relu", 1)]
    assert hook_count(network) == 0
    network(image)
    assert len(seen) == 2
    shapes: list[int] = []
    with hookviz.breakpoint_at(network, "conv*", lambda call: shapes.append(call.output.shape[1])):
        network(image)  # a function of one's own looks instead
    assert shapes == [4, 6]
    with (
        pytest.raises(hookviz.UnknownLayerError, match="conv1"),
        hookviz.breakpoint_at(network, "conf1"),
    ):
        pytest.fail("the block must not run")


PROGRAM = """
import torch, hookviz
network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
try:
    with hookviz.breakpoint_at(network, None):
        network(torch.ones(1, 3, 8, 8))
finally:
    print("hooks", len(network[0]._forward_hooks), len(network[1]._forward_hooks))
"""


def test_a_person_types_into_the_debugger(tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, path],
        input="p tuple(call.output.shape)\nc\np call.layer\nq\n",
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONBREAKPOINT": ""},
        timeout=300,
    )
    assert done.returncode == 1, done.stderr  # it was quit
    assert "hooks 0 0" in done.stdout
    assert "(1, 4, 6, 6)" in done.stdout


def state(network: nn.Module) -> list[tuple[str, int, Tensor]]:
    return [
        (name, id(parameter), parameter.detach().clone())
        for name, parameter in network.named_parameters(remove_duplicate=False)
    ]


def assert_same(before: list[tuple[str, int, Tensor]], network: nn.Module) -> None:
    after = state(network)
    assert [entry[:2] for entry in after] == [entry[:2] for entry in before]
    for (*_, ours), (*_, theirs) in zip(after, before, strict=True):
        assert torch.equal(ours, theirs)


def test_the_pass_is_that_of_the_other_weights_and_then_all_is_as_before() -> None:
    network, image = seeded(Tiny), random_input(0)
    before = state(network)
    other = torch.randn(4, 3, 3, 3, generator=torch.Generator().manual_seed(1))
    expected = functional_call(
        network, {"conv1.weight": other, "head.bias": network.head.bias * 2}, image
    )
    with hookviz.replace_parameters(
        network, {"conv1.weight": other, "head.bias": lambda bias: bias * 2}
    ):
        assert torch.equal(network(image), expected)
    assert_same(before, network)
    lstm, given = nn.LSTM(2, 3), torch.ones(4, 1, 2)
    usual = lstm(given)[0]
    with hookviz.replace_parameters(lstm, dict.fromkeys(lstm.state_dict(), torch.zeros_like)):
        assert not lstm(given)[0].any()
    assert torch.equal(lstm(given)[0], usual)
    frozen = nn.Linear(2, 1).to(torch.float64).requires_grad_(False)
    with hookviz.replace_parameters(frozen, {"weight": torch.ones(1, 2)}):
        assert frozen.weight.dtype == torch.float64
        assert not frozen.weight.requires_grad


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_training_in_the_block_writes_to_nobody(error: type[BaseException]) -> None:
    network = seeded(Tiny)
    before = state(network)
    given = torch.zeros(6, 4, 3, 3)
    own = nn.Parameter(torch.zeros(5))

    def train_and_fail() -> None:
        with hookviz.replace_parameters(network, {"conv2.weight": given, "head.bias": own}):
            trained = [network.conv2.weight, own]
            optimiser = torch.optim.SGD(trained, lr=1.0)
            network(random_input(0)).sum().backward()
            optimiser.step()
            assert network.head.bias is own
            raise error

    with pytest.raises(error):
        train_and_fail()
    assert_same(before, network)
    assert not given.any()
    assert own.grad is not None
    assert own.detach().tolist() == [-1] * 5


def test_a_shared_parameter_is_replaced_wherever_it_is() -> None:
    first, second = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)
    second.weight = first.weight
    network = nn.Sequential(first, second)
    before = state(network)
    with hookviz.replace_parameters(network, {"0.weight": torch.eye(2) * 3}):
        assert network(torch.ones(1, 2)).tolist() == [[9, 9]]
        assert first.weight is second.weight
    assert_same(before, network)
    with (
        pytest.raises(SettingError, match=r"0\.weight and 1\.weight are one parameter"),
        hookviz.replace_parameters(network, dict.fromkeys(["0.weight", "1.weight"], torch.eye(2))),
    ):
        pytest.fail("the block must not run")


def test_what_cannot_stand_for_a_parameter_is_refused_before_anything_changes() -> None:
    network = seeded(Tiny)
    before = state(network)
    for parameters, kind, said in (
        ({"conv1.wieght": torch.ones(1)}, UnknownNameError, "'conv1.weight'"),
        ({"head.bias": torch.ones(4)}, SettingError, "shape 5; a tensor of 4"),
        ({"head.weight": torch.ones(5, 6), "head.bias": 3}, SettingError, "needs a tensor, not 3"),
    ):
        with (
            pytest.raises(kind, match=said),
            hookviz.replace_parameters(network, parameters),  # type: ignore[arg-type]
        ):
            pytest.fail("the block must not run")
        assert_same(before, network)


def test_a_compiled_part_has_its_parameters_by_either_name_and_runs_with_the_others() -> None:
    inner, given = nn.Linear(2, 2, bias=False), torch.ones(1, 2)
    part: Any = torch.compile(inner, backend="eager")
    network = nn.Sequential(part)
    before, usual = state(network), network(given)
    for name in ("0.weight", "0._orig_mod.weight"):
        with hookviz.replace_parameters(network, {name: torch.eye(2) * 3}):
            assert network(given).tolist() == [[3, 3]]
        assert_same(before, network)
        assert torch.equal(network(given), usual)
    with (
        pytest.raises(UnknownNameError, match=r"'0\.weight'"),
        hookviz.replace_parameters(network, {"0.wieght": given}),
    ):
        pytest.fail("the block must not run")
