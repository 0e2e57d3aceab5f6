from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call

import hookviz
from hookviz.errors import SettingError, UnknownNameError
from tests.networks import Tiny, random_input, seeded


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
