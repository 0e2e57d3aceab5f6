import torch
from torch import Tensor

from hookviz.hooking import graph_hooks
from hookviz.hooking.graph_hooks import GraphHooks


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
    (after,) = torch.autograd.grad(two.sum(), leaf)
    assert seen == [(2, [1, 1, 1]), (1, [3, 3, 3])]
    assert found.tolist() == [60, 60, 60]
    assert after.tolist() == [6, 6, 6]


def test_what_is_kept_of_graphs_that_are_gone_is_bounded() -> None:
    leaf = torch.ones(3, requires_grad=True)
    with GraphHooks[int](lambda _key, _gradient: None) as graphs:
        for number in range(10 * graph_hooks._TENSORS_PER_BLOCK):
            graphs.add(number, leaf * 2)
        assert len(graphs._blocks) <= 2
