from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hookviz.hooking.torch_functions import (
    NESTED,
    QUANTISED,
    SPARSE,
    EveryFunction,
    function_name,
    kind_of,
    plain,
)


class Counting(EveryFunction):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def called(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        self.names.append(function_name(func))
        output = func(*args, **kwargs)
        return output + 1 if self.names[-1] == "relu" else output


def test_every_function_of_the_block_is_seen_and_can_be_answered_otherwise() -> None:
    values = torch.tensor([-1.0, 2.0])
    with Counting() as counting:
        found = F.relu(values) * 2
    assert counting.names == ["relu", "mul"]
    assert found.tolist() == [2, 6]
    assert F.relu(values).tolist() == [0, 2]
    ways = (F.relu, torch.relu_, torch.Tensor.relu, torch.Tensor.relu_)
    assert {function_name(way) for way in ways} == {"relu"}


NUMBERS = torch.tensor([[0.0, 1.5], [-2.0, 0.0]])
pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own, of what is not finished there


def test_an_ordinary_tensor_is_given_back_itself() -> None:
    for tensor in (NUMBERS, torch.ones((), dtype=torch.complex64), torch.zeros(2, device="meta")):
        assert plain(tensor) is tensor
        assert kind_of(tensor) == ""
    assert plain(torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])) is None


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (Tensor.to_sparse, SPARSE),
        (Tensor.to_sparse_csr, SPARSE),
        (Tensor.to_mkldnn, SPARSE),
        (lambda numbers: torch.quantize_per_tensor(numbers, 0.5, 3, torch.qint8), QUANTISED),
        (lambda numbers: torch.nested.nested_tensor(list(numbers)), NESTED),
        (lambda numbers: torch.nested.nested_tensor(list(numbers), layout=torch.jagged), NESTED),
    ],
    ids=["sparse", "csr", "mkldnn", "quantised", "nested", "jagged"],
)
def test_every_kind_stands_for_the_same_numbers(
    made: Callable[[Tensor], Tensor], kind: str
) -> None:
    tensor = made(NUMBERS)
    assert kind_of(tensor) == kind
    numbers = plain(tensor)
    assert numbers is not None
    assert torch.equal(numbers, NUMBERS)
    assert type(numbers) is Tensor
    assert numbers.layout is torch.strided


def _seen(network: nn.Module) -> list[Tensor | None]:
    seen: list[Tensor | None] = []
    network.register_forward_hook(lambda _module, _inputs, output: seen.append(plain(output)))
    return seen


@pytest.mark.parametrize("axis", [0, 1, 3])
def test_under_vmap_all_that_is_mapped_over_comes_first(axis: int) -> None:
    conv = nn.Conv2d(3, 2, 3)
    images = torch.randn(5, 3, 8, 8)
    expected = conv(images)
    seen = _seen(conv)
    torch.vmap(conv, in_dims=axis, out_dims=axis)(images.movedim(0, axis))
    assert seen[0] is not None
    torch.testing.assert_close(seen[0], expected)
    gradients = (
        torch.autograd.grad(each.square().sum(), conv.weight) for each in (seen[0], expected)
    )
    torch.testing.assert_close(*gradients)
    torch.vmap(torch.vmap(conv))(images.expand(2, *images.shape))  # the outer one comes first
    torch.testing.assert_close(seen[-1], expected.expand(2, *expected.shape))
