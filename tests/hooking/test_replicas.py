import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, weight_norm

import hookviz
from hookviz.explaining.receptive_fields.receptive_field import receptive_fields
from hookviz.hooking import replicas
from tests.networks import Tiny, random_input, seeded


def test_a_replica_shares_every_tensor_and_no_module_and_no_hook() -> None:
    inner, image = seeded(Tiny), random_input(1)
    network = nn.Sequential(inner, nn.BatchNorm1d(5)).eval()
    replica = replicas.replicate(network)
    mine, theirs = network.state_dict(), replica.state_dict()
    assert mine.keys() == theirs.keys()
    assert all(mine[key].data_ptr() == theirs[key].data_ptr() for key in mine)
    assert not set(map(id, network.modules())) & set(map(id, replica.modules()))
    with torch.no_grad():
        expected = network(image)
        inner.conv1.register_forward_hook(lambda *_: torch.zeros(()))
        assert torch.equal(replicas.replicate(network)(image), expected)
    wide = nn.Conv2d(3, 10_000, 3)  # a copy of shapes alone takes no memory
    found: Tensor = replicas.meta_copy(wide)(torch.empty(1, 3, 9_000, 9_000, device="meta"))
    assert found.shape == (1, 10_000, 8_998, 8_998)
    assert wide.weight.device.type == "cpu"


def test_a_borrowed_replica_is_nobody_elses_and_comes_back_whatever_is_raised() -> None:
    network = seeded(Tiny).eval()
    with replicas.borrow(network) as first, replicas.borrow(network) as second:
        assert len({id(network), id(first), id(second)}) == 3
    with pytest.raises(KeyboardInterrupt), replicas.borrow(network) as third:
        raise KeyboardInterrupt
    with replicas.borrow(network) as fourth:
        assert fourth is third
        assert third is first or third is second
    spoil: Any
    for spoil in (lambda it: it.conv1.register_forward_hook(print), lambda it: it.train()):
        with replicas.borrow(network) as spoiled:
            spoil(spoiled)
        with replicas.borrow(network) as other:  # the spoiled one does not come back
            assert other is not spoiled
            assert not other.training
    before = len(replicas._idle)
    del network
    assert len(replicas._idle) == before - 1  # it is freed with its replicas


def test_threads_never_hold_one_replica_together() -> None:
    network, held, guard = seeded(Tiny), set[int](), threading.Lock()

    def borrow_often(_: int) -> None:
        for _ in range(50):
            with replicas.borrow(network) as replica:
                with guard:
                    assert id(replica) not in held
                    held.add(id(replica))
                with guard:
                    held.remove(id(replica))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(borrow_often, range(8)))


@pytest.mark.parametrize("norm", ["parametrized", "old"])
@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
def test_weight_norm_keeps_working_in_a_replica(norm: str) -> None:
    conv = nn.Conv2d(3, 2, 3)
    normed: nn.Module = (
        parametrizations.weight_norm(conv) if norm == "parametrized" else weight_norm(conv)
    )
    network = nn.Sequential(normed)
    image = random_input(2)
    with torch.no_grad():
        network(image)
        assert torch.equal(replicas.replicate(network)(image), network(image))


def test_each_of_two_equal_networks_shows_its_own_maps_and_fields() -> None:
    class Alike(nn.Sequential):
        """Equal to any other, whatever its weights and kernels are."""

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Alike)

        def __hash__(self) -> int:
            return 1

    networks = [seeded(lambda side=side: Alike(nn.Conv2d(3, 4, side))) for side in (3, 5)]  # type: ignore[misc]
    assert networks[0] == networks[1]
    image = torch.rand(1, 3, 32, 32)
    for network, side in zip(networks, (3, 5), strict=True):
        model = hookviz.wrap(network)
        with torch.no_grad():
            assert torch.equal(hookviz.capture(model, image)["0"].values, network(image)[0])
        assert receptive_fields(model, (3, 32, 32))["0"].size == (side, side)
